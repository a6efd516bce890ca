"""The edge: whatever happens becomes one sentence and an exit code.

Exit codes: 0 done; 2 something that the user can put right, or an interruption; 1 a defect of Ramify itself.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

INTERRUPTED = "interrupted; every file is as it was before, or complete."


began: float | None = None  # when this program was started, by the monotonic clock; None within another program


def main(load_app: Callable[[], Any] | None = None) -> None:
    """Run the command of the command line; being told to end is an interruption like any other."""
    global began
    began = moment_of_start()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        code = run(sys.argv[1:], load_app or _load_app)
    except KeyboardInterrupt:
        code = fail(INTERRUPTED)
    sys.exit(code)


def moment_of_start() -> float:
    """When this program was started, before any library was loaded; now, where nothing can tell."""
    now = time.monotonic()
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        running = float(Path("/proc/uptime").read_text().split()[0]) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return now
    return now - max(0.0, running)


def _load_app() -> Any:
    from ramify.cli.app import app

    return app


def run(arguments: list[str], load_app: Callable[[], Any] = _load_app) -> int:
    """Run a command and give its exit code; no mistake of a user's ends in a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure") and (stream.encoding or "").lower().replace("-", "") != "utf8":
            stream.reconfigure(encoding="utf-8", errors="replace")
    # imported here, so that an interruption while the libraries load is answered like any other
    from ramify.errors import RamifyError

    try:
        load_app()(arguments)
        return 0
    except SystemExit as stop:  # the library ends every command this way; 2 for a line that it cannot understand
        return stop.code if isinstance(stop.code, int) else 0
    except RamifyError as error:
        return fail(str(error))
    except MemoryError:
        return fail("there is not enough memory; use fewer documents or terms (--min-df, --max-features).")


def fail(message: str) -> int:
    """Say what is wrong, on standard error."""
    sys.stderr.write(f"ramify: {message}\n")
    return 2


def drop_output() -> None:
    """Send what is still to be written nowhere: whoever read it has gone, or there is no room."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
