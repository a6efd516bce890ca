"""Every struct and every kernel refuses arrays, sizes, numbers and names that it cannot work with.

A new kernel needs an example below; everything else is found by introspection.
"""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest

from ramify import native
from ramify.native import _core

MAX_PARAMETERS = 12
I8, I4, F4, F8, U1 = np.int64, np.int32, np.float32, np.float64, np.uint8


def longs(*numbers):
    return np.array(numbers, dtype=I8)


def ints(*numbers):
    return np.array(numbers, dtype=I4)


def floats(*numbers):
    return np.array(numbers, dtype=F4)


def doubles(*numbers):
    return np.array(numbers, dtype=F8)


# Two documents over three features; a root unit above two classes; each document is positive in one class.
def make(name):
    """A struct made of its example."""
    return getattr(native, name)(**EXAMPLES[name]())


def pattern(rows, n_columns):
    offsets = np.cumsum([0, *map(len, rows)]).astype(I8)
    return native.Pattern(offsets, ints(*[column for row in rows for column in row]), n_columns)


def csr(rows, n_columns, kind=F4, make_rows=None):
    offsets = np.cumsum([0, *map(len, rows)]).astype(I8)
    columns, values = ints(*[f for row in rows for f in row]), np.array([x for row in rows for x in row.values()], dtype=kind)
    return (make_rows or native.Rows)(offsets, columns, values, n_columns)


def documents():
    return csr([{0: 1.0, 1: 2.0}, {0: 1.0, 2: 1.0}], 3)


def zeros(*shape, dtype=F8):
    return np.zeros(shape, dtype=dtype)


def terms():
    return native.Terms(np.frombuffer(b"teacoffee" + bytes(8), dtype=U1), longs(0, 3, 9))


def word_rules():
    return native.TermRules("word", True, 1, 1, None, None, None)


def tree_arguments():
    return {"X": make("Documents"), "tree": make("TreePartition"), "pairs": make("Pairs")}


def class_arguments():
    return {
        "X": make("Documents"),
        "pairs": make("Pairs"),
        "document_weights": floats(1, 1),
        "ancestors": pattern([[0], [0]], 3),
        "deltas": make("SparseVectors"),
        "classes": ints(0, 1),
        "loss": "hinge",
    }


def candidate_arguments():
    index = csr([{0: 1.0}, {1: 1.0}, {0: 0.5, 1: 0.5}], 2)
    return {"X": documents(), "index": index, "start": floats(0, 0), "candidates": zeros(2, 2, dtype=I4)}


def mixture_arguments():
    paths = pattern([[0], [1, 0], [2, 0]], 3)
    return {"counts": make("WordCounts"), "paths": paths, "units": ints(1, 2)}


