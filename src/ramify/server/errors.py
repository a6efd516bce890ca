"""Errors over HTTP: a status, a code for programs, and a sentence for people."""

from __future__ import annotations

from ramify.errors import RamifyError


class ApiError(RamifyError):
    """An error with its HTTP status and code."""

    def __init__(self, status: int, code: str, message: str, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.retry_after = status, code, retry_after


def too_large(limit: int) -> ApiError:
    """The body is larger than allowed."""
    return ApiError(413, "too-large", f"the body has more than {limit:,} bytes; send less at a time, or use /v1/batch.")


PACKED = {b"\x1f\x8b": "gzip", b"PAR1": "Parquet", b"PK\x03\x04": "zip"}  # compressed: may expand to any size


def refuse_packed(start: bytes) -> None:
    """Refuse a compressed table by its first bytes."""
    for magic, name in PACKED.items():
        if start.startswith(magic):
            raise ApiError(415, "packed", f"the table is compressed ({name}); send plain CSV, TSV or NDJSON.")


def defect() -> ApiError:
    """A bug; the log has its traceback."""
    return ApiError(500, "defect", "something went wrong inside the server; its log says more.")


def busy(what: str = "too many documents are waiting") -> ApiError:
    """The server is at its limit."""
    return ApiError(503, "busy", f"the server is busy: {what}; try again in a moment.", retry_after=1)


def too_slow(seconds: float) -> ApiError:
    """The request took too long."""
    return ApiError(504, "too-slow", f"the prediction took longer than {seconds:g} seconds; send fewer or shorter texts.")


def gone() -> ApiError:
    """The client has closed its connection; nobody reads this."""
    return ApiError(499, "gone", "the client disconnected.")


def crowded_out() -> ApiError:
    """Another table took the place of one whose client kept the server waiting."""
    return ApiError(503, "crowded-out", "another table needed the place, since this one came too slowly; send it again.", 1)
