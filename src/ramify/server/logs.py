"""Logs of a server: one line an event, as JSON for machines or in words for a terminal; no document text unless asked for."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

SHOWN = 200  # characters of a document that a log may hold

log = logging.getLogger("ramify.server")


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record's fields, its time and its level."""
        values = {"time": _time_of(record), "level": record.levelname.lower(), "event": record.getMessage()}
        values |= getattr(record, "fields", {})
        if record.exc_info:
            values["exception"] = self.formatException(record.exc_info)
        return json.dumps(values, ensure_ascii=True, default=str)


class PlainLines(logging.Formatter):
    """Words for a person."""

    def format(self, record: logging.LogRecord) -> str:
        """The time, what happened, and the fields."""
        fields = " ".join(f"{name}={_plain(value)}" for name, value in getattr(record, "fields", {}).items())
        line = f"{_time_of(record)[11:19]} {record.getMessage()} {fields}".rstrip()
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def tell(event: str, level: int = logging.INFO, **fields: Any) -> None:
    """Log an event with its fields; those that are None are left out."""
    if log.isEnabledFor(level):
        log.log(level, event, extra={"fields": {name: value for name, value in fields.items() if value is not None}})


def log_to_stderr(as_json: bool, level: str = "info") -> None:
    """Send the logs of this process to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if as_json else PlainLines())
    for name in ("ramify", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level.upper())
    logging.getLogger("uvicorn").setLevel("WARNING")


def _time_of(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


def _plain(value: Any) -> str:
    """A value on one line; what could move the cursor is escaped."""
    text = json.dumps(value, ensure_ascii=True, default=str)
    return text.strip('"') if isinstance(value, str) and " " not in value else text
