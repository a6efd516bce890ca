"""Runs a scenario in a forked child whose n-th system call fails, and judges what is left.

The process that forks was started with the library of failing_calls.c preloaded (see :func:`start`), has imported everything,
and runs no threads. A trial copies the scenario's folder, forks a child that arms the library and runs the steps, and forks
another one that looks at what is left, runs the scenario again without a fault, and looks again.
"""

from __future__ import annotations

import ctypes
import errno
import gc
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from attacks.faults.scenarios import SCENARIOS, Ended, Place, Scenario
from ramify.errors import RamifyError

HERE = Path(__file__).parent
FOLDER = "FAULTS_BELOW"
SECONDS = 600  # after which a child hangs
COMPILERS = ("c++", "g++", "clang++", "cc")
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS", "RAYON_NUM_THREADS")
COUNT, ONCE, FROM_NOW_ON, SHORT, KILL_BEFORE, KILL_AFTER, REPORT_AFTER = range(7)  # as in failing_calls.c
RANDOM = re.compile(r"[0-9a-f]{32}|(?<=\.tmp)\w{6}|(?<=\.ramify-)\w{8}|(?<=/tmp)\w{8}(?=/|$)")
CLEANING = ("unlink", "rmdir")


class Fault(NamedTuple):
    """How calls fail. calls: that can fail so; all if empty."""

    name: str
    kind: int
    code: int = 0
    calls: tuple[str, ...] = ()

    def fits(self, call: str) -> bool:
        return not self.calls or call in self.calls


WRITES, TAKES_ROOM = ("write", "pwrite"), ("create", "write", "pwrite", "mkdir", "link", "ftruncate", "fsync", "fdatasync")
# calls that Python and Rust make again; SQLite reports fdatasync, the only one to make it
WAITS = ("open", "create", "write", "pwrite", "fsync", "ftruncate")
FAULTS = (
    Fault("EIO", ONCE, errno.EIO),
    Fault("EIO from now on", FROM_NOW_ON, errno.EIO),
    Fault("ENOSPC", ONCE, errno.ENOSPC, (*TAKES_ROOM, "rename", "swap", "close")),
    Fault("ENOSPC from now on", FROM_NOW_ON, errno.ENOSPC, TAKES_ROOM),
    Fault("EINTR", ONCE, errno.EINTR, WAITS),
    Fault("EINTR of close", ONCE, errno.EINTR, ("close",)),
    Fault("short write", SHORT, 0, WRITES),
    Fault("short write, then ENOSPC", SHORT, errno.ENOSPC, WRITES),
    Fault("EIO reported of what was done", REPORT_AFTER, errno.EIO, ("rename", "swap", "fsync", "fdatasync")),
    Fault("killed before", KILL_BEFORE),
    Fault("killed after", KILL_AFTER),
)
KILLS = (KILL_BEFORE, KILL_AFTER)
SUCCEEDS = ("EINTR", "short write")  # the system asks to try again, which is no failure


# ---- the process that forks ---------------------------------------------------------------------------------------------


