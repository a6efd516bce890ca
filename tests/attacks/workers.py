"""Processes that try cases; one that crashes is replaced, and the crash belongs to the case that it was trying."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

PATIENCE = 1200  # seconds for one case, however busy the machine; a case that waits for ever is a finding
MANY = 2000  # cases after which a process is replaced


class Worker:
    """A process that tries one case after the other."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._n_cases = folder, 0
        self._process: subprocess.Popen[str] | None = None

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """What became of a case; a crash is a finding."""
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(question) + "\n")
            process.stdin.flush()
            ready = select.select([process.stdout], [], [], PATIENCE)[0]
            line = process.stdout.readline() if ready else None
        except BrokenPipeError:
            line = ""
        if line:
            return dict(json.loads(line))
        self.stop()
        code = process.returncode
        if line is None:
            return {"outcome": "finding", "message": f"it waited for more than {PATIENCE} seconds"}
        if code == -signal.SIGPROF:
            return {"outcome": "finding", "message": "it took too long"}
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return {"outcome": "finding", "message": f"the process crashed: {name}"}

    def _started(self) -> subprocess.Popen[str]:
        self._n_cases += 1
        if self._process is not None and self._n_cases % MANY == 0:
            self.stop()
        if self._process is None:
            paths = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
            environment = {
                **os.environ,
                "PYTHONPATH": os.pathsep.join(paths),
                "OMP_NUM_THREADS": "1",
                "OPENBLAS_NUM_THREADS": "1",
            }
            command = [sys.executable, "-m", "attacks.worker", str(self.folder)]
            log = open(self.folder / "worker.log", "a")  # noqa: SIM115
            with log:
                self._process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=environment
                )
        return self._process

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            if self._process.poll() is None and self._process.stdin is not None:
                self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    with suppress(BrokenPipeError):
                        pipe.close()
            self._process = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.stop()
