"""Blocks of documents, decided one after the other or side by side; each document for itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.execution import choose_executor, count_workers

Result = TypeVar("Result")
BLOCK_BYTES = 1 << 22
LEAST = 1 << 15  # numbers that are worth a block of their own
LANES = 4  # documents that a kernel takes at a time


def over_rows(
    S: NDArray[np.floating[Any]], work: Callable[[NDArray[np.floating[Any]]], Result], n_jobs: int | None
) -> list[Result]:
    """Apply `work` to blocks of rows, as float32 or float64, in order."""
    if S.dtype not in (np.float32, np.float64):
        S = S.astype(np.float64)
    n_rows, width = S.shape[0], max(1, S.shape[1])
    share = -(-n_rows // (4 * count_workers(n_jobs)))
    most = min(max(share, LEAST // width, LANES), BLOCK_BYTES // (S.itemsize * width))
    size = max(LANES, most // LANES * LANES)
    blocks = [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]
    return list(choose_executor(n_jobs).map(lambda rows: work(np.ascontiguousarray(S[rows])), blocks))


def stack_labels(parts: list[tuple[NDArray[np.int64], NDArray[np.int32]]], shape: tuple[int, ...]) -> csr_array:
    """Label rows of blocks, as offsets and nodes each, as one boolean matrix."""
    ends = np.cumsum([len(nodes) for _, nodes in parts])
    starts = np.concatenate([[0], ends[:-1]])
    offsets = [offsets[1:] + start for (offsets, _), start in zip(parts, starts, strict=False)]
    nodes = np.concatenate([nodes for _, nodes in parts]) if parts else np.zeros(0, dtype=np.int32)
    indptr = np.concatenate([[0], *offsets])
    return csr_array((np.ones(len(nodes), dtype=bool), nodes, indptr), shape=shape)
