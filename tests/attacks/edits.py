"""Damage to bytes, JSON values and arrays, as plain values that can be written down and repeated."""

from __future__ import annotations

import base64
import gzip
import json
from copy import deepcopy
from typing import Any

import numpy as np

Edit = dict[str, Any]
Rng = np.random.Generator

DEEP = 100_000
WRAPPED = (0, 100_000, 2**62, 2**63 - 1, -(2**63), -(2**62))  # differences of neighbours that wrap around are all positive
DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "float32", "float64")


def pick(rng: Rng, values: Any) -> Any:
    """One of some values."""
    return values[int(rng.integers(len(values)))]


# ---- bytes ----------------------------------------------------------------------------------------------------------------

SNIPPETS = (
    "", "\x00", "\xff\xfe", "\xef\xbb\xbf", "\r", "\n", "\r\n", "\t", ",", ";", '"', '""', '"\n', "'", " ", ":", "[", "]", "{", "}",
    "null", "true", "NaN", "Infinity", "-1", "0", "1e999", "9" * 30, "9" * 5000, "\\u0000", "\\ud800", "\xed\xa0\x80", "\xc3\xa9",
    "\xe2\x80\xa8", "\x1f\x8b", "PAR1", "#", "../", "=1+1", "%s", "<script>", "[" * 1000, '{"a":' * 1000, "a," * 500, " > " * 200,
    "\x85", "\x1c", "\x0b", "\x7f", "1:1", "-5:2", "4294967296:1", "1:nan", "1:inf", "1:1e39", "id", "parent", "label", "text",
)  # fmt: skip


def random_byte_edit(rng: Rng, size: int) -> Edit:
    """One change of a file of so many bytes."""
    at, length = int(rng.integers(size + 1)), int(rng.choice([1, 1, 2, 4, 16, 64, 256, 4096]))
    kind = pick(rng, ("insert", "insert", "replace", "delete", "cut", "flip", "random", "repeat", "copy", "number"))
    edit: Edit = {"bytes": kind, "at": at, "length": length}
    if kind in ("insert", "replace"):
        edit["snippet"] = pick(rng, SNIPPETS)
    elif kind == "random":
        edit["seed"] = int(rng.integers(2**31))
    elif kind == "repeat":
        edit["times"] = int(rng.choice([2, 10, 100, 1000]))
    elif kind == "copy":
        edit["to"] = int(rng.integers(size + 1))
    elif kind == "number":
        edit["value"], edit["width"] = (
            int(pick(rng, (0, 1, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**32 - 1, 2**62))),
            pick(rng, (1, 2, 4, 8)),
        )
    return edit


def edit_bytes(data: bytes, edit: Edit) -> bytes:
    """The bytes after a change."""
    at, length = min(int(edit["at"]), len(data)), int(edit["length"])
    before, part, after = data[:at], data[at : at + length], data[at + length :]
    match edit["bytes"]:
        case "insert":
            return before + edit["snippet"].encode("latin-1") + part + after
        case "replace":
            return before + edit["snippet"].encode("latin-1") + after
        case "delete":
            return before + after
        case "cut":
            return before
        case "flip":
            return before + bytes(byte ^ (1 << (at + k) % 8) for k, byte in enumerate(part)) + after
        case "random":
            return before + np.random.default_rng(edit["seed"]).bytes(len(part)) + after
        case "repeat":
            return before + part * int(edit["times"]) + after
        case "copy":
            to = min(int(edit["to"]), len(data))
            return data[:to] + part + data[to:]
        case "number":
            width = int(edit["width"])
            return before + (edit["value"] % 256**width).to_bytes(width, "big") + data[at + width :]
    raise ValueError(edit)


def pack(data: bytes) -> str:
    """Bytes for a recipe."""
    return base64.b64encode(gzip.compress(data, mtime=0)).decode()


def unpack(text: str) -> bytes:
    """The bytes of a recipe."""
    return gzip.decompress(base64.b64decode(text))


