"""svmlight and LSHTC files: ``label,label feature:value feature:value …`` per line.

Labels are strings, separated by commas or commas and spaces. Column f of the matrix is feature f, whether the file counts from
0 or from 1.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.data.corpus import BadRow, Corpus
from ramify.data.csv_tables import numbered_lines
from ramify.data.encodings import open_binary
from ramify.data.limits import BAD_ROW_SIZE, ROW_SIZE, UnpackedSize, size_of
from ramify.errors import DataError
from ramify.parallel import stage

MAX_FEATURE = (1 << 31) - 2
MAX_VALUE = float(np.finfo(np.float32).max)
COMMENT = re.compile(rb"(?:^|\s)#")
PAIR = re.compile(rb"\d+:[^:]+")
FORM = "label,label feature:value feature:value …"


def read_vectors(path: Path) -> Corpus:
    """Read every line."""
    labels: list[list[str]] = []
    lines: list[int] = []
    bad: list[BadRow] = []
    pairs: list[NDArray[np.float64]] = []
    held = UnpackedSize.of(path, [path])
    with open_binary(path) as file, stage(f"reading {path.name}") as step:
        for number, line in numbered_lines(path, file):
            step.advance()
            line = COMMENT.split(line, maxsplit=1)[0]
            # some collections begin with a line of the numbers of documents, features and labels
            is_header = number == 1 and len(line.split()) == 3 and all(token.isdigit() for token in line.split())
            if not line.strip() or is_header:
                continue
            try:
                found, vector = _parse(line)
            except ValueError as error:
                held.add(BAD_ROW_SIZE)
                bad.append(BadRow(str(path), number, str(error)))
                continue
            held.add(ROW_SIZE + size_of(found) + vector.nbytes)
            labels.append(found)
            pairs.append(vector)
            lines.append(number)
    if not labels and not bad:
        raise DataError(f"{path} is empty; give one document per line: {FORM}")
    return Corpus(str(path), stack_pairs(pairs), labels, lines, bad, {"vectors": True})


def _parse(line: bytes) -> tuple[list[str], NDArray[np.float64]]:
    tokens = line.split()
    n_labels = 0 if line[:1].isspace() or PAIR.fullmatch(tokens[0]) else 1
    while 0 < n_labels < len(tokens) and tokens[n_labels - 1].endswith(b","):
        n_labels += 1
    if not all(PAIR.fullmatch(token) for token in tokens[n_labels:]):
        raise ValueError(f"not of the form {FORM}")
    try:
        names = [name for name in b" ".join(tokens[:n_labels]).decode().replace(",", " ").split() if name]
        pairs = np.array(b" ".join(tokens[n_labels:]).replace(b":", b" ").split(), dtype=np.float64).reshape(-1, 2)
    except UnicodeDecodeError:
        raise ValueError("not UTF-8") from None
    except ValueError:
        raise ValueError(f"not of the form {FORM}") from None
    if pairs.size and pairs[:, 0].max() > MAX_FEATURE:
        raise ValueError(f"a feature above {MAX_FEATURE:,}")
    if np.any(np.abs(pairs[:, 1]) > MAX_VALUE):
        raise ValueError("a value too large for a 32-bit number")
    return names, pairs


def stack_pairs(pairs: list[NDArray[np.float64]]) -> csr_array:
    """Stack (feature, value) pairs of documents into a matrix."""
    offsets = np.zeros(len(pairs) + 1, dtype=np.int64)
    np.cumsum([len(vector) for vector in pairs], out=offsets[1:])
    together = np.concatenate(pairs) if pairs else np.zeros((0, 2))
    features = together[:, 0].astype(np.int32)
    width = int(features.max()) + 1 if features.size else 1
    X = csr_array((together[:, 1].astype(np.float32), features, offsets), shape=(len(pairs), width))
    X.sum_duplicates()
    return X
