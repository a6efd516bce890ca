"""A process that tries cases one by one, within bounds of memory and time; ``python -m attacks.worker FOLDER``.

Each line of its input is a case; each line of its output is what became of it. If the process ends in between, that was a crash.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
import traceback
import warnings
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

ADDRESSES = 4 << 30  # bytes of addresses beside those in use before the first case
MEMORY = 1 << 30  # bytes in memory that one case may take
SECONDS = 20  # of the processor for one case; other work on the machine does not count
STAGES = {"models": "model_parts", "http": "http_bodies"}


def target_module(target: str) -> ModuleType:
    """The module that makes and tries the cases of a target."""
    from importlib import import_module

    return import_module(f"attacks.{STAGES.get(target, target)}")


def made_case(target: str, seed: int, number: int, folder: Path) -> dict[str, Any]:
    """The case with a number."""
    rng = np.random.default_rng([seed, number, *target.encode()])
    return {"target": target, **target_module(target).make(rng, folder / target)}


def status_of(field: str) -> int:
    """A size from /proc in bytes, 0 where there is none."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith(field + ":")), 0)


def forget_peak() -> None:
    """Let the largest memory so far be the memory of now."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def tried(case: dict[str, Any], folder: Path, scratch: Path) -> dict[str, Any]:
    """What became of a case: answered, refused, or a finding."""
    from attacks.model_parts import check_message

    forget_peak()
    before, started = status_of("VmRSS"), time.process_time()
    result: dict[str, Any] = {}
    try:
        outcome = target_module(case["target"]).attempt(case, folder / case["target"], scratch)
        if outcome.startswith("refused: "):
            check_message(ValueError(outcome.removeprefix("refused: ")))
        result = {"outcome": outcome.split(":")[0]}
        result |= {"message": outcome.partition(": ")[2]} if ": " in outcome else {}
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        places = [frame for frame in traceback.extract_tb(error.__traceback__) if "/ramify/" in frame.filename]
        where = " < ".join(f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in places[:-4:-1])
        result = {"outcome": "finding", "message": f"{type(error).__name__}: {str(error)[:300]} [{where}]"}
    taken = status_of("VmHWM") - before
    if result["outcome"] != "finding" and taken > MEMORY:
        result = {"outcome": "finding", "message": f"it took {taken >> 20:,} MiB of memory"}
    return {**result, "seconds": round(time.process_time() - started, 3), "mib": taken >> 20}


def main() -> None:
    """Try the cases of standard input."""
    warnings.simplefilter("ignore")
    folder, answers = Path(sys.argv[1]), os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    scratch = folder / f"worker-{os.getpid()}"
    scratch.mkdir(exist_ok=True)
    is_bounded = False
    for line in sys.stdin:
        asked = json.loads(line)
        if "prepare" in asked:
            (folder / asked["prepare"]).mkdir(exist_ok=True)
            target_module(asked["prepare"]).prepare(folder / asked["prepare"])
            result = {}
        else:
            case = asked["case"] if "case" in asked else made_case(asked["target"], asked["seed"], asked["number"], folder)
            if asked.get("only_make"):
                result = {"case": case}
            else:
                if not is_bounded:
                    most = status_of("VmSize") + ADDRESSES
                    resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))
                    is_bounded = True
                signal.setitimer(signal.ITIMER_PROF, SECONDS)  # ends the process
                result = tried(case, folder, scratch)
                signal.setitimer(signal.ITIMER_PROF, 0)
        answers.write(json.dumps(result) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