EXAMPLES = {
    # structs
    "Pattern": lambda: {"offsets": longs(0, 1, 3), "columns": ints(2, 0, 1), "n_columns": 3},
    "Rows": lambda: {"offsets": longs(0, 1, 3), "columns": ints(2, 0, 1), "values": floats(1, 2, 3), "n_columns": 3},
    "DoubleRows": lambda: {"offsets": longs(0, 1, 3), "columns": ints(2, 0, 1), "values": doubles(1, 2, 3), "n_columns": 3},
    "Documents": lambda: {"rows": documents(), "squared_norms": floats(5, 2)},
    "Pairs": lambda: {
        "offsets": longs(0, 2, 4),
        "documents": ints(0, 1, 1, 0),
        "n_positive": longs(1, 1),
        "cost_positive": floats(1, 1),
        "cost_negative": floats(1, 1),
        "alphas": zeros(4, dtype=F4),
        "n_documents": 2,
    },
    "SparseVectors": lambda: {
        "start": longs(0, 2, 2),
        "end": longs(2, 2, 2),
        "features": ints(0, 1),
        "values": floats(1, 1),
        "n_features": 3,
    },
    "ClassVectors": lambda: {
        "first": 0,
        "offsets": longs(0, 3, 6),
        "features": ints(0, 1, 2, 0, 1, 2),
        "values": zeros(6, dtype=F4),
        "n_features": 3,
    },
    "TreePartition": lambda: {
        "parent": ints(-1, 0, 0),
        "class_of": ints(-1, 0, 1),
        "n_partitions": floats(1, 1, 1),
        "is_visited": np.ones(3, dtype=U1),
        "joins": pattern([[], [], []], 3),
    },
    "SiblingProducts": lambda: {
        "documents": pattern([[0, 1], [], []], 2),
        "offsets": longs(0, 4, 4, 4),
        "products": floats(5, 1, 1, 2),
    },
    "FoldLanes": lambda: {
        "folds": np.zeros(8, dtype=U1),
        "costs": floats(*[1.0] * 8),
        "place_of": ints(1, 0),
        "fold_of": np.zeros(2, dtype=U1),
    },
    "ActiveSet": lambda: {"is_active": np.ones(4, dtype=U1), "slack": np.full(2, np.inf, dtype=F4)},
    "MixtureLimits": lambda: {
        "leave_one_out": True,
        "by_document": False,
        "tolerance": 1e-3,
        "max_steps": 5,
        "em_words": 1e6,
    },
    "WordCounts": lambda: {
        "by_word": csr([{0: 2.0, 1: 2.0}, {0: 3.0, 2: 3.0}, {0: 1.0, 1: 1.0}], 3, F8, native.DoubleRows),
        "totals": doubles(6, 3, 3),
    },
    "LabelledDocuments": lambda: {
        "words": documents(),
        "weights": doubles(1, 1),
        "units": pattern([[0, 1], [0, 2]], 3),
        "times": ints(1, 1, 1, 1),
    },
    "StructuredProblem": lambda: {
        "X": documents(),
        "squared_norms": doubles(5, 2),
        "labels": ints(0, 1),
        "outputs": pattern([[0, 1], [1, 0]], 2),
        "margins": doubles(0, 1, 0, 1),
        "phi": csr([{0: 1.0, 1: 1.0}, {0: 1.0, 2: 1.0}], 3, F8, native.DoubleRows),
    },
    "BoostRounds": lambda: {
        "pivots": zeros(2, dtype=I4),
        "absent": zeros(2, 2),
        "present": zeros(2, 2),
        "z": zeros(2),
        "normalizers": zeros(2),
    },
    "Committees": lambda: {
        "pivots": pattern([[0], [1, 2]], 3),
        "class_offsets": longs(0, 2, 3),
        "bias": doubles(-1, 0.5, -0.5),
        "sum_offsets": longs(0, 2, 4),
        "sums": doubles(3, -1, 1, 2),
        "roots": ints(0),
        "below": pattern([[], [1], []], 2),
    },
    "Terms": lambda: {"bytes": np.frombuffer(b"teacoffee" + bytes(8), dtype=U1), "offsets": longs(0, 3, 9)},
    "TermIndex": lambda: {"terms": terms(), "slots": native.index_terms(terms(), 7), "seed": 7},
    "TermRules": lambda: {
        "analyzer": "word",
        "lowercase": True,
        "shortest": 1,
        "longest": 2,
        "stop_words": make("TermIndex"),
        "stemmed": make("TermIndex"),
        "stems": terms(),
    },
    # rows and label sets
    "take_rows": lambda: {"rows": make("Pattern"), "selected": ints(1, 0)},
    "take_columns": lambda: {"rows": make("Pattern"), "selected": ints(1, 0), "columns": ints(0, 2)},
    "compact_columns_in_place": lambda: {"columns": ints(2, 0, 2), "n_columns": 3},
    "transpose_rows": lambda: {"rows": make("Pattern")},
    "multiply_rows_in_place": lambda: {"rows": make("DoubleRows"), "dense": zeros(3, 2), "products": zeros(2, 2)},
    "close_upward": lambda: {"rows": make("Pattern"), "parents": pattern([[], [0], [0, 1]], 3)},
    "keep_most_specific": lambda: {"rows": make("Pattern"), "parents": pattern([[], [0], [0, 1]], 3)},
    "keep_most_general": lambda: {"rows": make("Pattern"), "parents": pattern([[], [0], [0, 1]], 3)},
    # terms
    "count_new_terms": lambda: {"texts": ["tea tea"], "rules": word_rules(), "with_rows": True},
    "count_known_terms": lambda: {"texts": ["tea tea"], "rules": word_rules(), "known": make("TermIndex")},
    "count_hashed_terms": lambda: {"texts": ["tea tea"], "rules": word_rules(), "n_columns": 4},
    "index_terms": lambda: {"terms": terms(), "seed": 7},
    "sort_terms": lambda: {"lists": [terms(), terms()]},
    "read_csv_rows": lambda: {
        "block": b"a,b\n",
        "start": 0,
        "delimiter": b",",
        "n_columns": 2,
        "wanted": ints(0, 1),
        "most_bytes": 10,
        "is_last": True,
    },
    "renumber_rows": lambda: {"rows": make("Rows"), "numbers": ints(-1, 0, 1), "n_numbers": 2},
    "weigh_rows_in_place": lambda: {"rows": make("Pattern"), "weights": floats(1, 2, 3), "values": floats(1, 2, 3)},
    # decisions
    "smooth_trees_in_place": lambda: {
        "parent": ints(-1, 0, 0),
        "weights": doubles(1, 1, 1),
        "penalties": doubles(1, 1, 1),
        "levels": 0,
        "scores": floats(1, 2, 3, 4, 5, 6).reshape(2, 3),
        "smoothed": zeros(2, 3, dtype=F4),
    },
    "minimize_h_loss": lambda: {
        "probabilities": np.full((2, 3), 0.5, dtype=F4),
        "parent": ints(-1, 0, 0),
        "costs": doubles(1, 1, 1),
        "by_sign": zeros(3, dtype=U1),
    },
    "reallocate_probability_in_place": lambda: {
        "P": np.tile([1.0, 0.5, 0.5], (2, 1)),
        "parent": ints(-1, 0, 0),
        "nodes": ints(1, 2),
        "targets": doubles(0.6, 0.7),
        "reserve": 0.1,
        "raise_ancestors": True,
    },
    # naive Bayes and Bayesian logistic regression
    "fit_mixtures_in_place": lambda: {
        "counts": make("WordCounts"),
        "paths": pattern([[0], [1, 0], [2, 0]], 3),
        "documents": make("LabelledDocuments"),
        "unit_documents": pattern([[0, 1], [0], [1]], 2),
        "groups": pattern([[1, 2], [0]], 3),
        "limits": make("MixtureLimits"),
        "expected": zeros(5),
        "weights": zeros(5),
        "steps": zeros(2, dtype=I4),
    },
    "score_mixtures_in_place": lambda: {
        **mixture_arguments(),
        "factors": np.full(8, 0.1),
        "priors": doubles(0, 0),
        "X": documents(),
        "scores": zeros(2, 2),
    },
    "minimize_softmax_bound_in_place": lambda: {
        "scores": zeros(2, 3),
        "variances": np.ones((2, 3)),
        "betas": zeros(2),
        "bounds": zeros(2),
        "slopes": zeros(2, 3),
        "twice_lambda": zeros(2, 3),
        "curvatures": zeros(2, 3),
    },
    # linear models
    "score_rows_in_place": lambda: {
        "X": documents(),
        "weights": zeros(3, 2, dtype=F4),
        "bias": doubles(0, 0),
        "scores": zeros(2, 2),
    },
    "score_units_in_place": lambda: {
        "X": documents(),
        "weights": csr([{0: 1.0}, {1: 1.0}, {2: 1.0}], 3),
        "parent": ints(-1, 0, 0),
        "bias": doubles(0, 0, 0),
        "scores": zeros(2, 3),
    },
    "solve_classes_in_place": lambda: {
        **class_arguments(),
        "tolerance": 1e-3,
        "max_passes": 10,
        "seed": 0,
        "certificates": zeros(2, 4),
    },
    "cross_fit_classes_in_place": lambda: {
        "X": make("Documents"),
        "held_out": documents(),
        "pairs": make("Pairs"),
        "document_weights": floats(1, 1),
        "lanes": make("FoldLanes"),
        "classes": ints(0, 1),
        "loss": "squared_hinge",
        "tolerance": 1e-3,
        "max_passes": 5,
        "seed": 0,
        "scores": zeros(4, 8, dtype=F4),
    },
    "assemble_class_weights_in_place": lambda: {
        "X": make("Documents"),
        "pairs": make("Pairs"),
        "scale": doubles(1, 1),
        "positions": ints(1, 2),
        "threshold": 0.0,
        "first": 0,
        "last": 2,
        "bias": zeros(2),
    },
    "reorder_features_in_place": lambda: {
        "vectors": make("SparseVectors"),
        "units": ints(0, 1),
        "positions": ints(1, 2),
        "bias": zeros(3),
    },
    "sum_class_vectors": lambda: {"X": make("Documents"), "pairs": make("Pairs"), "first": 0, "last": 2},
    "update_tree_duals_in_place": lambda: {
        **tree_arguments(),
        "deltas": make("SparseVectors"),
        "class_vectors": make("ClassVectors"),
        "document_weights": floats(1, 1),
        "siblings": make("SiblingProducts"),
        "active": make("ActiveSet"),
        "loss": "logistic",
        "sibling_passes": 1,
        "class_passes": 1,
        "seed": 0,
    },
    "list_tree_features": lambda: {**tree_arguments(), "is_listed": np.array([1, 0, 0], dtype=U1)},
    "assemble_tree_deltas_in_place": lambda: {**tree_arguments(), "deltas": make("SparseVectors")},
    "multiply_siblings_in_place": lambda: {
        "X": make("Documents"),
        "documents": pattern([[0, 1], [], []], 2),
        "offsets": longs(0, 4, 4, 4),
        "first": 0,
        "last": 3,
        "products": zeros(4, dtype=F4),
    },
    "screen_classes_in_place": lambda: {
        **class_arguments(),
        "scale": doubles(1, 1),
        "threshold": -1.0,
        "exact": True,
        "max_pairs": 5,
        "losses": zeros(2),
    },
    "find_negative_candidates_in_place": lambda: {**candidate_arguments(), "own": pattern([[0], [1]], 2)},
    "find_candidates_in_place": lambda: {**candidate_arguments(), "scores": zeros(2, 2, dtype=F4)},
    "find_top_classes_in_place": lambda: {**candidate_arguments(), "scores": zeros(2, 2, dtype=F4)},
    "score_candidates_in_place": lambda: {
        "X": documents(),
        "deltas": csr([{0: 1.0}, {1: 1.0}, {2: 1.0}], 3),
        "bias": doubles(0, 0, 0),
        "paths": pattern([[0, 1], [0, 2]], 3),
        "candidates": np.array([[0, 1], [1, -1]], dtype=I4),
        "scores": zeros(2, 2, dtype=F4),
    },
    # structured models
    "update_structured_duals_in_place": lambda: {
        "problem": make("StructuredProblem"),
        "products": doubles(2, 1, 1, 2).reshape(2, 2),
        "inverse": zeros(0, 0),
        "documents": longs(1, 0),
        "max_steps": 5,
        "tolerance": 1e-9,
        "alpha_offsets": longs(0, 2, 4),
        "alphas": doubles(1, 0, 1, 0),
        "weights": zeros(3, 3),
        "violations": zeros(2),
    },
    "compute_structured_losses_in_place": lambda: {
        "problem": make("StructuredProblem"),
        "weights": zeros(3, 3),
        "losses": zeros(2),
        "worst": zeros(2, dtype=I4),
    },
    # boosting
    "boost_in_place": lambda: {
        "terms": pattern([[0, 1], [0]], 2),
        "documents": pattern([[0, 1], [0]], 2),
        "labels": pattern([[0], [1]], 2),
        "variant": "R",
        "epsilon": 0.25,
        "weights": np.full((2, 2), 0.25),
        "rounds": make("BoostRounds"),
    },
    "score_committees_in_place": lambda: {
        "committees": make("Committees"),
        "X": pattern([[0], [1, 2]], 3),
        "threshold": 0.0,
        "scores": zeros(2, 3, dtype=F4),
    },
    "predict_committees": lambda: {
        "committees": make("Committees"),
        "X": pattern([[0], [1, 2]], 3),
        "nodes": pattern([[0], [1], [2]], 4),
        "always": ints(3),
    },
}

