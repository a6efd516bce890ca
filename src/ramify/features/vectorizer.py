"""Texts as rows of weighted terms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_is_fitted

from ramify.errors import InputError, ModelError
from ramify.execution import stage
from ramify.features.analysis import make_analyzer

WEIGHTINGS = ("tf-idf", "counts", "binary")
CHUNK = 2_000


class Vectorizer(TransformerMixin, BaseEstimator):
    """Turn texts into a CSR float32 matrix, documents × terms.

    weighting: "tf-idf" (smoothed idf, rows of unit length), "counts" or "binary".
    ngram_range: runs of how many words make a term, from and to.
    stop_words: "english", a list, or None.
    stemmer: a Snowball language such as "english" or "porter", or None; needs ``ramify[stem]``.
    min_df, max_df: terms in fewer or more documents are left out; a float is a share of the documents.
    max_features: keep only the terms with the most occurrences.
    sublinear_tf: 1 + ln(count) in place of the count, for tf-idf.

    >>> Vectorizer(weighting="counts").fit_transform(["red fox", "red red"]).toarray()
    array([[1., 1.], [0., 2.]], dtype=float32)
    """

    kind: ClassVar[str] = "vectorizer"

    def __init__(
        self,
        weighting: str = "tf-idf",
        *,
        ngram_range: tuple[int, int] = (1, 1),
        lowercase: bool = True,
        stop_words: str | Sequence[str] | None = None,
        stemmer: str | None = None,
        min_df: int | float = 1,
        max_df: int | float = 1.0,
        max_features: int | None = None,
        sublinear_tf: bool = False,
    ) -> None:
        self.weighting = weighting
        self.ngram_range = ngram_range
        self.lowercase = lowercase
        self.stop_words = stop_words
        self.stemmer = stemmer
        self.min_df = min_df
        self.max_df = max_df
        self.max_features = max_features
        self.sublinear_tf = sublinear_tf

    def fit(self, texts: Iterable[str], y: Any = None) -> Self:
        """Learn the terms and their document frequencies."""
        self.fit_transform(texts)
        return self

    def fit_transform(self, texts: Iterable[str], y: Any = None) -> csr_array:
        """Learn the terms and give the matrix of the same texts, in one pass over them."""
        self._check_weighting()
        texts = checked_texts(texts)
        counter = self._counter()
        try:
            with stage("reading words", len(texts)) as step:
                counts = counter.fit_transform(_told(texts, step))
        except ValueError as error:
            raise InputError(_explain(error, len(texts))) from None
        self.terms_ = np.asarray(counter.get_feature_names_out(), dtype=object)
        self.idf_ = _smooth_idf(counts)
        self._set_counter()
        return self._weigh(counts)

    def transform(self, texts: Iterable[str]) -> csr_array:
        """The matrix of some texts over the learnt terms; other terms are passed over."""
        check_is_fitted(self, "terms_")
        return self._weigh(self._counter_.transform(checked_texts(texts)))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The terms, in column order."""
        check_is_fitted(self, "terms_")
        return self.terms_

    @property
    def n_features_out(self) -> int:
        """The number of terms."""
        return len(self.terms_)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Plain values and arrays from which :meth:`from_state` makes the same vectorizer."""
        params = self.get_params(deep=False)
        if params["stop_words"] is not None and not isinstance(params["stop_words"], str):
            params["stop_words"] = sorted(params["stop_words"])
        return {"params": params, "terms": self.terms_.tolist()}, {"idf": self.idf_}

    @classmethod
    def from_state(cls, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Vectorizer:
        """Make a vectorizer from its state, after checking that the parts fit together."""
        made = cls(**{**values["params"], "ngram_range": tuple(values["params"]["ngram_range"])})
        made._check_weighting()
        terms, made.idf_ = values["terms"], arrays["idf"]
        if not terms or not all(isinstance(term, str) for term in terms) or len(set(terms)) < len(terms):
            raise ModelError("the terms of the vectorizer are not distinct strings; train the model again.")
        fits = made.idf_.shape == (len(terms),) and made.idf_.dtype == np.float32
        if not fits or not np.isfinite(made.idf_).all():
            raise ModelError(f"the vectorizer has {len(terms)} terms but {made.idf_.size} weights; train the model again.")
        made.terms_ = np.asarray(terms, dtype=object)
        made._set_counter()
        return made

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags

    def _check_weighting(self) -> None:
        if self.weighting not in WEIGHTINGS:
            raise InputError(f"weighting is {self.weighting!r}; give one of {', '.join(WEIGHTINGS)}.")

    def _counter(self, vocabulary: dict[str, int] | None = None) -> CountVectorizer:
        analyzer = make_analyzer(self.ngram_range, self.lowercase, self.stop_words, self.stemmer)
        limits = {"min_df": self.min_df, "max_df": self.max_df, "max_features": self.max_features}
        return CountVectorizer(
            analyzer=analyzer, vocabulary=vocabulary, dtype=np.float32, **(limits if vocabulary is None else {})
        )

    def _set_counter(self) -> None:
        self._counter_ = self._counter({term: column for column, term in enumerate(self.terms_)})

    def _weigh(self, counts: Any) -> csr_array:
        X = csr_array(counts)
        if self.weighting == "binary":
            X.data[:] = 1
        elif self.weighting == "tf-idf":
            if self.sublinear_tf:
                X.data[:] = np.log(X.data) + 1
            X.data *= self.idf_[X.indices]
            X = normalize(X, copy=False)
        return X


def checked_texts(texts: Iterable[str]) -> list[str]:
    """Texts as a list, every one of them a string."""
    if isinstance(texts, (str, bytes)):
        raise InputError("a list of texts is needed, not one text; put it in brackets: [text].")
    listed = list(texts)
    for position, text in enumerate(listed):
        if not isinstance(text, str):
            raise InputError(f"text {position + 1} is {_name_of(text)}; every text is a string. Drop it or give it some words.")
    return listed


def _name_of(value: Any) -> str:
    if value is None:
        return "null"
    return f"{type(value).__name__} {str(value)[:40]!r}"


def _told(texts: list[str], step: Any) -> Iterator[str]:
    rest = iter(texts)
    while chunk := list(islice(rest, CHUNK)):
        yield from chunk
        step.advance(len(chunk))


def _smooth_idf(counts: Any) -> NDArray[np.float32]:
    """ln((1 + documents) / (1 + documents with the term)) + 1, as scikit-learn smooths it."""
    n_documents, n_terms = counts.shape
    frequency = np.bincount(counts.indices, minlength=n_terms)
    return np.asarray(np.log((1 + n_documents) / (1 + frequency)) + 1, dtype=np.float32)


def _explain(error: ValueError, n_texts: int) -> str:
    if "empty vocabulary" in str(error):
        return (
            f"the {n_texts} texts have no words in them (other than stop words); give texts with words of two letters or more."
        )
    if "no terms remain" in str(error) or "corresponds to" in str(error):
        return "min_df, max_df and max_features leave no term; loosen them."
    return f"the texts cannot be turned into features: {error}"