# ---- JSON -----------------------------------------------------------------------------------------------------------------

LITERALS = {"deep": "[" * DEEP + "]" * DEEP, "deep object": '{"a":' * 5000 + "1" + "}" * 5000, "huge": "9" * 4000, "NaN": "NaN"}
VALUES = (
    None, True, False, 0, -1, 1, 2, 3, 255, 2**31 - 1, 2**31, 2**53, 2**63 - 1, 2**63, 2**64, -(2**63), 10**400, 0.0, 0.5, -0.5, 1.5,
    1e-320, 1e30, 1e300, -1e300, "", "a", "NaN", "inf", "None", "0", "-1", "\x00", "\ud800", "é", "x" * 3000, [], {}, [[]], [None], [0],
    [-1], [1, 2], [2, 1], ["a"], ["a", "a"], [1e300], [2**70], {"": 0}, {"a": None}, {"kind": "nb"}, [{}], [[1, 2], [3, 4]], "auto",
    {"literal": "deep"}, {"literal": "deep object"}, {"literal": "huge"}, {"literal": "NaN"},
)  # fmt: skip


WORDS = (
    "\x1b[31m", "\u202e", "\ud800", "\n", "\x00", "a" * 100_000, "../../x", "<script>", "=1+1", "(a+)+$", "auto", "svm", "words",
    "english", "char", "char_wb", "binary", "counts", "tf-idf", "fast", "exact", "sigmoid", "isotonic", "nb", "svm-tree", " ", "/",
)  # fmt: skip


def strings_in(value: Any) -> list[str]:
    """All strings in a JSON value."""
    if isinstance(value, str):
        return [value]
    parts = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for part in parts for text in strings_in(part)]


def paths_in(value: Any, above: tuple[Any, ...] = (), most: int = 6) -> list[tuple[Any, ...]]:
    """The places in a JSON value: of a long list the first ones, and the last."""
    found = [above]
    if isinstance(value, dict):
        for key in value:
            found += paths_in(value[key], (*above, key), most)
    elif isinstance(value, list):
        for k in {*range(min(most, len(value))), len(value) - 1} - {-1}:
            found += paths_in(value[k], (*above, k), most)
    return found


def random_json_edit(rng: Rng, value: Any, paths: list[tuple[Any, ...]]) -> Edit:
    """One change of a JSON value."""
    path = pick(rng, paths)
    found = at(value, path)
    kinds = ["put"] * 5 + ["drop"]
    kinds += ["scale"] if isinstance(found, (int, float)) and not isinstance(found, bool) else []
    kinds += ["shorten", "double", "reverse", "swap"] if isinstance(found, list) and found else []
    kinds += ["more"] if isinstance(found, dict) else []
    kinds += ["nudge", "extreme"] * 2 if isinstance(found, (int, float)) and not isinstance(found, bool) else []
    kinds += ["flip"] * 3 if isinstance(found, bool) else []
    kinds += ["word"] * 2 if isinstance(found, str) else []
    edit: Edit = {"json": pick(rng, kinds), "path": list(path)}
    if edit["json"] in ("put", "more"):
        edit["value"] = pick(rng, VALUES) if rng.random() < 0.8 else deepcopy(at(value, pick(rng, paths)))
    elif edit["json"] == "scale":
        edit["by"] = pick(rng, (-1, 0, 2, 10, 0.5, 1e6, 2**40))
    elif edit["json"] == "nudge":
        edit["by"] = pick(rng, (-1, 1))
    elif edit["json"] == "extreme":
        edit["value"] = pick(rng, (1e-300, 1e-30, 1e-9, 1e9, 1e30, 1e300, 10**6, 10**9, 10**12, 2**31))
    elif edit["json"] == "word":
        edit["value"] = pick(rng, WORDS) if rng.random() < 0.5 else pick(rng, strings_in(value))
    elif edit["json"] == "swap":
        edit["with"] = list(pick(rng, paths))
    return edit


