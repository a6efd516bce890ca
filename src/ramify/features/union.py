"""Blocks of features side by side: words, characters, and later others, each with a weight."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from itertools import islice, pairwise
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack
from sklearn.base import clone

from ramify.arguments import sized_entries
from ramify.errors import InputError, ModelError
from ramify.features.base import BaseVectorizer, Ints, State, check_fitted
from ramify.features.columns import Column
from ramify.features.vectorizer import MOST_COLUMNS, Vectorizer

SAMPLE = 1000  # texts whose length decides which blocks are used
SHORT, LONG = 30, 200  # words of a short and of a long text
UNSEGMENTED = 12  # characters of a word from which on a script has no spaces between words
FEW = 50  # texts below which rare n-grams are kept
RARE_CHARACTERS, RARE_PAIRS = 3, 5  # of at least 1,000 longer texts, the fewest that an n-gram or a pair of words must be in
COMMON = 0.1  # fraction of the documents: n-grams of characters in more of them say little, and are most of a long text
PAIRS_WEIGHT = 0.5  # of pairs of words beside single words
BLOCKS: dict[str, Any] = {Vectorizer.kind: Vectorizer, Column.kind: Column}  # that a union in a model file may have


def Words(**settings: Any) -> Vectorizer:
    """A block of words, weighted by tf-idf with 1 + ln(count); settings are those of :class:`Vectorizer`."""
    return Vectorizer(**{"sublinear_tf": True, **settings})


def Characters(shortest: int = 3, longest: int = 4, **settings: Any) -> Vectorizer:
    """A block of n-grams of characters within words, which have 3 to 4 characters by default."""
    return Vectorizer(**{"analyzer": "char_wb", "ngram_range": (shortest, longest), "sublinear_tf": True, **settings})


class FeatureUnion(BaseVectorizer):
    """Blocks of features side by side, each row of a block with unit length times the weight of the block.

    blocks: vectorizers (default: words and n-grams of characters that suit the length of the texts).
    weights: one per block (default: equal). words: settings of the blocks of words, where blocks are chosen.
    n_jobs: threads, as in scikit-learn.

    ``blocks_``, ``weights_``: those in use.

    >>> union = FeatureUnion([Words(), Characters(3, 3)]).fit(["red fox", "red cat"])
    >>> union.get_feature_names_out().tolist()[:5]
    ['cat', 'fox', 'red', '" ca"', '" fo"']
    >>> union.transform(["a red hen"]).shape
    (1, 12)
    """

    kind: ClassVar[str] = "union"
    blocks_: list[Any]
    weights_: list[float]

    def __init__(
        self,
        blocks: Sequence[Any] | None = None,
        weights: Sequence[float] | None = None,
        *,
        words: dict[str, Any] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.blocks, self.weights, self.words, self.n_jobs = blocks, weights, words, n_jobs

    def check_settings(self) -> None:
        """Refuse invalid settings, before any text is read."""
        blocks = [Words(**(self.words or {}))] if self.blocks is None else self.blocks
        if not isinstance(blocks, (list, tuple)) or not blocks or not all(isinstance(each, BaseVectorizer) for each in blocks):
            raise InputError(f"features is {self.blocks!r}; give a list of vectorizers, such as [Words(), Characters()].")
        for block in blocks:
            if isinstance(block, (Vectorizer, Column)):
                block.check_settings()
        _refuse_wide(blocks)
        given = self.weights
        if given is None:
            return
        is_right = isinstance(given, (list, tuple)) and all(isinstance(each, Real) and 0 < float(each) < 1e6 for each in given)
        if self.blocks is None or not is_right or len(given) != len(blocks):
            raise InputError(f"weights is {given!r}; give a number above 0 for each of the {len(blocks)} blocks of features.")

    def fit(self, texts: Iterable[str], y: Any = None) -> Self:
        """Find the terms of every block."""
        self.fit_count(texts)
        return self

    def fit_transform(self, texts: Iterable[str], y: Any = None) -> csr_array:
        """Fit and transform."""
        counts = self._fit_blocks(texts)
        return self._joined([block.weight_counts(part) for block, part in zip(self.blocks_, counts, strict=True)])

    def fit_count(self, texts: Iterable[str]) -> csr_array:
        """Fit every block, and return their counts side by side."""
        return _beside(self._fit_blocks(texts))

    def _fit_blocks(self, texts: Iterable[str]) -> list[csr_array]:
        """The counts of every block; of chosen blocks, one without any term is left out."""
        self.check_settings()
        texts = sized_entries(texts, "texts")
        if self.blocks is None:
            blocks, weights = choose_blocks(texts, self.words)
        else:
            blocks = [clone(block) for block in self.blocks]
            weights = [1.0] * len(blocks) if self.weights is None else [float(weight) for weight in self.weights]
        counts: list[csr_array] = []
        kept: list[tuple[Any, float]] = []
        problem: InputError | None = None
        for block, weight in zip(blocks, weights, strict=True):
            if "n_jobs" in block.get_params():
                block.set_params(n_jobs=self.n_jobs)
            try:
                counts.append(block.fit_count(texts))
                kept.append((block, weight))
            except InputError as error:
                problem = problem or error
                if self.blocks is not None:
                    raise
        if problem is not None and not kept:
            raise problem
        # rows have unit length in all; counts stay counts
        is_scaled = all(getattr(block, "weighting", "tf-idf") == "tf-idf" for block, _ in kept)
        length = float(np.sqrt(sum(weight**2 for _, weight in kept))) if is_scaled else 1.0
        self.blocks_, self.weights_ = [block for block, _ in kept], [weight / length for _, weight in kept]
        return counts

    def weight_counts(self, counts: csr_array) -> csr_array:
        """Apply the weighting of every block."""
        return self._joined([block.weight_counts(csr_array(part)) for block, part in self._parts(counts)])

    def transform(self, texts: Iterable[str]) -> csr_array:
        """The weighted matrix of texts."""
        check_fitted(self, "blocks_")
        texts = sized_entries(texts, "texts")
        return self._joined([self._ready(block).transform(texts) for block in self.blocks_])

    def _ready(self, block: Any) -> Any:
        if "n_jobs" in block.get_params() and block.n_jobs != self.n_jobs:
            block.n_jobs = self.n_jobs
        return block

    def _joined(self, blocks: list[csr_array]) -> csr_array:
        for block, weight in zip(blocks, self.weights_, strict=True):
            if weight != 1:
                block.data *= np.float32(weight)
        return _beside(blocks)

    def _parts(self, X: csr_array) -> list[tuple[Any, csr_array]]:
        ends = self.block_ends
        return [(block, X[:, start:end]) for block, (start, end) in zip(self.blocks_, pairwise([0, *ends]), strict=True)]

    @property
    def block_ends(self) -> list[int]:
        """Where the columns of each block end."""
        return [int(end) for end in np.cumsum([block.n_features_out for block in self.blocks_])]

    def select_columns(self, columns: Ints) -> None:
        """Use only some of the columns, increasing, from now on; a block without any is dropped."""
        check_fitted(self, "blocks_")
        blocks, weights = [], []
        for block, weight, (start, end) in zip(self.blocks_, self.weights_, pairwise([0, *self.block_ends]), strict=True):
            mine = columns[(columns >= start) & (columns < end)] - start
            if len(mine):
                narrow = copy(block)
                narrow.select_columns(mine)
                blocks.append(narrow)
                weights.append(weight)
        self.blocks_, self.weights_ = blocks, weights

    @property
    def n_features_out(self) -> int:
        """The number of columns of all blocks."""
        check_fitted(self, "blocks_")
        return self.block_ends[-1]

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The names of the columns; n-grams of characters are in quotation marks."""
        check_fitted(self, "blocks_")
        names = [_named(block, str(name)) for block in self.blocks_ for name in block.get_feature_names_out()]
        return np.asarray([*names, None], dtype=object)[:-1]

    def term_names(self, text: Any, columns: Ints) -> list[str]:
        """The names of columns that a text has."""
        return self._by_block(columns, lambda block, mine: [_named(block, name) for name in block.term_names(text, mine)])

    def locate(self, text: str) -> list[tuple[int, int, int]]:
        """(start, end, column) of every known term in a text, in the order of their starts."""
        found: list[tuple[int, int, int]] = []
        for block, first in zip(self.blocks_, [0, *self.block_ends], strict=False):
            if isinstance(block, (Vectorizer, FeatureUnion, Column)):
                found += [(start, end, column + first) for start, end, column in block.locate(text)]
        return sorted(found)

    def _by_block(self, columns: Ints, work: Callable[[Any, Ints], list[str]]) -> list[str]:
        """Names of columns in any order, found block by block."""
        names: dict[int, str] = {}
        for block, (start, end) in zip(self.blocks_, pairwise([0, *self.block_ends]), strict=True):
            mine = columns[(columns >= start) & (columns < end)]
            names |= dict(zip(mine.tolist(), work(block, mine - start), strict=True))
        return [names[column] for column in columns.tolist()]

    @property
    def count_settings(self) -> Any:
        """The settings for counting terms in shards: those of the first block; others read the texts again."""
        first = Words(**(self.words or {})) if self.blocks is None else self.blocks[0]
        return first.count_settings

    def summary(self) -> str:
        """The blocks in words, such as "words of 1–2, characters of 3–4"."""
        check_fitted(self, "blocks_")
        return ", ".join(block.summary() for block in self.blocks_)

    def state(self) -> State:
        """Plain values and arrays from which :meth:`from_state` makes an equal object."""
        check_fitted(self, "blocks_")
        listed: list[dict[str, Any]] = []
        arrays: dict[str, NDArray[Any]] = {}
        for number, (block, weight) in enumerate(zip(self.blocks_, self.weights_, strict=True)):
            values, named = block.state()
            listed.append({"kind": block.kind, "weight": weight, "features": values})
            arrays |= {f"{number}.{name}": array for name, array in named.items()}
        return {"blocks": listed, "chosen": self.blocks is None, "words": self.words}, arrays

    @classmethod
    def from_state(cls, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> FeatureUnion:
        """Make one from its state, after checking it."""
        listed = values["blocks"]
        if not isinstance(listed, list) or not listed:
            raise ModelError("the model has no blocks of features; train the model again.")
        blocks, weights = [], []
        for number, each in enumerate(listed):
            weight = each["weight"]
            is_number = isinstance(weight, float) and 0 < weight < 1e6
            if each["kind"] not in BLOCKS or not is_number:
                raise ModelError("a block of features is not one that Ramify writes; train the model again.")
            mine = {name.removeprefix(f"{number}."): array for name, array in arrays.items() if name.startswith(f"{number}.")}
            blocks.append(BLOCKS[each["kind"]].from_state(dict(each["features"]), mine))
            weights.append(weight)
        chosen = values["chosen"] is True
        made = cls(None if chosen else [clone(block) for block in blocks], None if chosen else weights, words=values["words"])
        made.check_settings()
        _refuse_wide(blocks)
        made.blocks_, made.weights_ = blocks, weights
        return made

    def __sklearn_is_fitted__(self) -> bool:
        return "blocks_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


def choose_blocks(texts: Iterable[str], words: dict[str, Any] | None = None) -> tuple[list[Vectorizer], list[float]]:
    """Blocks that suit the length of texts, and their weights.

    Short texts: words and pairs of words, and n-grams of 3 to 4 characters. Longer ones: words, pairs of words with half the
    weight, and n-grams of 4 characters that are in at most a tenth of the documents; above 200 words, no pairs. In scripts
    without spaces, n-grams of 1 to 3 characters. Rare n-grams and pairs are left out, since they say next to nothing and are
    most of the features.

    >>> blocks, weights = choose_blocks(["a short text"] * 60)
    >>> [(block.analyzer, block.ngram_range) for block in blocks], weights
    ([('word', (1, 2)), ('char_wb', (3, 4))], [1.0, 1.0])
    """
    few = [text for text in islice(iter(texts), SAMPLE) if isinstance(text, str)]
    n_words, n_characters = sum(len(text.split()) for text in few), sum(map(len, few))
    length, settings, rare = n_words / max(1, len(few)), words or {}, 1 if len(few) < FEW else 2
    hashing = settings.get("hashing")  # stores no vocabulary, and so knows no frequencies
    limits: dict[str, Any] = {"hashing": hashing} if hashing is not None else {"min_df": rare}
    if n_characters > UNSEGMENTED * max(1, n_words):
        return [Words(**settings), Characters(1, 3, analyzer="char", **limits)], [1.0, 1.0]
    if length <= SHORT or "ngram_range" in settings:
        return [Words(**{"ngram_range": (1, 2), **settings}), Characters(**limits)], [1.0, 1.0]
    rare_pairs: dict[str, Any] = dict(limits)
    if hashing is None and len(few) == SAMPLE:
        limits["min_df"], rare_pairs["min_df"] = RARE_CHARACTERS, RARE_PAIRS
    if hashing is None and len(few) >= FEW:
        limits["max_df"] = COMMON
    characters = Characters(4, 4, **limits)
    if length > LONG:
        return [Words(**settings), characters], [1.0, 1.0]
    pairs = Words(**{**rare_pairs, **settings, "ngram_range": (2, 2)})
    return [Words(**settings), pairs, characters], [1.0, PAIRS_WEIGHT, 1.0]


def _refuse_wide(blocks: Iterable[Any]) -> None:
    """Refuse blocks that have more columns by hashing than one block may have."""
    hashed = sum(int(block.hashing) for block in blocks if isinstance(block, Vectorizer) and block.hashing is not None)
    if hashed > MOST_COLUMNS:
        raise InputError(f"hashing of all blocks is {hashed:,}; give {MOST_COLUMNS:,} columns or fewer in all.")


def _beside(blocks: list[csr_array]) -> csr_array:
    if len(blocks) == 1:
        return blocks[0]
    return csr_array(hstack(blocks, format="csr", dtype=np.float32))


def _named(block: Any, name: str) -> str:
    return name if getattr(block, "analyzer", "word") == "word" else f'"{name}"'
