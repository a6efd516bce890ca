"""Bounds on the structure of JSON, checked before it is parsed.

Text is cheap: a megabyte of it is one string. A megabyte of `[{},{},…]` is 300,000 objects, which take a hundred times as much
memory and time. So the objects are counted first, with a few fast passes over the bytes.
"""

from __future__ import annotations

from typing import Any

DEEPEST = 8  # levels of what a request may nest


def has_more_values(body: bytes, most: int) -> bool:
    """Whether JSON holds more values than allowed; brackets and commas inside its strings do not count.

    >>> has_more_values(b'{"text": "[{,,,,"}', 3), has_more_values(b'{"a": [{}, {}, {}]}', 3)
    (False, True)
    """
    if _marks(body) <= most:  # also counts those in strings
        return False
    bare = body.replace(rb"\\", b"").replace(rb"\"", b"")  # without escapes, every quote begins or ends a string
    if bare.count(b'"') > 4 * (most + 1):  # strings are keys or values
        return True
    return _marks(b"".join(bare.split(b'"')[::2])) > most


def _marks(body: bytes) -> int:
    return body.count(b"{") + body.count(b"[") + body.count(b",")


def is_wide(body: bytes) -> bool:
    """Whether JSON is in UTF-16 or UTF-32, where bytes cannot be counted like that."""
    return body[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\x00" in body[:4]


def is_deeper(value: Any, most: int = DEEPEST) -> bool:
    """Whether lists and objects are nested in more levels than allowed.

    >>> is_deeper({"a": [1]}, 2), is_deeper({"a": [[1]]}, 2)
    (False, True)
    """
    if not isinstance(value, (list, dict)):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return most == 0 or any(is_deeper(each, most - 1) for each in inner)
