"""What a decision rule is: scores in, consistent label sets out, each row for itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any, ClassVar, Literal, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.errors import InputError, ModelError
from ramify.parallel import choose_executor, count_workers
from ramify.taxonomy import Taxonomy, expand_to_ancestors


class DecisionRule(Protocol):
    """Turns scores into labels; it has no memory of the rows it has seen.

    takes: what it wants to know of every node: how well it fits as a label, "scores"; "memberships", P(node); "conditionals",
    P(node | parent); or "margins", above 0 for yes.

    With ``takes_sparse = True`` beside these, scores may come as a sparse matrix, in which nodes that are absent have none.
    """

    kind: ClassVar[str]
    takes: ClassVar[str]

    def decide(self, values: Any, taxonomy: Taxonomy) -> csr_array:
        """Labels of documents × nodes of values: boolean CSR, closed upward."""

    def reasons(self, values: Any, taxonomy: Taxonomy, nodes: Sequence[int]) -> list[str]:
        """What it did at some nodes with the values of one document, and why: a short sentence each, without its end."""

    def problem(self) -> str | None:
        """What is wrong with its settings, as a sentence without its end; None if nothing is."""

    def state(self) -> dict[str, Any]:
        """Plain values from which the same rule can be made."""


@runtime_checkable
class RefiningRule(DecisionRule, Protocol):
    """A rule that makes better probabilities on its way to labels."""

    def refine(self, values: Any, taxonomy: Taxonomy) -> NDArray[np.floating[Any]]:
        """What it makes of documents × nodes of values; a parent's is never below a child's."""

    def cut(self, refined: NDArray[np.floating[Any]], values: Any, taxonomy: Taxonomy) -> csr_array:
        """Labels of what it made of the values."""


@runtime_checkable
class FittableRule(DecisionRule, Protocol):
    """A rule that is learnt from scores of documents that its learner has not seen; until then it refuses to decide."""

    @property
    def is_fitted(self) -> bool:
        """Whether there is something to decide with."""

    def unfitted(self) -> Self:
        """The same settings, with nothing learnt."""

    def fit(self, values: Any, Y: Any, taxonomy: Taxonomy) -> Self:
        """A new rule of the same kind, learnt from held-out values and true labels, both documents × nodes."""


# --------------------------------------------------------------------------------------------------------------
# The common part of rules, given or learnt: how they are stored, compared and checked.


LARGEST = float(np.finfo(np.float64).max)
Floats = NDArray[np.float64]
Numbers = Sequence[float] | Floats
Over = Literal["own", "nodes"]


class Rule(ABC):
    """A frozen dataclass of settings. Two rules are equal when they have the same kind and state."""

    __slots__ = ()
    kind: ClassVar[str]
    takes: ClassVar[str]

    @abstractmethod
    def reasons(self, values: Any, taxonomy: Taxonomy, nodes: Sequence[int]) -> list[str]:
        """What it did at some nodes with the values of one document, and why: a short sentence each, without its end."""

    @abstractmethod
    def problem(self) -> str | None:
        """What is wrong with the values of this rule, as a sentence without its end; None if nothing is."""

    def state(self) -> dict[str, Any]:
        """Plain values from which the same rule can be made; an infinite threshold is None, which JSON can hold."""
        return {field.name: _to_plain(getattr(self, field.name)) for field in fields(self)}  # type: ignore[arg-type]

    @classmethod
    def from_state(cls, values: dict[str, Any]) -> Self:
        """Make a rule from its state."""
        rule = cls(**{name: _from_plain(name, value) for name, value in values.items()})
        if problem := rule.problem():
            raise ModelError(f"{problem}; train the model again.")
        return rule

    def refuse_problems(self) -> None:
        """Refuse settings that this kind of rule does not take."""
        if problem := self.problem():
            raise InputError(f"{problem}.")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rule) and self.kind == other.kind and self.state() == other.state()

    __hash__ = None  # type: ignore[assignment]


class LearntRule(Rule):
    """A rule whose fields are settings, and what was learnt; the latter is None until then."""

    __slots__ = ()

    @property
    def is_fitted(self) -> bool:
        """Whether there is something to decide with."""
        return all(getattr(self, name) is not None for name in self._learnt_names())

    def unfitted(self) -> Self:
        """The same settings, with nothing learnt."""
        return replace(self, **dict.fromkeys(self._learnt_names()))  # type: ignore[type-var]

    def _learnt_names(self) -> list[str]:
        return [field.name for field in fields(self) if field.default is None]  # type: ignore[arg-type]

    def check_fitted(self, learnt: object) -> None:
        """Refuse to decide before there is anything to decide with."""
        if learnt is None:
            name = type(self).__name__
            raise InputError(f"this {name} has learnt nothing yet; use what {name}().fit(scores, Y, taxonomy) gives.")
        self.refuse_problems()


def about_over(over: object) -> str | None:
    """What is wrong with `over`."""
    fits = isinstance(over, str) and over in ("own", "nodes")
    return None if fits else f"over is {over!r}, not 'own' or 'nodes'"


def about_flag(name: str, value: object) -> str | None:
    """What is wrong with a yes or no."""
    return None if isinstance(value, (bool, np.bool_)) else f"{name} is {value!r}, not true or false"


def about_number(name: str, value: Any, least: float, most: float) -> str | None:
    """What is wrong with a number."""
    fits = _is_number(value) and least <= _as_float(value) <= most
    return None if fits else f"{name} is {value!r}, not {_a_number(least, most)}"


def about_count(name: str, value: Any) -> str | None:
    """What is wrong with a number of things, of which there must be one at least."""
    fits = _is_number(value) and value >= 1 and isinstance(value, (int, np.integer))
    return None if fits else f"{name} is {value!r}, not a whole number of at least 1"


def about_numbers(name: str, values: Any, least: float, most: float) -> str | None:
    """What is wrong with a list of numbers."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return f"{name} are not numbers"
    if array.ndim != 1:
        return f"{name} are not one list of numbers"
    outside = array[~((array >= least) & (array <= most))]
    return f"{outside[0]} is among {name}, and is not {_a_number(least, most)}" if outside.size else None