def at(value: Any, path: Any) -> Any:
    """What is at a place; None if there is none."""
    for key in path:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def edit_json(value: Any, edit: Edit) -> Any:
    """The JSON value after a change; where a place is no longer there, the value as it is."""
    whole = [json.loads(json.dumps(value))]
    path = [0, *edit["path"]]
    above, key = at(whole, path[:-1]), path[-1]
    try:
        found = above[key]
        match edit["json"]:
            case "put":
                above[key] = deepcopy(edit["value"])
            case "drop" if len(path) > 1:
                del above[key]
            case "scale":
                above[key] = type(found)(found * edit["by"]) if abs(found) < 1e100 else -found
            case "nudge":
                above[key] = found + edit["by"]
            case "extreme":
                above[key] = type(found)(edit["value"])
            case "flip":
                above[key] = not found
            case "word":
                above[key] = edit["value"]
            case "shorten":
                above[key] = found[:-1]
            case "double":
                above[key] = found + found
            case "reverse":
                above[key] = found[::-1]
            case "swap":
                above[key] = deepcopy(at(whole[0], edit["with"]))
            case "more":
                found["extra"] = deepcopy(edit["value"])
    except (KeyError, IndexError, TypeError, OverflowError):
        pass
    return whole[0]


def render_json(value: Any) -> bytes:
    """JSON text, with the literals in their places."""
    text = json.dumps(value)
    for name, literal in LITERALS.items():
        text = text.replace(json.dumps({"literal": name}), literal)
    return text.encode()


# ---- arrays ---------------------------------------------------------------------------------------------------------------

INTEGERS = (-1, 0, 1, 2, 1000, 2**15, 2**31 - 1, -(2**31), 2**62, -(2**62), 2**63 - 1, -(2**63))
FLOATS = ("nan", "inf", "-inf", 0.0, -0.0, -1.0, 1.0, 2.0, 1e-320, 1e-30, 1e20, 3e38, -3e38, 1e150, 1e308, -1e308)
ARRAY_KINDS = (
    "put", "put", "put", "put", "fill", "wrapped", "scale", "reverse", "sort", "roll", "shuffle", "within", "cast", "bits", "shorten",
    "lengthen", "double", "empty", "column", "row", "scalar", "like", "exchange", "drop", "nudge", "nudge", "swap", "repeat",
    "alternate", "extremes",
)  # fmt: skip


