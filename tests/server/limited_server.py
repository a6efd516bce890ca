"""A server with other limits than its defaults, in a process of its own: model directory, limits as JSON, key file if any."""

import json
import sys
from pathlib import Path

from ramify.server.middleware import log_to_stderr
from ramify.server.running import run
from ramify.server.services import Services
from ramify.server.settings import ConnectionLimits, Settings


def main(model: str, limits: str, keys: str | None = None) -> None:
    """Serve until stopped; the first line of standard output is the address."""
    log_to_stderr(as_json=True)
    made = ConnectionLimits(**json.loads(limits))
    settings = Settings({"m": Path(model)}, port=0, keys=None if keys is None else Path(keys), connection_limits=made)
    run(Services(settings), lambda address: print(address, flush=True))


if __name__ == "__main__":
    main(*sys.argv[1:])