# Axes that may have any length: lists that the caller selects, rows that come first, and what may be empty.
ANY_LENGTH = {
    ("Pattern", "offsets", 0),
    ("Rows", "offsets", 0),
    ("DoubleRows", "offsets", 0),
    ("ClassVectors", "offsets", 0),
    ("Terms", "offsets", 0),
    ("Committees", "roots", 0),
    ("ActiveSet", "is_active", 0),  # the kernel compares both with the pairs
    ("ActiveSet", "slack", 0),
    ("read_csv_rows", "wanted", 0),
    ("take_rows", "selected", 0),
    ("take_columns", "selected", 0),
    ("take_columns", "columns", 0),
    ("compact_columns_in_place", "columns", 0),
    ("minimize_h_loss", "probabilities", 0),
    ("assemble_class_weights_in_place", "positions", 0),
    ("reorder_features_in_place", "units", 0),
    ("reorder_features_in_place", "positions", 0),
    ("solve_classes_in_place", "classes", 0),
    ("cross_fit_classes_in_place", "classes", 0),
    ("FoldLanes", "place_of", 0),  # the kernel compares it with the documents
    ("screen_classes_in_place", "classes", 0),
    ("find_negative_candidates_in_place", "candidates", 1),
    ("update_structured_duals_in_place", "inverse", 0),
    ("update_structured_duals_in_place", "inverse", 1),
    ("predict_committees", "always", 0),
}
NO_INDICES = {("LabelledDocuments", "times")}  # whole numbers that point to nothing
OTHER = {"int64": I4, "int32": I8, "float32": F8, "float64": F4, "uint8": np.int8, "uint64": I8}

