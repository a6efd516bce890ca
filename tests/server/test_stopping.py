"""A server that is asked to stop does so, whatever its threads are at."""

import signal
import subprocess
import sys
import time
from pathlib import Path

from ramify.server import running
from ramify.server.services import Services
from ramify.server.settings import Settings

WAIT = 60  # seconds until the test gives up: no measurement


def serve_with_a_thread_at_work(model: str) -> None:
    """Run in a process of its own."""
    running.GRACE_SECONDS = running.LAST_SECONDS = 0.2
    services = Services(Settings({"m": Path(model)}, port=0))
    services.slow_pool._pool.submit(time.sleep, 10 * WAIT)
    running.run(services, lambda address: print(address, flush=True))


def test_a_thread_that_works_for_minutes_keeps_no_server_from_stopping(models):
    process = subprocess.Popen([sys.executable, __file__, str(models["support-nb"])], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline().startswith("http://")
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT) == 0
    finally:
        process.kill()
        process.stdout.close()


if __name__ == "__main__":
    serve_with_a_thread_at_work(sys.argv[1])
