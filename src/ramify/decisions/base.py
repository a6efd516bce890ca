"""Decision rules: scores in, label sets out, each document on its own; and what all rules share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, asdict, field, fields, is_dataclass, replace
from typing import Any, ClassVar, Literal, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.arguments import as_numbers, describe
from ramify.errors import InputError, ModelError
from ramify.parallel import choose_executor, count_workers
from ramify.taxonomy import Taxonomy, check_taxonomy, expand_to_ancestors, note_on_others, values_by_node

LARGEST = float(np.finfo(np.float64).max)
Scores = NDArray[np.floating[Any]]
Floats = NDArray[np.float64]
Numbers = Sequence[float] | Floats
ByName = Mapping[str, float]  # numbers by node name
Over = Literal["own", "nodes"]


class DecisionRule(ABC):
    """Turns the values of a document into labels; usually a frozen dataclass whose fields are made by :func:`setting`.

    takes: the values that it needs for every node: "scores", how well a node fits as the label; "memberships", P(node);
    "conditionals", P(node | parent); or "margins", positive for yes.
    takes_sparse: whether scores may come as a sparse matrix, in which an absent node has no score.
    uses_main_parents: whether a DAG is decided over its main-parent tree; all ancestors of a label are added afterwards.

    Two rules are equal when they have the same kind and state.
    """

    __slots__ = ()
    kind: ClassVar[str]
    takes: ClassVar[str] = "scores"
    takes_sparse: ClassVar[bool] = False
    uses_main_parents: ClassVar[bool] = False

    @abstractmethod
    def decide(self, values: Any, taxonomy: Taxonomy) -> csr_array:
        """Labels for documents × nodes of values: boolean CSR, closed upward."""

    def reasons(self, values: Any, taxonomy: Taxonomy, nodes: Sequence[int]) -> list[str]:
        """Why each of some nodes was taken or not, from the values of one document: a short phrase per node."""
        return [""] * len(nodes)

    def problem(self) -> str | None:
        """What is wrong with the settings, as a sentence without its full stop; None if they are valid."""
        checked = ((each, value) for each, value in _fields_with_values(self) if "check" in each.metadata)
        return next(filter(None, (each.metadata["check"](each.name, value) for each, value in checked)), None)

    def notes(self, taxonomy: Taxonomy) -> list[str]:
        """For each setting given by node name, what the other nodes have; refuses names that the taxonomy does not have."""
        self.check()
        by_name = [(each, value) for each, value in _fields_with_values(self) if isinstance(value, Mapping)]
        for each, value in by_name:
            values_by_node(value, taxonomy, each.name, 0.0)
        notes = (note_on_others(value, taxonomy, each.name, each.metadata["of_others"]) for each, value in by_name)
        return list(filter(None, notes))

    def check(self) -> None:
        """Refuse settings that this kind of rule does not take."""
        if problem := self.problem():
            raise InputError(f"{problem}.")

    def state(self) -> dict[str, Any]:
        """Plain values from which the same rule can be made; an infinite threshold is None, which JSON can hold."""
        state: dict[str, Any] = asdict(self)  # type: ignore[call-overload]
        for name, value in state.items():
            if isinstance(value, (list, tuple, np.ndarray)):
                numbers = np.asarray(value, dtype=np.float64).tolist()
                state[name] = [None if number == np.inf else number for number in numbers]
            elif isinstance(value, Mapping):
                state[name] = {node: None if number == np.inf else float(number) for node, number in value.items()}
            elif isinstance(value, np.generic):
                state[name] = value.item()
        return state

    @classmethod
    def from_state(cls, values: dict[str, Any]) -> Self:
        """Make a rule from its state."""
        settings = dict(values)
        for name, value in values.items():
            if isinstance(value, list):
                # bool is a kind of int, and JSON's whole numbers have no end
                if not all(number is None or (type(number) in (int, float) and abs(number) <= LARGEST) for number in value):
                    raise ModelError(f"{name} are not all numbers; train the model again.")
                settings[name] = frozen(np.array([np.inf if number is None else number for number in value], dtype=np.float64))
            elif isinstance(value, dict):
                settings[name] = {node: np.inf if number is None else number for node, number in value.items()}
        rule = cls(**settings)
        if problem := rule.problem():
            raise ModelError(f"{problem}; train the model again.")
        return rule

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DecisionRule) and self.kind == other.kind and self.state() == other.state()

    __hash__ = None  # type: ignore[assignment]


class RefiningRule(DecisionRule):
    """A rule that computes better probabilities on the way to labels."""

    __slots__ = ()

    @abstractmethod
    def refine(self, values: Any, taxonomy: Taxonomy) -> Scores:
        """Refined values, documents × nodes; a parent's is never below a child's."""

    @abstractmethod
    def cut(self, refined: Scores, values: Any, taxonomy: Taxonomy) -> csr_array:
        """Labels from refined values."""


class FittableRule(DecisionRule):
    """A rule with parameters fitted on scores of documents that its learner was not trained on."""

    __slots__ = ()

    @abstractmethod
    def fit(self, values: Any, Y: Any, taxonomy: Taxonomy) -> Self:
        """A fitted rule with the same settings, from held-out values and true labels, both documents × nodes."""

    def fitted(self) -> dict[str, Any]:
        """The fitted parameters by name; None before :meth:`fit`."""
        return {each.name: value for each, value in _fields_with_values(self) if each.metadata.get("is_fitted")}

    @property
    def is_fitted(self) -> bool:
        """Whether all parameters are fitted."""
        return all(value is not None for value in self.fitted().values())

    def unfitted(self) -> Self:
        """The same settings without fitted parameters."""
        return replace(self, **dict.fromkeys(self.fitted()))  # type: ignore[type-var]

    def check_fitted(self) -> None:
        """Refuse to decide before :meth:`fit`, or with settings that are not valid."""
        if not self.is_fitted:
            name = type(self).__name__
            raise InputError(f"this {name} is not fitted yet; use what {name}().fit(scores, Y, taxonomy) returns.")
        self.check()


# ---- settings and their checks --------------------------------------------------------------------------------------

Check = Callable[[str, Any], str | None]  # from the name and the value of a setting to what is wrong with it


def setting(default: Any, check: Check, *, is_fitted: bool = False, repr: bool = True, of_others: float | None = None) -> Any:
    """A field of a rule and the check of its value.

    is_fitted: whether the value comes from :meth:`FittableRule.fit`. of_others: for a setting that may be given by node name,
    the number of nodes that are not named.
    """
    return field(default=default, repr=repr, metadata={"check": check, "is_fitted": is_fitted, "of_others": of_others})


def _fields_with_values(rule: Any) -> list[tuple[Field[Any], Any]]:
    values = asdict(rule) if is_dataclass(type(rule)) else {}
    return [(each, values[each.name]) for each in fields(rule)] if values else []


def one_of(*words: str) -> Check:
    """A check that a value is one of some words."""
    allowed = " or ".join(map(repr, words))

    def check(name: str, value: Any) -> str | None:
        return None if isinstance(value, str) and value in words else f"{name} is {describe(value)}, not {allowed}"

    return check


def flag(name: str, value: Any) -> str | None:
    """Check that a value is a yes or no."""
    return None if isinstance(value, (bool, np.bool_)) else f"{name} is {describe(value)}, not true or false"


def number(least: float = -LARGEST, most: float = LARGEST, *, optional: bool = False) -> Check:
    """A check of a number. optional: whether None is valid."""

    def check(name: str, value: Any) -> str | None:
        fits = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
        try:
            fits = fits and least <= float(value) <= most
        except OverflowError:  # a whole number beyond all floats
            fits = False
        return None if fits or (optional and value is None) else f"{name} is {describe(value)}, not {_a_number(least, most)}"

    return check


def count(least: int = 1, *, optional: bool = False) -> Check:
    """A check of a whole number. optional: whether None is valid."""

    def check(name: str, value: Any) -> str | None:
        fits = (optional and value is None) or (is_whole(value) and value >= least)
        return None if fits else f"{name} is {describe(value)}, not a whole number of at least {least}"

    return check


def numbers(least: float = -LARGEST, most: float = LARGEST, *, by_name: bool = False) -> Check:
    """A check of a list of numbers; None in its place is valid. by_name: whether numbers by node name are, too."""

    def check(name: str, values: Any) -> str | None:
        if values is None:
            return None
        if by_name and isinstance(values, Mapping):
            if not all(type(number) in (int, float) or isinstance(number, np.number) for number in values.values()):
                return f"the {name} are not numbers"
            values = list(values.values())
        try:
            array = as_numbers(values, name, "").astype(np.float64)
        except InputError:
            return f"the {name} are not numbers"
        if array.ndim != 1:
            return f"the {name} are not one list of numbers"
        outside = array[~((array >= least) & (array <= most))]
        return f"{outside[0]} is among the {name}, and is not {_a_number(least, most)}" if outside.size else None

    return check


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _a_number(least: float, most: float) -> str:
    if least <= -LARGEST:
        return "a finite number"
    return f"a number from {least:g} upwards" if most >= LARGEST else f"a number from {least:g} to {most:g}"


def frozen(array: Floats) -> Floats:
    """The same array, made read-only."""
    array.setflags(write=False)
    return array


# ---- scores as rules read them --------------------------------------------------------------------------------------

SCORES = "give one per document and node, NaN where there is none"


def read_scores(scores: Any, taxonomy: Taxonomy) -> Scores:
    """Scores as documents × nodes, not copied; NaN and -inf both mean that a node has no score."""
    S = np.atleast_2d(as_numbers(scores, "scores", SCORES))
    S = S if S.dtype.kind == "f" else S.astype(np.float64)
    check_width(S.shape, taxonomy)
    if np.fmax.reduce(S, axis=None, initial=-np.inf) == np.inf:
        raise InputError("a score is infinite; give finite scores, and NaN where a node has no classifier.")
    return S


def read_probabilities(probabilities: Any, taxonomy: Taxonomy) -> Scores:
    """Probabilities as documents × nodes; refuses numbers outside 0 to 1."""
    P = read_scores(probabilities, taxonomy)
    if P.size and (np.fmin.reduce(P, axis=None) < 0 or np.fmax.reduce(P, axis=None) > 1):
        advice = "give numbers from 0 to 1, such as sigmoids of scores, and NaN where a node has no classifier"
        raise InputError(f"probabilities lie between {np.nanmin(P):g} and {np.nanmax(P):g}; {advice}.")
    return P


def read_sparse_scores(scores: Any, taxonomy: Taxonomy) -> csr_array:
    """Sparse scores with the nodes of each document in order; NaN and -inf count as absent."""
    S = csr_array(scores).sorted_indices()
    check_width(S.shape, taxonomy)
    as_numbers(S.data, "scores", SCORES)
    if S.nnz and np.fmax.reduce(S.data) == np.inf:
        raise InputError("a score is infinite; give finite scores, and none where a node has no classifier.")
    return S if np.isfinite(S.data).all() else select_entries(S, np.isfinite(S.data))


def check_width(shape: tuple[int, ...], taxonomy: Taxonomy) -> None:
    """Refuse scores that do not have one column per node."""
    check_taxonomy(taxonomy)
    if len(shape) != 2 or shape[1] != len(taxonomy):
        raise InputError(f"scores have shape {shape}; the taxonomy has {len(taxonomy)} nodes, one column each.")


def without_nan(S: Scores) -> Floats:
    """The scores as a new array, -inf where there is none."""
    return np.where(np.isnan(S), -np.inf, S).astype(np.float64, copy=False)


def select_entries(S: csr_array, selected: NDArray[np.bool_]) -> csr_array:
    """The matrix with only the selected entries."""
    offsets = np.concatenate([[0], np.cumsum(selected)])[S.indptr]
    return csr_array((S.data[selected], S.indices[selected], offsets), shape=S.shape)


def are_highest(S: csr_array) -> NDArray[np.bool_]:
    """For every entry, whether it is the highest of its document; of equal ones the first.

    >>> are_highest(csr_array([[1.0, 3.0, 3.0], [0.0, 0.0, 0.0], [0.0, -2.0, -1.0]])).tolist()
    [False, True, False, False, True]
    """
    order = np.lexsort((S.indices, -S.data, rows_of(S)))
    first = np.zeros(S.nnz, dtype=bool)
    first[order[S.indptr[:-1][np.diff(S.indptr) > 0]]] = True
    return first


def sparse_to_labels(chosen: NDArray[np.bool_], S: csr_array, taxonomy: Taxonomy, at_least_one: bool) -> csr_array:
    """The chosen entries with their ancestors; with `at_least_one`, the highest where none is chosen."""
    if at_least_one:
        row_of = rows_of(S)
        has_some = np.zeros(S.shape[0], dtype=bool)
        has_some[row_of[chosen]] = True
        chosen = chosen | (are_highest(S) & ~has_some[row_of])
    own = select_entries(S, chosen)
    return expand_to_ancestors(csr_array((np.ones(own.nnz, dtype=bool), own.indices, own.indptr), shape=S.shape), taxonomy)


def rows_of(matrix: csr_array) -> NDArray[np.int64]:
    """The row of each stored entry."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def close_over_dag(Y: csr_array, taxonomy: Taxonomy) -> csr_array:
    """Labels that are closed over the main-parent tree, closed over the whole taxonomy."""
    return Y if taxonomy.is_tree else expand_to_ancestors(Y, taxonomy)


