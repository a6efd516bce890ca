"""``ramify serve``: models over HTTP, with a page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from ramify.cli.console import say
from ramify.cli.options import Threads, Trust
from ramify.errors import InputError, suggest
from ramify.server.settings import ConnectionLimits, Limits, Settings, name_models

LEVELS = ("info", "warning", "error")


def serve(
    models: Annotated[list[str], Argument(help="Model directories, or NAME=DIRECTORY; the first is the default.")],
    host: Annotated[str, Option(help="Address to listen on; other than this machine's needs --keys.")] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65_535, help="Port to listen on; 0 for any free one.")] = 8080,
    keys: Annotated[Path | None, Option(help="File of API keys, written by 'ramify keys add'.")] = None,
    is_open: Annotated[bool, Option("--open", help="Allow access without keys, also from other machines.")] = False,
    host_name: Annotated[list[str] | None, Option(help="A host name of the server; may be repeated.")] = None,
    reviews: Annotated[Path | None, Option(help="File of the review queue; created if missing.")] = Path("ramify-reviews.db"),
    review_below: Annotated[
        float | None, Option(min=0, max=1, help="Queue documents whose predictions are less probable than this.")
    ] = None,
    no_reviews: Annotated[bool, Option("--no-reviews", help="Disable the review queue.")] = False,
    trust: Trust = None,
    threads: Threads = -1,
    max_texts: Annotated[int, Option(min=1, help="Texts per request.")] = Limits().texts,
    max_characters: Annotated[int, Option(min=1, help="Characters per text.")] = Limits().characters,
    max_body_mb: Annotated[float, Option(min=0.001, max=1e6, help="Megabytes per request.")] = 8,
    max_upload_mb: Annotated[float, Option(min=0.001, max=1e6, help="Megabytes per uploaded table.")] = 1024,
    max_memory_mb: Annotated[float, Option(min=1, max=1e9, help="Megabytes that all requests together may take.")] = 2048,
    max_connections: Annotated[int, Option(min=1, help="Connections at a time.")] = ConnectionLimits().connections,
    timeout: Annotated[float, Option(min=0.1, max=1e6, help="Seconds per request.")] = Limits().seconds,
    log_format: Annotated[str | None, Option(help="plain or json (default: plain on a terminal, else json).")] = None,
    log_level: Annotated[str, Option(help="info, warning or error.")] = "info",
    log_text: Annotated[bool, Option("--log-text", help="Log the beginning of documents.")] = False,
) -> None:
    """Serve models over HTTP, with a web page.

    Listens on this machine only by default. SIGHUP reloads the models; SIGTERM and Ctrl+C finish the requests that are
    running, and stop.

    \b
    Examples:
      ramify serve out
      ramify serve tickets=out products=out2 --port 9000
      ramify serve out --review-below 0.6 --reviews reviews.db
      ramify keys add keys.json ann --role review
      ramify serve out --host 0.0.0.0 --keys keys.json
    """
    from ramify.parallel import count_workers

    body_bytes, upload_bytes = int(max_body_mb * (1 << 20)), int(max_upload_mb * (1 << 20))
    settings = Settings(
        name_models(models), host, port, keys, is_open, tuple(host_name or ()), None if no_reviews else reviews, review_below,
        count_workers(threads), log_text,
        Limits(max_texts, max_characters, body_bytes, upload_bytes, timeout, memory_bytes=int(max_memory_mb * 1e6)),
        ConnectionLimits(max_connections, max(1, max_connections // 2)),
    )  # fmt: skip
    if log_format not in (None, "plain", "json"):
        raise InputError(
            f"log format {log_format!r} is unknown; give plain or json.{suggest(str(log_format), ('plain', 'json'))}"
        )
    if log_level not in LEVELS:
        raise InputError(f"log level {log_level!r} is unknown; give {', '.join(LEVELS)}.{suggest(log_level, LEVELS)}")
    try:
        from ramify.server.running import run
        from ramify.server.services import Services
    except ImportError as error:
        raise InputError(f"serving needs {error.name}; install it with: pip install 'ramify[serve]'.") from None
    from ramify.server.middleware import log_to_stderr

    log_to_stderr(log_format == "json" or (log_format is None and not sys.stderr.isatty()), log_level)
    names = ", ".join(settings.models)
    run(Services(settings), lambda address: say(f"Serving {names} at {address}  (Ctrl+C stops)"))
