"""Tables that are sent to the server: of which kinds they may be, and what is said of them."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import Query, Request

from ramify.server.errors import ApiError

KINDS = {
    "text/csv": "csv",
    "text/tab-separated-values": "tsv",
    "application/x-ndjson": "jsonl",
    "application/jsonl": "jsonl",
}
BODY: dict[str, Any] = {
    "required": True,
    "content": {kind: {"schema": {"type": "string", "format": "binary"}} for kind in KINDS},
}

Column = Annotated[str | None, Query(min_length=1, max_length=200)]


def content_kind(request: Request) -> str:
    """What the body is, by its Content-Type: csv, tsv or jsonl."""
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given not in KINDS:
        raise ApiError(415, "content-type", f"the content type is {given[:80]!r}; send {', '.join(KINDS)}.")
    return KINDS[given]


def without_options(message: str) -> str:
    """A message of the core without the dashes of the command line's options.

    >>> without_options("name it with --text; column 'no--such' is none.")
    "name it with text; column 'no--such' is none."
    """
    return re.sub(r"(?<![\w-])--(?=[a-z])", "", message)