def nodes_to_labels(nodes: NDArray[np.int64], taxonomy: Taxonomy) -> csr_array:
    """One or more nodes per document, -1 for none, as labels with their ancestors."""
    nodes = nodes[:, None] if nodes.ndim == 1 else nodes
    rows, columns = np.nonzero(nodes >= 0)
    own = csr_array((np.ones(len(rows), dtype=bool), (rows, nodes[rows, columns])), shape=(len(nodes), len(taxonomy)))
    return expand_to_ancestors(own, taxonomy)


# ---- blocks of documents, in parallel -------------------------------------------------------------------------------

Result = TypeVar("Result")
BLOCK_BYTES = 1 << 22
MIN_BLOCK = 1 << 15  # numbers in a block, so that it is worth the overhead
LANES = 4  # documents that a kernel processes at once


def over_rows(S: Scores, work: Callable[[Scores], Result], n_jobs: int | None) -> list[Result]:
    """Apply `work` to blocks of rows, as float32 or float64, in order."""
    if S.dtype not in (np.float32, np.float64):
        S = S.astype(np.float64)
    n_rows, width = S.shape[0], max(1, S.shape[1])
    per_worker = -(-n_rows // (4 * count_workers(n_jobs)))
    most = min(max(per_worker, MIN_BLOCK // width, LANES), BLOCK_BYTES // (S.itemsize * width))
    size = max(LANES, most // LANES * LANES)
    blocks = [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]
    return list(choose_executor(n_jobs).map(lambda rows: work(np.ascontiguousarray(S[rows])), blocks))
