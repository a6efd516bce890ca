"""Texts as rows of weighted terms."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.utils import murmurhash3_32

from ramify import native
from ramify.errors import InputError, ModelError, suggest
from ramify.features import term_counts
from ramify.features.base import BaseVectorizer, Ints, State, check_fitted, checked_columns
from ramify.features.streaming import CountSettings, ShardedTexts
from ramify.features.term_counts import Rows, TermList
from ramify.features.text_analysis import TermRules, locate_terms, make_rules
from ramify.parallel import SerialExecutor, choose_executor, count_workers, stage

WEIGHTINGS = ("tf-idf", "counts", "binary")
MOST_COLUMNS = 1 << 28
WIDE = 1 << 24  # columns up to which a table of them all renumbers the selected ones
LONE_SURROGATE = re.compile("[\ud800-\udfff]")

Result = TypeVar("Result")


class Vectorizer(BaseVectorizer):
    """Turn texts into a CSR float32 matrix, documents × terms; equals scikit-learn's TfidfVectorizer, on all cores.

    weighting: "tf-idf" (smoothed idf, rows of unit length), "counts" or "binary".
    analyzer: "word", "char" (n-grams of characters), or "char_wb" (n-grams of characters within words).
    ngram_range: fewest and most words or characters in a term.
    stop_words: "english" (scikit-learn's), "english-long" (more words), a list, or None.
    stemmer: a Snowball language such as "english" or "porter", or None; needs ``ramify[stem]``.
    min_df, max_df: terms in fewer or more documents are left out; a float is a fraction of the documents.
    max_features: use only the terms with the most occurrences.
    sublinear_tf: 1 + ln(count) in place of the count, for tf-idf.
    hashing: a number of columns. Terms go to columns by their hash, and no vocabulary is stored: memory is bounded, and several
    terms may share a column.
    n_jobs: threads, as in scikit-learn.

    Texts may come from any iterator; `fit` holds only the block that it reads.

    >>> Vectorizer(weighting="counts").fit_transform(["red fox", "red red"]).toarray()
    array([[1., 1.], [0., 2.]], dtype=float32)
    >>> Vectorizer(analyzer="char_wb", ngram_range=(3, 3)).fit(["red ox"]).terms_.tolist()
    [' ox', ' re', 'ed ', 'ox ', 'red']
    """

    kind: ClassVar[str] = "vectorizer"
    idf_: NDArray[np.float32] | None
    _terms: TermList | None
    _is_selected: bool
    _fitted_with: tuple[int | None, str]  # hashing and weighting at fit
    _cached_rules: tuple[str, TermRules] | None = None

    def __init__(
        self,
        weighting: str = "tf-idf",
        *,
        analyzer: str = "word",
        ngram_range: tuple[int, int] = (1, 1),
        lowercase: bool = True,
        stop_words: str | Sequence[str] | None = None,
        stemmer: str | None = None,
        min_df: int | float = 1,
        max_df: int | float = 1.0,
        max_features: int | None = None,
        sublinear_tf: bool = False,
        hashing: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.weighting, self.sublinear_tf = weighting, sublinear_tf
        self.analyzer = analyzer
        self.ngram_range, self.lowercase, self.stop_words, self.stemmer = ngram_range, lowercase, stop_words, stemmer
        self.min_df, self.max_df, self.max_features = min_df, max_df, max_features
        self.hashing, self.n_jobs = hashing, n_jobs

    def fit(self, texts: Iterable[str], y: Any = None) -> Self:
        """Find the terms and their document frequencies."""
        self.check_settings()
        if self.hashing is not None:
            self._fit_columns(self._hashed_blocks(texts, int(self.hashing)))
            return self
        sizes: list[int] = []

        def count(some: list[str]) -> Any:
            sizes.append(len(some))
            return native.count_new_terms(some, self._rules().for_kernel(some), False)

        self._fit_terms(*term_counts.merge_all(self._map(texts, count)), sum(sizes))
        return self

    def fit_transform(self, texts: Iterable[str], y: Any = None) -> csr_array:
        """Fit and transform in one pass over the texts."""
        return self.weight_counts(self.fit_count(texts))

    def fit_count(self, texts: Iterable[str]) -> csr_array:
        """Fit, and return the counts of the terms, without weights."""
        self.check_settings()
        executor = choose_executor(self.n_jobs)
        sharded = texts if isinstance(texts, ShardedTexts) and texts.settings == self.count_settings else None
        if self.hashing is not None:
            n_columns = int(self.hashing)
            blocks = [] if sharded is not None else list(self._hashed_blocks(texts, n_columns))
            X = sharded.matrix(executor, None, n_columns) if sharded is not None else term_counts.stacked(blocks, n_columns)
            self._fit_columns(iter([(X.indptr, X.indices, X.data)]))
            return X
        if sharded is not None:
            found, documents, occurrences = sharded.terms(executor)
            kept = self._fit_terms(found, documents, occurrences, len(sharded))
            return sharded.matrix(executor, self._terms, len(kept), n_entries=int(documents[kept].sum()))
        parts = list(self._map(texts, lambda some: native.count_new_terms(some, self._rules().for_kernel(some), True)))
        found, documents, occurrences, positions = term_counts.merge(TermList.of([]), np.zeros(0), np.zeros(0), parts)
        kept = self._fit_terms(found, documents, occurrences, sum(len(part[4][0]) - 1 for part in parts))
        numbers = np.full(len(found), -1, dtype=np.int32)
        numbers[kept] = np.arange(len(kept))
        work = [(rows, numbers[part], len(kept)) for rows, part in term_counts.with_positions(parts, positions)]
        return term_counts.stacked(list(executor.map(lambda task: term_counts.renumber(*task), work)), len(kept))

    def check_settings(self) -> None:
        """Refuse invalid settings, before any text is read."""
        if self.weighting not in WEIGHTINGS:
            hint = suggest(str(self.weighting), WEIGHTINGS)
            raise InputError(f"weighting is {self.weighting!r}; give one of {', '.join(WEIGHTINGS)}.{hint}")
        term_counts.find_limits(self.min_df, self.max_df, self.max_features, 1)
        for name, value in (("lowercase", self.lowercase), ("sublinear_tf", self.sublinear_tf)):
            if not isinstance(value, (bool, np.bool_)):
                raise InputError(f"{name} is {value!r}; give true or false.")
        self._rules()
        is_whole = isinstance(self.hashing, (int, np.integer))
        if self.hashing is not None and not (is_whole and 1 <= self.hashing <= MOST_COLUMNS):
            raise InputError(f"hashing is {self.hashing!r}; give a number of columns from 1 to {MOST_COLUMNS:,}.")
        if self.hashing is not None and not term_counts.are_none(self.min_df, self.max_df, self.max_features):
            raise InputError("hashing stores no vocabulary, so min_df, max_df and max_features cannot be used with it.")

    def _fit_terms(self, found: TermList, documents: Any, occurrences: Any, n_texts: int) -> Ints:
        """Store the terms within the limits; return their numbers."""
        if not len(found):
            if self.analyzer != "word":
                raise InputError(f"the {n_texts} texts have too few characters for a term; give longer texts.")
            advice = "give texts with words of two letters or more"
            raise InputError(f"the {n_texts} texts have no words (other than stop words); {advice}.")
        limits = term_counts.find_limits(self.min_df, self.max_df, self.max_features, n_texts)
        kept = term_counts.keep_within(limits, documents, documents if self.weighting == "binary" else occurrences)
        self._terms = found if len(kept) == len(found) else found.take(kept)
        self.selected_columns_, self._is_selected, self._fitted_with = None, False, (None, self.weighting)
        self.idf_ = _smooth_idf(documents[kept], n_texts) if self.weighting == "tf-idf" else None
        return kept

    def _fit_columns(self, blocks: Iterator[Rows]) -> None:
        n_texts, documents = 0, np.zeros(int(self.hashing or 0), dtype=np.int64)
        for offsets, columns, _ in blocks:
            np.add.at(documents, columns, 1)
            n_texts += len(offsets) - 1
        self._terms, self.selected_columns_, self._is_selected = None, None, False
        self._fitted_with = int(self.hashing or 0), self.weighting
        self.idf_ = _smooth_idf(documents, n_texts) if self.weighting == "tf-idf" else None

    def select_columns(self, columns: Ints) -> None:
        """Use only some of the columns, increasing, from now on."""
        check_fitted(self, "_terms")
        self._is_selected = True
        self.idf_ = None if self.idf_ is None else self.idf_[columns]
        if self._terms is not None:
            self._terms = self._terms.take(columns)
        else:
            super().select_columns(columns)

    @property
    def can_add_terms(self) -> bool:
        """Whether :meth:`add_terms` works: terms have no weights, and none was left out."""
        has_all = term_counts.are_none(self.min_df, self.max_df, self.max_features) and not self._is_selected
        return has_all and self._terms is not None and self.idf_ is None

    def add_terms(self, texts: Iterable[str]) -> Ints:
        """Add the terms of more texts; return the new columns of the old terms."""
        check_fitted(self, "_terms")
        if self._terms is None or not self.can_add_terms:
            return super().add_terms(texts)
        parts = list(self._map(texts, lambda some: native.count_new_terms(some, self._rules().for_kernel(some), False)))
        arrays = native.sort_terms([self._terms.packed, *(native.Terms(part[0], part[1]) for part in parts)])
        columns: Ints = arrays[2][: len(self._terms)].astype(np.int64)
        self._terms = TermList(arrays[0], arrays[1])
        return columns

    def transform(self, texts: Iterable[str]) -> csr_array:
        """The weighted matrix of texts; unknown terms are ignored."""
        check_fitted(self, "_terms")
        if isinstance(texts, ShardedTexts) and texts.settings == CountSettings(self._rules(), self._fitted_with[0]):
            wanted = self._new_numbers() if self._terms is None else self._terms
            return self.weight_counts(texts.matrix(choose_executor(self.n_jobs), wanted, self.n_features_out))
        if self._terms is None:
            blocks = self._hashed_blocks(texts, int(self._fitted_with[0] or 0), is_selected=self.selected_columns_ is not None)
            return self.weight_counts(term_counts.stacked(list(blocks), self.n_features_out))
        index = self._terms.index  # computed here, before threads share it
        blocks = self._map(texts, lambda some: native.count_known_terms(some, self._rules().for_kernel(some), index))
        return self.weight_counts(term_counts.stacked(list(blocks), len(self._terms)))

    def weight_counts(self, counts: csr_array) -> csr_array:
        """Apply the weighting; changes the matrix in place."""
        weighting = self._fitted_with[1]  # the parameter may have changed since
        if weighting == "binary":
            counts.data[:] = 1
        elif weighting == "tf-idf":
            if self.sublinear_tf:
                counts.data[:] = np.log(counts.data) + 1
            native.weigh_rows_in_place(native.pattern_of(counts), self.idf_, counts.data)
        return counts

    def locate(self, text: str) -> list[tuple[int, int, int]]:
        """(start, end, column) of every known term in a text, in the order of their starts.

        Offsets count the characters of the given text, the end excluded; a term of several words extends from the start of
        the first to the end of the last. A column appears as often as it is counted.

        >>> Vectorizer(ngram_range=(1, 2)).fit(["red fox", "red cat"]).locate("A Red Fox!")
        [(2, 5, 2), (2, 9, 4), (6, 9, 1)]
        """
        found = locate_terms(text, self._rules()) if (columns := self.transform([text]).indices).size else []
        column_of = self._columns_by_term(columns, {term for _, _, term in found})
        return [(start, end, column_of[term]) for start, end, term in found if term in column_of]

    def term_names(self, text: str, columns: Ints) -> list[str]:
        """The names of columns that a text has; of a hashed column, the terms of the text that have its hash."""
        if self._terms is not None:
            return self._terms.names_of(columns)
        terms = dict.fromkeys(term for _, _, term in locate_terms(text, self._rules()))
        found: dict[int, list[str]] = {}
        for term, column in self._columns_by_term(columns, terms).items():
            found.setdefault(column, []).append(term)
        return [" / ".join(found[column]) for column in columns.tolist()]

    def _columns_by_term(self, columns: Ints, terms: Iterable[str]) -> dict[str, int]:
        """The column of each term, if it is one of the given columns."""
        if self._terms is not None:
            return dict(zip(self._terms.names_of(columns), columns.tolist(), strict=True))
        hashed = columns if self.selected_columns_ is None else self.selected_columns_[columns]
        position = dict(zip(hashed.tolist(), columns.tolist(), strict=True))
        n_columns = int(self._fitted_with[0] or 1)
        hashes = {term: abs(murmurhash3_32(term.encode("utf-8", "surrogatepass"))) % n_columns for term in terms}
        return {term: position[column] for term, column in hashes.items() if column in position}

    def _new_numbers(self) -> NDArray[np.int32] | None:
        """The new numbers of hashed columns, -1 for those left out; None if all are in use."""
        if self.selected_columns_ is None:
            return None
        numbers = np.full(int(self._fitted_with[0] or 0), -1, dtype=np.int32)
        numbers[self.selected_columns_] = np.arange(len(self.selected_columns_))
        return numbers

    def _hashed_blocks(self, texts: Iterable[str], n_columns: int, is_selected: bool = False) -> Iterator[Rows]:
        selected = self.selected_columns_ if is_selected else None
        numbers = self._new_numbers() if selected is not None and n_columns <= WIDE else None

        def count(some: list[str]) -> Rows:
            rows: Rows = native.count_hashed_terms(some, self._rules().for_kernel(some), n_columns)
            if numbers is not None:
                return term_counts.renumber(rows, numbers, n_columns)
            return rows if selected is None else term_counts.take_columns(rows, selected)

        return self._map(texts, count)

    def _map(self, texts: Iterable[str], work: Callable[[list[str]], Result]) -> Iterator[Result]:
        """Apply work to blocks of texts, and report progress."""
        blocks, total = term_counts.cut(texts, count_workers(self.n_jobs))
        done: list[int] = []

        def count(block: list[str]) -> Result:
            result = work(block)
            done.append(len(block))
            return result

        with stage("counting words", total) as step:
            executor = SerialExecutor() if total is not None and total < 64 else choose_executor(self.n_jobs)
            for result in executor.map(count, blocks):
                yield result
                while done:
                    step.advance(done.pop())

    @property
    def count_settings(self) -> CountSettings:
        """The settings for counting terms in shards."""
        return CountSettings(self._rules(), None if self.hashing is None else int(self.hashing))

    def _rules(self) -> TermRules:
        settings = (self.analyzer, self.ngram_range, self.lowercase, self.stop_words, self.stemmer)
        key = repr(settings)
        if self._cached_rules is None or self._cached_rules[0] != key:
            self._cached_rules = key, make_rules(*settings)
        return self._cached_rules[1]

    @property
    def terms_(self) -> NDArray[np.object_]:
        """The terms, in column order; hashed columns are named by number."""
        check_fitted(self, "_terms")
        if self._terms is not None:
            return np.asarray([*self._terms.names, None], dtype=object)[:-1]
        columns = np.arange(self._fitted_with[0] or 0) if self.selected_columns_ is None else self.selected_columns_
        return np.asarray([f"#{column}" for column in columns.tolist()] + [None], dtype=object)[:-1]

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The terms, in column order."""
        return self.terms_

    @property
    def n_features_out(self) -> int:
        """The number of columns."""
        check_fitted(self, "_terms")
        if self._terms is not None:
            return len(self._terms)
        return int(self._fitted_with[0] or 0) if self.selected_columns_ is None else len(self.selected_columns_)

    def state(self) -> State:
        """Plain values and arrays from which :meth:`from_state` makes an equal vectorizer."""
        check_fitted(self, "_terms")
        given = self.get_params(deep=False).items()
        params = {name: value.item() if isinstance(value, np.generic) else value for name, value in given if name != "n_jobs"}
        params["ngram_range"] = [int(n) for n in self.ngram_range]
        params |= {"hashing": self._fitted_with[0], "weighting": self._fitted_with[1]}
        if params["stop_words"] is not None and not isinstance(params["stop_words"], str):
            params["stop_words"] = sorted(params["stop_words"])
        arrays = {"idf": self.idf_, "columns": self.selected_columns_}
        terms = None if self._terms is None else self._terms.names
        values = {"params": params, "terms": terms, "selected": self._is_selected}
        return values, {name: array for name, array in arrays.items() if array is not None}

    @classmethod
    def from_state(cls, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Vectorizer:
        """Make a vectorizer from its state, after checking it."""
        params = {**values["params"], "ngram_range": tuple(values["params"]["ngram_range"]), "n_jobs": None}
        made, terms = cls(**params), values["terms"]
        made.check_settings()
        if (terms is None) != (made.hashing is not None):
            raise ModelError("the terms of the vectorizer do not fit its settings; train the model again.")
        is_list = isinstance(terms, list) and bool(terms) and all(isinstance(term, str) for term in terms)
        are_distinct = is_list and len(set(terms)) == len(terms) and not any(map(LONE_SURROGATE.search, terms))
        if terms is not None and not are_distinct:
            raise ModelError("the terms of the vectorizer are not distinct strings; train the model again.")
        made._terms, made._fitted_with = None if terms is None else TermList.of(terms), (made.hashing, made.weighting)
        made.selected_columns_ = checked_columns(arrays.get("columns"), made.hashing or 0)
        made.idf_, made._is_selected = arrays.get("idf"), bool(values.get("selected", False))
        width, idf = made.n_features_out, made.idf_
        if (idf is not None) != (made.weighting == "tf-idf"):
            raise ModelError("the idf weights do not fit the weighting; train the model again.")
        fits = idf is None or (idf.shape == (width,) and idf.dtype == np.float32 and bool((np.isfinite(idf) & (idf > 0)).all()))
        if not fits:
            raise ModelError(f"the idf weights do not fit the {width} terms; train the model again.")
        return made

    def summary(self) -> str:
        """The terms in words.

        >>> Vectorizer(ngram_range=(1, 2)).summary(), Vectorizer(analyzer="char_wb", ngram_range=(4, 4)).summary()
        ('words of 1–2', 'characters of 4')
        """
        unit, (low, high) = "words" if self.analyzer == "word" else "characters", self.ngram_range
        return f"{unit} of {low}–{high}" if low != high else f"single {unit}" if low == 1 else f"{unit} of {low}"

    def __sklearn_is_fitted__(self) -> bool:
        return "_terms" in vars(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


def _smooth_idf(documents: NDArray[Any], n_texts: int) -> NDArray[np.float32]:
    """ln((1 + documents) / (1 + documents with the term)) + 1, as scikit-learn smooths it, in its precision."""
    ratios = np.full(len(documents), n_texts + 1, dtype=np.float32) / (documents.astype(np.float32) + np.float32(1))
    return np.asarray(np.log(ratios) + np.float32(1), dtype=np.float32)