names = pytest.mark.parametrize("name", sorted(EXAMPLES))


def call(name, arguments):
    return getattr(native, name)(**arguments)


def signatures_of(name):
    found = getattr(native, name)
    texts = (found.__init__ if isinstance(found, type) else found).__nb_signature__
    return [text for text, *_ in texts]


def written_to(name):
    """The arrays that a kernel or a struct may write to."""
    found = re.findall(r"(\w+): ndarray\[([^\]]*)\]", signatures_of(name)[0])
    return {argument for argument, kind in found if "writable=False" not in kind}


def arrays_of(name):
    return {key: value for key, value in EXAMPLES[name]().items() if isinstance(value, np.ndarray)}


def is_refused(name, argument, value, error):
    """Whether an example is refused once one argument is replaced."""
    try:
        call(name, EXAMPLES[name]() | {argument: value})
    except error as refused:
        return error is TypeError or re.search(r"; give |, but ", str(refused)) is not None
    return False


def test_there_is_an_example_of_everything():
    compiled = {name for name in dir(_core) if not name.startswith("_") and name != "LANES"}
    assert set(EXAMPLES) == compiled
    assert compiled == set(native.__all__) - {"LANES", "pattern_of", "rows_of"}


@names
def test_the_example_is_accepted(name):
    call(name, EXAMPLES[name]())