def _a_number(least: float, most: float) -> str:
    if least <= -LARGEST:
        return "a finite number"
    return f"a number from {least:g} upwards" if most >= LARGEST else f"a number from {least:g} to {most:g}"


def _as_float(value: Any) -> float:
    """A number as a float; one beyond all floats is infinite."""
    try:
        return float(value)
    except OverflowError:
        return np.inf


def frozen(array: Floats) -> Floats:
    """The same array, which nobody can write to any more."""
    array.setflags(write=False)
    return array


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _to_plain(value: Any) -> Any:
    if isinstance(value, (list, tuple, np.ndarray)):
        return [None if number == np.inf else number for number in np.asarray(value, dtype=np.float64).tolist()]
    return value.item() if isinstance(value, np.generic) else value


def _from_plain(name: str, value: Any) -> Any:
    if not isinstance(value, list):
        return value
    # bool is a kind of int, and JSON's whole numbers have no end
    if not all(number is None or (type(number) in (int, float) and abs(number) <= LARGEST) for number in value):
        raise ModelError(f"{name} are not all numbers; train the model again.")
    array = np.array([np.inf if number is None else number for number in value], dtype=np.float64)
    array.setflags(write=False)
    return array


# --------------------------------------------------------------------------------------------------------------
# Blocks of documents, decided one after the other or side by side; each document for itself.


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


# --------------------------------------------------------------------------------------------------------------
# Scores of the few nodes that a learner looked at, as a sparse matrix, documents × nodes: what is absent has no score.


def read_sparse_scores(scores: Any, taxonomy: Taxonomy) -> csr_array:
    """Sparse scores with the nodes of each document in order; NaN and -inf are no scores."""
    S = csr_array(scores).sorted_indices()
    if S.ndim != 2 or S.shape[1] != len(taxonomy):
        raise InputError(f"scores have shape {S.shape}; the taxonomy has {len(taxonomy)} nodes, one column each.")
    if S.nnz and np.fmax.reduce(S.data) == np.inf:
        raise InputError("a score is infinite; give finite scores, and none where a node has no classifier.")
    return S if np.isfinite(S.data).all() else keep_entries(S, np.isfinite(S.data))


def keep_entries(S: csr_array, kept: NDArray[np.bool_]) -> csr_array:
    """The same without some entries."""
    offsets = np.concatenate([[0], np.cumsum(kept)])[S.indptr]
    return csr_array((S.data[kept], S.indices[kept], offsets), shape=S.shape)


def are_highest(S: csr_array) -> NDArray[np.bool_]:
    """For every entry, whether it is the highest of its document; of equal ones the first.

    >>> are_highest(csr_array([[1.0, 3.0, 3.0], [0.0, 0.0, 0.0], [0.0, -2.0, -1.0]])).tolist()
    [False, True, False, False, True]
    """
    row_of = np.repeat(np.arange(S.shape[0]), np.diff(S.indptr))
    order = np.lexsort((S.indices, -S.data, row_of))
    first = np.zeros(S.nnz, dtype=bool)
    first[order[S.indptr[:-1][np.diff(S.indptr) > 0]]] = True
    return first


def sparse_to_labels(chosen: NDArray[np.bool_], S: csr_array, taxonomy: Taxonomy, at_least_one: bool) -> csr_array:
    """The chosen entries with their ancestors; with `at_least_one`, the highest where none is chosen."""
    if at_least_one:
        row_of = np.repeat(np.arange(S.shape[0]), np.diff(S.indptr))
        has_some = np.zeros(S.shape[0], dtype=bool)
        has_some[row_of[chosen]] = True
        chosen = chosen | (are_highest(S) & ~has_some[row_of])
    own = keep_entries(S, chosen)
    return expand_to_ancestors(csr_array((np.ones(own.nnz, dtype=bool), own.indices, own.indptr), shape=S.shape), taxonomy)