def compile_library(root: Path) -> Path:
    """Compile failing_calls.c into a directory."""
    made = root / "failing_calls.so"
    compiler = next(found for name in COMPILERS if (found := shutil.which(name)))
    language = "c" if compiler.endswith("/cc") else "c++"
    flags = ["-x", language, "-O1", "-Wall", "-Wextra", "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, "-o", made, HERE / "failing_calls.c"], check=True)
    return made


def start(root: Path, module: str, arguments: Sequence[str], *, show: bool = False) -> subprocess.CompletedProcess[str]:
    """Run a module with the library preloaded, for faults below the folder ``work`` of a directory."""
    library = compile_library(root)
    environment = os.environ | dict.fromkeys(ONE_THREAD, "1") | {"LD_PRELOAD": str(library), FOLDER: str(root / "work")}
    environment |= {"PYTHONPATH": str(HERE.parent.parent)}
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.run(command, env=environment, text=True, check=False, capture_output=not show)


def fork(act: Callable[[], Any], place: Place, armed: tuple[int, Fault] | None = None) -> Ended:
    """Run a function in a child; its outputs go to files outside of the folder."""
    for name in ("stdout", "stderr", "acknowledged", "trace", "answer"):
        (place.root / name).write_bytes(b"")
    child = os.fork()
    if not child:
        _run_child(act, place, armed)
    code = _wait(child)
    read = {name: (place.root / name).read_text(errors="replace") for name in ("stderr", "acknowledged", "trace", "answer")}
    trace = [line.split("\t") for line in read["trace"].splitlines()]
    answer = json.loads(read["answer"]) if read["answer"] else None
    return Ended(code, read["stderr"], read["acknowledged"].splitlines(), trace, answer)


def _run_child(act: Callable[[], Any], place: Place, armed: tuple[int, Fault] | None) -> None:
    code = 1
    try:
        for handle, name in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(place.root / name, os.O_WRONLY), handle)
        trace = os.open(place.root / "trace", os.O_WRONLY | os.O_APPEND)
        place.told = os.open(place.root / "acknowledged", os.O_WRONLY | os.O_APPEND)
        signal.alarm(SECONDS)
        if armed is not None:
            at, fault = armed
            ctypes.CDLL(None).faults_arm(
                ctypes.c_long(at), fault.kind, fault.code, ctypes.c_long(trace), int(place.refuses_swaps)
            )
        answer = act()
        ctypes.CDLL(None).faults_disarm()
        (place.root / "answer").write_text(json.dumps(answer))
        code = 0
    except RamifyError as error:
        sys.stderr.write(f"ramify: {error}\n")
        code = 2
    except SystemExit as stop:
        code = int(stop.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        ctypes.CDLL(None).faults_disarm()
        with suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _wait(child: int) -> int | None:
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return None if code == -signal.SIGALRM else code


# ---- a scenario without a fault -----------------------------------------------------------------------------------------


@dataclass
class Known:
    """What a scenario does without a fault: its calls, what is there before and after every step, and the files at the end."""

    scenario: Scenario
    place: Place
    calls: list[list[str]] = field(default_factory=list)
    outcomes: list[Any] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    looked: dict[str, list[str]] = field(default_factory=dict)


def know(scenario: Scenario, root: Path) -> Known:
    """Prepare a scenario, run it without a fault, and load into this process whatever it has used."""
    known = Known(scenario, Place(root, refuses_swaps=scenario.refuses_swaps))
    for name in ("inputs", "before", "work"):
        shutil.rmtree(root / name, ignore_errors=True)
        (root / name).mkdir()
    prepared = fork(lambda: (scenario.prepare(known.place), sorted(sys.modules))[1], known.place)
    _succeed(prepared, scenario, "preparing it")
    _import(prepared.answer)
    shutil.copytree(known.place.work, root / "before", dirs_exist_ok=True)
    outcomes = fork(
        lambda: [scenario.outcome(known.place), *(_step_outcome(known, step) for step in scenario.steps)], known.place
    )
    _succeed(outcomes, scenario, "its steps")
    known.outcomes = outcomes.answer
    _reset(known.place)
    clean = fork(lambda: (_run_steps(scenario, known.place), sorted(sys.modules))[1], known.place, (0, Fault("", COUNT)))
    _succeed(clean, scenario, "a run without a fault")
    known.calls, known.files = clean.trace, _files_in(known.place.work)
    _import(clean.answer)
    gc.freeze()  # what children collect need not look at it, which would copy its pages
    return known


def _import(modules: list[str]) -> None:
    """Import what a child has used, so that the next one need not."""
    for name in modules:
        if name.startswith(("ramify", "safetensors", "sqlite3", "typer", "rich", "polars", "sklearn", "scipy", "numpy")):
            with suppress(ImportError):
                import_module(name)


def _step_outcome(known: Known, step: Callable[[Place], None]) -> Any:
    step(known.place)
    return known.scenario.outcome(known.place)


def _succeed(ended: Ended, scenario: Scenario, what: str) -> None:
    if ended.code != 0:
        raise RuntimeError(f"{scenario.name}: {what} failed ({ended.code}):\n{ended.stderr}")


def _reset(place: Place) -> None:
    shutil.rmtree(place.work)
    shutil.copytree(place.root / "before", place.work)


def _run_steps(scenario: Scenario, place: Place) -> None:
    for number, step in enumerate(scenario.steps, start=1):
        try:
            step(place)
        except RamifyError as error:
            if not scenario.goes_on:
                raise
            sys.stderr.write(f"ramify: {error}\n")
        else:
            place.acknowledge(str(number))


def _files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


# ---- a trial ------------------------------------------------------------------------------------------------------------


class Finding(NamedTuple):
    """What is wrong after a fault."""

    scenario: str
    fault: str
    at: int
    call: str
    problem: str

    def __str__(self) -> str:
        return f"{self.scenario}, {self.fault} at call {self.at} ({self.call}): {self.problem}"


def attempt(known: Known, fault: Fault, at: int) -> list[Finding]:
    """Run a scenario with a fault at the given call, and say what is wrong then."""
    scenario, place = known.scenario, known.place
    _reset(place)
    ended = fork(lambda: _run_steps(scenario, place), place, (at, fault))
    problems = [] if ended.failing is None else _judge_end(known, fault, ended)
    call = " ".join(known.calls[at - 1][1:] if ended.failing is None else ended.failing[1:-1])
    seen = _digest_of(place, ended)
    if seen not in known.looked:
        left = fork(lambda: _inspect(known, ended), place)
        failed = [f"looking at what is left ended with {left.code}: {left.stderr}"]
        known.looked[seen] = failed if left.answer is None else left.answer
    return [Finding(scenario.name, fault.name, at, call, problem) for problem in problems + known.looked[seen]]


def _digest_of(place: Place, ended: Ended) -> str:
    """What a look at the folder depends on: what is in it, apart from random names, and what was acknowledged and said."""
    names = [
        (RANDOM.sub("*", str(path.relative_to(place.work))), path.stat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in place.work.rglob("*")
    ]
    told = (ended.acknowledged, ended.code == 0, ended.stderr if "unchanged" in ended.stderr else "")
    return hashlib.sha256(repr((sorted(names), told)).encode()).hexdigest()


def _judge_end(known: Known, fault: Fault, ended: Ended) -> list[str]:
    """What is wrong with the way in which a run with a fault ended."""
    if fault.kind in KILLS:
        return [] if ended.code == -signal.SIGKILL else [f"the run was not killed, but ended with {ended.code}"]
    if ended.code is None:
        return ["the run hangs"]
    problems = []
    lines = ended.stderr.splitlines()
    errors = [line for line in lines if line.startswith("ramify: ")]
    if "Traceback" in ended.stderr or ended.code not in (0, 2):
        problems.append(f"ended with {ended.code} and: {lines[-1] if lines else ''}")
    elif ended.code == 2 and (len(errors) != 1 or lines[-1] != errors[0] or len(errors[0]) < 30 or "None" in errors[0]):
        problems.append(f"the error is not one clear sentence: {ended.stderr!r}")
    if fault.name in SUCCEEDS and ended.code != 0:
        problems.append(f"the run did not try again: {ended.stderr!r}")
    strange = sorted(set(_files_in(known.place.work)) - set(known.files) - set(_files_in(known.place.root / "before")))
    if fault.kind == ONCE and strange and not _is_cleaning(ended) and not known.scenario.may_leave:
        problems.append(f"left {', '.join(strange)}")
    return problems


def _is_cleaning(ended: Ended) -> bool:
    """Whether the call that failed was to remove something; it then stays until the next run."""
    assert ended.failing is not None
    before = ended.trace[: ended.trace.index(ended.failing)]
    is_done = any(line[1] in (*CLEANING, "rename", "swap") for line in before)  # then folders are only opened to empty them
    return ended.failing[1] in CLEANING or (is_done and ended.failing[1] in ("open", "close", "opendir"))


def _inspect(known: Known, ended: Ended) -> list[str]:
    """What is wrong with what is there, and with another run without a fault; in a child of its own."""
    scenario, place = known.scenario, known.place
    problems = []
    try:
        found = json.loads(json.dumps(scenario.outcome(place)))
        problems += scenario.judge(known.outcomes, found, ended)
    except Exception as error:
        problems.append(f"cannot be read: {type(error).__name__}: {error}")
    try:
        for step in scenario.again or scenario.steps:
            step(place)
        if (found := json.loads(json.dumps(scenario.outcome(place)))) != known.outcomes[-1]:
            problems.append(f"another run gives {found} instead of {known.outcomes[-1]}")
        if extra := sorted(set(_files_in(place.work)) ^ set(known.files)):
            problems.append(f"another run leaves {', '.join(extra)}")
    except (Exception, SystemExit) as error:
        said = (place.root / "stderr").read_text().splitlines()
        problems.append(f"another run fails: {type(error).__name__}: {error} {said[-1:]}")
    return problems


def plan(known: Known, faults: Sequence[Fault], calls: Sequence[str] | None) -> list[tuple[Fault, int]]:
    """Every fault at every call where it can happen."""
    meant = [line for line in known.calls if calls is None or line[1] in calls]
    return [(fault, int(line[0])) for fault in faults for line in meant if fault.fits(line[1])]


@dataclass
class Result:
    """The trials of a scenario."""

    scenario: str
    calls: int
    trials: int
    seconds: float
    findings: list[Finding]


def try_all(
    scenario: Scenario,
    root: Path,
    faults: Sequence[Fault] = FAULTS,
    calls: Sequence[str] | None = None,
    most: int | None = None,
) -> Result:
    """All faults at all calls of a scenario, or at some kinds of calls; so many of them at most, evenly spaced."""
    start = time.monotonic()
    known = know(scenario, root)
    planned = plan(known, faults, calls)
    chosen = planned if most is None else planned[:: -(-len(planned) // most)]
    findings = [finding for fault, at in chosen for finding in attempt(known, fault, at)]
    return Result(scenario.name, len(known.calls), len(chosen), time.monotonic() - start, findings)


def new_root() -> tempfile.TemporaryDirectory[str]:
    """A directory in memory, if there is one: thousands of trials flush files to disk."""
    memory = Path("/dev/shm")
    return tempfile.TemporaryDirectory(prefix="ramify-faults-", dir=memory if os.access(memory, os.W_OK) else None)


def named(name: str) -> Scenario:
    return next(scenario for scenario in SCENARIOS if scenario.name == name)