@names
def test_nothing_takes_more_than_twelve_parameters(name):
    for text in signatures_of(name):
        assert len(re.findall(r"(\w+): ", re.sub(r"\[[^\]]*\]", "", text))) <= MAX_PARAMETERS
    assert len(EXAMPLES[name]()) <= MAX_PARAMETERS


@names
def test_an_array_of_another_type_is_refused(name):
    taken = []
    for key, array in arrays_of(name).items():
        other = I8 if len(signatures_of(name)) > 1 and array.dtype.kind == "f" else OTHER[array.dtype.name]
        if not is_refused(name, key, array.astype(other), TypeError):
            taken.append(key)
    assert taken == []


@names
def test_an_array_with_gaps_is_refused(name):
    taken = []
    for key, array in arrays_of(name).items():
        with_gaps = np.repeat(array, 2, axis=-1)[..., ::2]
        if not with_gaps.flags.c_contiguous and not is_refused(name, key, with_gaps, TypeError):
            taken.append(key)
    assert taken == []


@names
def test_an_array_with_another_number_of_dimensions_is_refused(name):
    taken = [key for key, array in arrays_of(name).items() if not is_refused(name, key, array[None], TypeError)]
    assert taken == []


@names
def test_only_arrays_that_are_written_to_must_be_writable(name):
    for key, array in arrays_of(name).items():
        fixed = array.copy()
        fixed.flags.writeable = False
        assert is_refused(name, key, fixed, TypeError) == (key in written_to(name)), key


@names
def test_an_array_that_is_too_short_is_refused(name):
    taken = []
    for key, array in arrays_of(name).items():
        for axis in range(array.ndim):
            if (name, key, axis) in ANY_LENGTH:
                continue
            shorter = np.ascontiguousarray(np.delete(array, -1, axis))
            if not is_refused(name, key, shorter, ValueError):
                taken.append((key, axis))
    assert taken == []


