"""Metrics refuse what they cannot read in one sentence, wherever the wrong argument stands."""

import inspect

import numpy as np
import pytest
from scipy.sparse import csr_array

from ramify import Taxonomy, metrics
from ramify.errors import InputError, RamifyError

FOOD = Taxonomy.from_paths(["fruit/apple", "fruit/pear", "bread"])
Y = FOOD.encode(["fruit/apple", "bread"])
P = np.full((2, 4), 0.5)
FUNCTIONS = {name: getattr(metrics, name) for name in metrics.__all__ if inspect.isfunction(getattr(metrics, name))}
GOOD = {"Y_true": Y, "Y_pred": Y, "A": Y, "B": Y, "scores": P, "probabilities": P, "uncalibrated": P, "taxonomy": FOOD}
GOOD |= {"k": 1, "bins": 10, "folds": [(Y, Y)], "classes": np.array([1, 2]), "p_values": [0.1], "own_nodes": ["fruit"]}
GOOD |= {"n_resamples": 10, "seed": 0}
WRONG = [
    None, "a", b"a", 1, [], {}, object(), np.zeros(3), np.zeros((2, 9)), csr_array((2, 3)), [["a"]], [[0], [0, 1]],
    np.full((2, 4), "a"), np.zeros((2, 4), dtype=object), np.full((2, 4), object()), np.zeros((2, 4), dtype=complex),
    csr_array((2, 4), dtype=complex),
]  # fmt: skip
OPTIONAL = ("probabilities", "uncalibrated", "own_nodes")  # may be None
CASES = [(name, given) for name, call in FUNCTIONS.items() for given in inspect.signature(call).parameters if given in GOOD]


@pytest.mark.parametrize(("name", "given"), CASES)
def test_a_metric_refuses_what_it_cannot_read(name, given):
    call, parameters = FUNCTIONS[name], inspect.signature(FUNCTIONS[name]).parameters
    good = {each: value for each, value in GOOD.items() if each in parameters}
    call(**good)
    for wrong in WRONG:
        try:
            call(**{**good, given: wrong})
        except RamifyError as error:
            assert str(error).endswith(".")
            assert "\n" not in str(error)
        else:  # only what can be read as numbers or as none
            shape = np.shape(good[given])
            is_number = isinstance(wrong, int) and shape == ()
            is_empty = (
                given in ("classes", "own_nodes", "p_values", "seed") and wrong is not None and not isinstance(wrong, str)
            )
            is_none = wrong is None and (given in OPTIONAL or given == "seed")
            is_zero = given in ("scores", "probabilities", "uncalibrated") and np.shape(wrong) == shape
            assert is_number or is_empty or is_none or is_zero, (wrong, good)


def test_a_taxonomy_given_as_an_array_is_named():
    with pytest.raises(InputError, match=r"taxonomy is an array of shape \(2, 4\); give a ramify.Taxonomy\."):
        metrics.accuracy(Y, Y, np.zeros((2, 4)))


def test_strings_and_objects_are_no_label_matrix():
    with pytest.raises(InputError, match="a label matrix holds values of type <U1; give 0 and 1, or False and True"):
        metrics.micro_f1([["a", "b", "c", "d"]], Y, FOOD)
    with pytest.raises(InputError, match="a matrix of decisions holds values of type object"):
        metrics.sign_test(np.zeros((2, 2), dtype=object), [[1, 0]] * 2, [[1, 0]] * 2)


def test_complex_numbers_are_no_scores():
    with pytest.raises(InputError, match="the scores are complex numbers, not real ones; give one per document and node"):
        metrics.document_auc(Y, P + 0j, FOOD)
    with pytest.raises(InputError, match="the costs are complex numbers"):
        metrics.h_loss(Y, Y, FOOD, costs=np.ones(4, dtype=complex))


@pytest.mark.parametrize("wrong", [Y, (Y,), (Y, Y, Y), "ab", None, 1])
def test_a_fold_that_is_no_pair_is_named_by_its_number(wrong):
    with pytest.raises(InputError, match=r"entry 2 of the folds is .*; give each as a pair, \(Y_true, Y_pred\)\."):
        metrics.measure_predictions([(Y, Y), (wrong if wrong is not Y else csr_array((3, 4)))], FOOD, np.array([1]))


def test_no_folds_are_refused():
    with pytest.raises(InputError, match="there are no folds"):
        metrics.measure_predictions([], FOOD, np.array([1]))


@pytest.mark.parametrize("wrong", [[-1], [4], [0.5], [[1]], ["a"], None, 1])
def test_classes_are_numbers_of_nodes(wrong):
    with pytest.raises(InputError, match="the classes are not .*; give numbers of nodes, from 0 to 3"):
        metrics.measure_predictions([(Y, Y)], FOOD, wrong)


def test_a_metric_to_resample_is_a_name_or_a_function():
    for wrong in (1, None, [], "f9"):
        with pytest.raises(InputError, match="metric is .*; give 'micro_f1', 'macro_f1', or a function"):
            metrics.paired_bootstrap(Y, Y, Y, wrong)