def random_array_edit(rng: Rng, arrays: dict[str, Any]) -> Edit:
    """One change of one of some arrays."""
    name, kind = pick(rng, sorted(arrays)), pick(rng, ARRAY_KINDS)
    array, edit = arrays[name], {"array": name, "do": kind}
    if kind in ("put", "fill"):
        edit["value"] = pick(rng, INTEGERS if array.dtype.kind in "iub" else FLOATS)
        if kind == "put":
            edit["at"] = int(
                pick(rng, (0, 1, array.size // 2, array.size - 2, array.size - 1, int(rng.integers(array.size + 1))))
            )
    elif kind == "scale":
        edit["by"] = pick(rng, (-1, 0, 2, 1e6, 1e30, 1e-30))
    elif kind in ("shuffle", "within", "nudge", "swap", "repeat", "extremes"):
        edit["seed"] = int(rng.integers(2**31))
    elif kind == "alternate":
        edit["value"] = pick(rng, (3e38, 1e30, 1e19, 1e10, 1e-40, 1e308, 1e200))
    elif kind in ("cast", "bits"):
        edit["to"] = pick(rng, DTYPES)
    elif kind in ("like", "exchange"):
        edit["other"] = pick(rng, sorted(arrays))
    return edit


def _fitting(value: Any, dtype: np.dtype[Any]) -> Any:
    """A number as an array of a type can hold it; integers wrap around."""
    if dtype.kind in "fb":
        return dtype.type(float(value))
    value = 0 if isinstance(value, (str, float)) else value
    lowest, n = (-(2 ** (8 * dtype.itemsize - 1)) if dtype.kind == "i" else 0), 2 ** (8 * dtype.itemsize)
    return (value - lowest) % n + lowest


def edit_array(arrays: dict[str, Any], edit: Edit) -> None:
    """Change one of some arrays, in place in the dictionary."""
    name = edit["array"]
    if name not in arrays:
        return
    kind, array = edit["do"], arrays[name].copy()
    with np.errstate(all="ignore"):
        match kind:
            case "put" | "fill":
                flat, places = array.reshape(-1), slice(None)
                if kind == "put":
                    places = slice(*[min(max(0, edit["at"]), array.size - 1) + k for k in (0, 1)]) if array.size else slice(0)
                flat[places] = _fitting(edit["value"], array.dtype)
            case "wrapped":
                some = np.resize(np.array([*WRAPPED, 0], dtype=np.int64), array.size)
                some[-1:] = array.reshape(-1)[-1:].astype(np.int64)
                array = some.astype(array.dtype).reshape(array.shape)
            case "scale":
                array = (array * edit["by"]).astype(array.dtype)
            case "reverse":
                array = array[::-1].copy() if array.ndim else array
            case "sort":
                array = np.sort(array, axis=None).reshape(array.shape)
            case "roll":
                array = np.roll(array, 1)
            case "shuffle":
                array = np.random.default_rng(edit["seed"]).permutation(array.reshape(-1)).reshape(array.shape)
            case "within" if array.size and array.dtype.kind == "i":
                low, high = int(array.min()), int(array.max())
                array = np.random.default_rng(edit["seed"]).integers(low, high + 1, array.shape).astype(array.dtype)
            case "within" if array.size and array.dtype.kind in "fb":
                array = (np.random.default_rng(edit["seed"]).normal(size=array.shape) * 3).astype(array.dtype)
            case "cast":
                array = array.astype(edit["to"])
            case "bits":
                raw = array.tobytes()
                width = np.dtype(edit["to"]).itemsize
                array = np.frombuffer(raw[: len(raw) // width * width], dtype=edit["to"]).copy()
            case "nudge" | "swap" | "repeat" | "extremes" if array.size:
                _edit_some(array.reshape(-1), kind, np.random.default_rng(edit["seed"]))
            case "alternate" if array.dtype.kind == "f":
                array = np.resize(np.array([1, -1]) * min(edit["value"], float(np.finfo(array.dtype).max)), array.shape)
                array = array.astype(arrays[name].dtype)
            case "shorten":
                array = array[:-1].copy() if array.ndim else array
            case "lengthen":
                array = np.concatenate([array, array[-1:]]) if array.ndim else array
            case "double":
                array = np.concatenate([array, array]) if array.ndim else array
            case "empty":
                array = array.reshape(-1)[:0].copy()
            case "column":
                array = array.reshape(-1, 1)
            case "row":
                array = array.reshape(1, -1)
            case "scalar":
                array = array.reshape(-1)[:1].reshape(()) if array.size else array
            case "like" if edit["other"] in arrays:
                array = arrays[edit["other"]].copy()
            case "exchange" if edit["other"] in arrays:
                array, arrays[edit["other"]] = arrays[edit["other"]].copy(), array
            case "drop":
                del arrays[name]
                return
    arrays[name] = array


def _edit_some(flat: Any, kind: str, rng: Rng) -> None:
    """Change one or a few values of a vector, to others that look alike."""
    a, b = (int(k) for k in rng.integers(len(flat), size=2))
    match kind:
        case "nudge":
            flat[a] = flat[a] + rng.choice([-1, 1]) if flat.dtype.kind != "b" else not flat[a]
        case "swap":
            flat[[a, b]] = flat[[b, a]]
        case "repeat":
            flat[a] = flat[b]
        case "extremes" if flat.dtype.kind == "f":
            some = rng.random(len(flat)) < 0.3
            flat[some] = rng.choice([1.0, -1.0], some.sum()) * np.finfo(flat.dtype).max * rng.choice([1.0, 1e-3, 1e-10])
