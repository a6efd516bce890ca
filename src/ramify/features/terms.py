"""Lists of terms as the bytes and offsets that kernels take, and back."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ramify.native import index_terms

PADDING = 8  # bytes that kernels may read behind the last term

Ints = NDArray[np.int64]
Packed = tuple[NDArray[np.uint8], Ints]


@dataclass(frozen=True)
class TermList:
    """Terms in UTF-8, one after the other: term t lies from offsets[t] to offsets[t + 1].

    >>> TermList.of(["tea", "thé"]).names
    ['tea', 'thé']
    """

    bytes: NDArray[np.uint8]
    offsets: Ints

    @classmethod
    def of(cls, names: Sequence[str]) -> TermList:
        """A list of given terms."""
        encoded = [name.encode("utf-8", "surrogatepass") for name in names]
        offsets = np.concatenate([[0], np.cumsum([len(term) for term in encoded])]).astype(np.int64)
        return cls(np.frombuffer(b"".join(encoded) + bytes(PADDING), dtype=np.uint8), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def packed(self) -> Packed:
        """Bytes and offsets."""
        return self.bytes, self.offsets

    @cached_property
    def names(self) -> list[str]:
        """The terms as strings."""
        content, ends = self.bytes[: int(self.offsets[-1])].tobytes(), self.offsets.tolist()
        if content.isascii():
            text = content.decode("ascii")
            return [text[a:b] for a, b in pairwise(ends)]
        return [content[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(ends)]

    def names_of(self, numbers: Ints) -> list[str]:
        """Some of the terms as strings, without a look at the others."""
        ends = zip(self.offsets[numbers].tolist(), self.offsets[numbers + 1].tolist(), strict=True)
        return [self.bytes[a:b].tobytes().decode("utf-8", "surrogatepass") for a, b in ends]

    @cached_property
    def index(self) -> tuple[NDArray[np.uint8], Ints, NDArray[np.uint64], int]:
        """What a kernel finds terms with; terms are hashed with a random seed, which nobody can know beforehand."""
        seed = secrets.randbits(64)
        return self.bytes, self.offsets, index_terms(self.bytes, self.offsets, seed), seed

    def take(self, numbers: Ints) -> TermList:
        """Some of the terms."""
        lengths = np.diff(self.offsets)[numbers]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        sources = np.repeat(self.offsets[numbers] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return TermList(np.concatenate([self.bytes[sources], np.zeros(PADDING, dtype=np.uint8)]), offsets)