@names
def test_an_index_outside_of_its_range_is_refused(name):
    taken = []
    for key, array in arrays_of(name).items():
        if array.dtype not in (I4, I8) or key in written_to(name) - {"columns"} or (name, key) in NO_INDICES:
            continue
        for at in range(array.size):
            outside = array.copy()
            outside.flat[at] = 1_000_000
            if not is_refused(name, key, outside, ValueError):
                taken.append((key, at))
    assert taken == []


@names
def test_an_unknown_name_is_refused_with_those_that_are_known(name):
    for key, value in EXAMPLES[name]().items():
        if isinstance(value, str):
            with pytest.raises(ValueError, match=rf"{key} is 'nonsense'; give '.*{value}.*'"):
                call(name, EXAMPLES[name]() | {key: "nonsense"})
            assert is_refused(name, key, 0, TypeError)


@names
def test_a_struct_of_another_class_is_refused(name):
    other = make("BoostRounds") if name != "boost_in_place" else make("ActiveSet")
    for key, value in EXAMPLES[name]().items():
        if type(value).__module__ == "ramify.native._core":
            assert is_refused(name, key, other, TypeError), key
            if (name, key) != ("update_tree_duals_in_place", "class_vectors") and name != "TermRules":
                assert is_refused(name, key, None, TypeError), key


@pytest.mark.parametrize("name", sorted(name for name in EXAMPLES if name[0].isupper()))
def test_a_struct_survives_pickling_and_its_maker(name):
    copy = pickle.loads(pickle.dumps(make(name)))
    assert type(copy) is getattr(native, name)


def test_a_struct_owns_its_arrays():
    rows = native.Rows(longs(0, 1), ints(0), floats(3), 1)  # nobody else has them
    scores = np.zeros((1, 1))
    native.score_rows_in_place(rows, floats(2).reshape(1, 1), doubles(1), scores)
    assert scores.tolist() == [[7.0]]


def test_a_struct_copies_nothing():
    values, scores = floats(3), np.zeros((1, 1))
    rows = native.Rows(longs(0, 1), ints(0), values, 1)
    values[0] = 5
    native.score_rows_in_place(rows, floats(2).reshape(1, 1), doubles(1), scores)
    assert scores.tolist() == [[11.0]]


def test_scores_of_units_in_another_precision_are_refused():
    """They would be converted, written to and thrown away."""
    arguments = EXAMPLES["score_units_in_place"]()
    with pytest.raises(TypeError, match="scores: ndarray.dtype=float64"):
        native.score_units_in_place(**arguments | {"scores": np.zeros((2, 3), dtype=np.float32)})


@pytest.mark.parametrize(
    ("name", "changed", "message"),
    [
        ("Rows", {"columns": ints(2, 0, 3)}, "columns holds 3; give numbers from 0 to 2."),
        ("Rows", {"offsets": longs(0, 2, 1)}, "offsets falls or is negative"),
        ("Rows", {"offsets": longs(0, 1, 4)}, "offsets ends at 4, but there are only 3 entries."),
        ("score_rows_in_place", {"bias": doubles(0)}, "weights is 3 × 2; give 3 × 1, features × classes."),
        ("smooth_trees_in_place", {"levels": 1}, "levels is 1; give 0 for exact smoothing, or at least 2."),
        ("smooth_trees_in_place", {"parent": ints(-1, 2, 0)}, "give parents before their children"),
        ("sum_class_vectors", {"last": 3}, "the range is 0 to 3; give one within 0 to 2."),
        ("screen_classes_in_place", {"max_pairs": 0}, "max_pairs is 0; give at least 1."),
        ("count_hashed_terms", {"n_columns": 0}, "n_columns is 0 or too large"),
        ("TermRules", {"shortest": 3}, "give 1 ≤ shortest ≤ longest"),
        ("TermRules", {"analyzer": "chars"}, "analyzer is 'chars'; give 'word', 'char' or 'char_wb'"),
        ("TermRules", {"analyzer": "char"}, "leave them out for characters"),
        ("TermRules", {"stems": None}, "only one of stemmed and stems is given"),
    ],
)
def test_a_refusal_says_what_was_found_and_what_to_give(name, changed, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call(name, EXAMPLES[name]() | changed)
