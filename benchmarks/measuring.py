"""One row of the results: the peer as a program of its own, then the quality of what it predicted."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import tempfile
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Split
from environments import HERE, InstallError, Row, python_for
from objective import primal_objective, quality

Result = dict[str, Any]
THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")


class PeerError(Exception):
    """A peer did not finish; the message says why, in a few words."""


def measure(row: Row, split: Split, problem: Path, *, envs: Path, threads: int, timeout: float) -> Result:
    """Figures of a row, or the reason why there are none."""
    about = {"threads": threads, "machine": host_facts(), "date": datetime.now(UTC).isoformat(timespec="seconds")}
    with tempfile.TemporaryDirectory() as folder:
        try:
            start(row, problem, Path(folder), python_for(row, envs), threads, timeout)
            return {**about, **_judge(split, Path(folder))}
        except (InstallError, PeerError) as error:
            return {**about, "failed": str(error)}


def host_facts() -> dict[str, Any]:
    """What the figures depend on beside the programs."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_gb": round(_memory_bytes() / 1e9, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "ramify": version("ramify"),
    }


def start(row: Row, problem: Path, out: Path, python: Path, threads: int, timeout: float) -> None:
    """Run a peer in a process of its own; what it finds is left in `out`."""
    limits = [f"--threads={threads}", f"--memory={_memory_bytes()}"]
    command = [str(python), "-m", f"peers.{row.module}", str(problem), str(out), *row.options, *limits]
    environment = {**os.environ, **dict.fromkeys(THREAD_LIMITS, str(threads)), **row.variables}
    try:
        done = subprocess.run(command, cwd=HERE, env=environment, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        raise PeerError(f"took longer than {timeout:,.0f} s") from None
    if done.returncode:
        raise PeerError(_reason(done))


def _judge(split: Split, folder: Path) -> Result:
    result = json.loads((folder / "result.json").read_text())
    result["docs_per_second"] = split.X_test.shape[0] / result["predict_seconds"]
    result |= quality(split, np.load(folder / "predicted.npy"))
    if (folder / "weights.npy").is_file():
        result["objective"] = primal_objective(split, folder / "weights.npy", folder / "classes.npy", result["C"])
    return result


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    if done.returncode < 0:
        return f"ended by {signal.Signals(-done.returncode).name}, often for want of memory"
    said = [line for line in done.stderr.splitlines() if line.strip()]
    return said[-1].strip()[:200] if said else f"ended with status {done.returncode}"


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _cpu_model() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
