"""Answers that respect a options: how many labels, how sure, and where in the tree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify import TextClassifier
from ramify.errors import InputError, LabelError
from ramify.systems import SYSTEMS
from ramify.workflows import PredictOptions, Predictor, predict_rows

TEXTS = [
    "red apple", "green apple pie", "yellow banana", "banana bread", "rye bread crust", "white bread loaf", "black tea",
    "green tea leaf", "strong coffee", "coffee with milk", "a fruit salad", "food for all",
]  # fmt: skip
LABELS = ["food/fruit/apple", "food/fruit/apple", "food/fruit/banana", "food/fruit/banana", "food/bread", "food/bread",
          "drink/tea", "drink/tea", "drink/coffee", "drink/coffee", "food/fruit", "food"]  # fmt: skip
ASKED = ["apple bread", "green tea", "coffee and banana", "nothing known here", "food"]


@pytest.fixture(scope="module", params=list(SYSTEMS))
def fitted(request):
    return TextClassifier(request.param).fit(TEXTS * 3, LABELS * 3)


def names(predictor, found):
    return [predictor.name(node) for node, _ in found]


def test_without_options_predictions_are_those_of_predict(fitted):
    predictor = Predictor(fitted)
    given = [sorted(names(predictor, labels)) for labels, _ in predictor.predict(ASKED)]
    assert given == [sorted(row) for row in fitted.taxonomy_.decode(fitted.predict_matrix(ASKED))]


def test_probabilities_are_those_of_predict_proba_whatever_is_wished(fitted):
    P = fitted.predict_proba(ASKED)
    for options in (PredictOptions(), PredictOptions(top=3), PredictOptions(within=("food",)), PredictOptions(threshold=0.4)):
        for row, (labels, others) in zip(P, Predictor(fitted, options).predict(ASKED), strict=True):
            assert all(p == pytest.approx(row[node], abs=1e-6) for node, p in labels + others)


def test_labels_lie_within_and_never_without(fitted):
    taxonomy = fitted.taxonomy_
    fruit, tea = taxonomy.index("food/fruit"), taxonomy.index("drink/tea")
    for labels, others in Predictor(fitted, PredictOptions(top=4, within=("food/fruit",))).predict(ASKED):
        assert all(fruit in (node, *taxonomy.ancestors_of(node)) for node, _ in labels + others)
    for labels, others in Predictor(fitted, PredictOptions(top=20, without=("food", "drink/tea"))).predict(ASKED):
        assert all(taxonomy.names[node] in ("drink", "drink/coffee") for node, _ in labels + others)
        assert tea not in [node for node, _ in labels + others]


def test_where_one_class_is_the_best_of_all_it_is_also_the_best_within_its_branch():
    for system in ("nb", "svm", "lr", "hr-svm", "shrinkage-nb", "hblr", "hsvm"):
        fitted = TextClassifier(system).fit(TEXTS * 3, LABELS * 3)
        free = Predictor(fitted).predict(ASKED)
        for text, (labels, _) in zip(ASKED, free, strict=True):
            top = fitted.taxonomy_.names[fitted.taxonomy_.nodes_to(labels[0][0])[0]]
            assert Predictor(fitted, PredictOptions(within=(top,))).predict([text])[0][0] == labels


def test_best_within_a_subtree_is_the_highest_score_in_it():
    fitted = TextClassifier("nb").fit(TEXTS, LABELS)
    S = fitted.learner_.scores(fitted.vectorizer_.transform(ASKED))
    inside = sorted(fitted.taxonomy_.index(name) for name in ("drink", "drink/tea", "drink/coffee"))
    expected = [inside[int(np.nanargmax(row[inside]))] for row in S]
    assert [labels[0][0] for labels, _ in Predictor(fitted, PredictOptions(within=("drink",))).predict(ASKED)] == expected


def test_going_down_without_a_branch_shares_its_chance_among_the_others():
    fitted = TextClassifier("pachinko-nb").fit(TEXTS * 3, LABELS * 3)
    for labels, _ in Predictor(fitted, PredictOptions(without=("food",))).predict(["bread"] * 2):
        assert fitted.taxonomy_.names[labels[0][0]].startswith("drink/")


def test_of_branches_that_are_almost_impossible_the_likelier_one_is_taken():
    texts = ["apple " * 50, "bread " * 50, "tea " * 50, "coffee " * 50]
    fitted = TextClassifier("pachinko-nb").fit(texts, ["fruit", "bread", "tea", "coffee"])
    asked = "apple " * 80 + "coffee coffee coffee"
    P = fitted.predict_proba([asked])[0]
    ((labels, _),) = Predictor(fitted, PredictOptions(without=("fruit",))).predict([asked])
    assert P[fitted.taxonomy_.index("fruit")] == 1.0
    assert [fitted.taxonomy_.names[node] for node, _ in labels] == ["coffee"]


def test_in_a_dag_a_threshold_finds_any_way_up():
    from ramify import Taxonomy

    taxonomy = Taxonomy.from_edges([("a", None), ("d", None), ("c", "a"), ("c", "d"), ("x", "d"), ("y", None)])
    fitted = TextClassifier("nb", taxonomy).fit(["red", "blue", "green", "grey"], ["c", "x", "y", "a"])
    p = fitted.predict_proba(["red blue"])[0]
    threshold = float(p[taxonomy.index("d")])
    assert p[taxonomy.index("c")] < threshold
    ((labels, _),) = Predictor(fitted, PredictOptions(within=("d",), threshold=threshold)).predict(["red blue"])
    assert [taxonomy.names[node] for node, _ in labels] == ["d"]


def slow_renormalize(taxonomy, p, is_open):
    """P(child | parent, and in no closed subtree), child by child."""
    shared = p.copy()
    for node in range(len(taxonomy)):
        above = taxonomy.parents_of(node).tolist()
        siblings = (taxonomy.children_of(above[0]) if above else taxonomy.roots).tolist()
        if all(is_open[one] for one in siblings):
            continue
        stays = 1 - sum(p[one] for one in siblings)
        left = sum(p[one] for one in siblings if is_open[one]) + (stays if stays > 1e-5 else 0)
        shared[node] = 0 if not is_open[node] else p[node] / left if left else 0
    return shared


@given(st.integers(0, 2**32 - 1))
def test_what_closed_children_had_is_shared_out_among_the_others_and_staying(seed):
    from ramify.decisions import Descend
    from ramify.workflows.predictor import Subtrees

    taxonomy = TextClassifier("nb").fit(TEXTS, LABELS).taxonomy_
    rng = np.random.default_rng(seed)
    p = np.zeros(len(taxonomy))
    for children in [taxonomy.roots, *(taxonomy.children_of(node) for node in range(len(taxonomy)))]:
        shares = rng.dirichlet(np.full(len(children) + 1, rng.choice([0.1, 1.0])))
        p[children] = shares[:-1]
    inner = np.setdiff1d(np.arange(len(taxonomy)), taxonomy.roots[:1])  # one root stays open, or nothing would be left
    closed = rng.choice(inner, size=2, replace=False)
    subtrees = Subtrees.of(taxonomy, (), [taxonomy.names[node] for node in closed.tolist()])
    found = subtrees.close(p[None, :], Descend())[0]
    np.testing.assert_allclose(found, slow_renormalize(taxonomy, p, subtrees.is_open), atol=1e-9)


def test_where_the_likeliest_child_is_closed_one_goes_on_to_another_and_does_not_stop():
    from ramify import Taxonomy
    from ramify.decisions import Descend
    from ramify.workflows.predictor import Subtrees

    tree = Taxonomy.from_paths(["a/x", "a/y"])
    subtrees, p = Subtrees.of(tree, (), ("a/x",)), [[1.0, 0.9, 0.06]]
    assert tree.decode(Descend().decide(subtrees.close(p, Descend()), tree)) == [["a/y"]]


def slow_stop(taxonomy, p, node, threshold):
    """The deepest node on the way to a node that is likely enough."""
    likely = [here for here in taxonomy.nodes_to(node) if p[here] >= threshold]
    return likely[-1] if likely else None


@given(st.floats(0, 1))
def test_a_threshold_stops_at_the_deepest_node_that_is_likely_enough(threshold):
    fitted = test_a_threshold_stops_at_the_deepest_node_that_is_likely_enough.fitted
    P, free = fitted.predict_proba(ASKED), Predictor(fitted).predict(ASKED)
    for p, (before, _), (labels, _) in zip(
        P, free, Predictor(fitted, PredictOptions(threshold=threshold)).predict(ASKED), strict=True
    ):
        expected = slow_stop(fitted.taxonomy_, p, before[0][0], threshold)
        assert [node for node, _ in labels] == ([] if expected is None else [expected])


test_a_threshold_stops_at_the_deepest_node_that_is_likely_enough.fitted = TextClassifier("nb").fit(TEXTS, LABELS)


def test_of_several_labels_on_one_path_a_threshold_leaves_the_deepest():
    several = [[label, "drink/tea"] if i % 3 == 0 and label != "drink/tea" else [label] for i, label in enumerate(LABELS)]
    fitted = TextClassifier("svm").fit(TEXTS * 3, several * 3)
    for threshold in np.linspace(0, 1, 21):
        for labels, _ in Predictor(fitted, PredictOptions(threshold=float(threshold))).predict(ASKED):
            nodes = [node for node, _ in labels]
            above = {int(a) for node in nodes for a in fitted.taxonomy_.ancestors_of(node)}
            assert len(set(nodes)) == len(nodes)
            assert not above & set(nodes)
            assert all(p >= threshold for _, p in labels)


def test_top_gives_so_many_labels_in_all_each_once_and_likeliest_first(fitted):
    for top in (1, 2, 5):
        for labels, others in Predictor(fitted, PredictOptions(top=top)).predict(ASKED):
            assert len(others) == max(0, top - max(1, len(labels)))
            found = [node for node, _ in labels + others]
            assert len(set(found)) == len(found)
            assert [p for _, p in others] == sorted((p for _, p in others), reverse=True)


def test_where_there_is_no_label_the_first_place_stays_empty():
    fitted = TextClassifier("nb").fit(TEXTS, LABELS)
    for labels, others in Predictor(fitted, PredictOptions(top=3, threshold=1.0)).predict(ASKED):
        assert (len(labels), len(others)) == (0, 2)


def test_answers_do_not_depend_on_threads_or_on_the_other_rows(fitted):
    rows = [(line, {"t": text}) for line, text in enumerate(ASKED * 300)]
    fitted.use_threads(2)
    together = [(a.labels, a.others) for a in predict_rows(fitted, rows, "t", PredictOptions(top=2))]
    fitted.use_threads(1)
    alone = {text: next(iter(predict_rows(fitted, [(1, {"t": text})], "t", PredictOptions(top=2)))) for text in ASKED}
    for (labels, others), (_, row) in zip(together, rows, strict=True):
        assert [name for name, _ in labels + others] == [name for name, _ in alone[row["t"]].labels + alone[row["t"]].others]


def test_options_out_of_range_are_refused():
    fitted = TextClassifier("nb").fit(TEXTS, LABELS)
    for options in (
        PredictOptions(top=0),
        PredictOptions(top=101),
        PredictOptions(threshold=1.5),
        PredictOptions(threshold=float("nan")),
    ):
        with pytest.raises(InputError, match="top|threshold"):
            Predictor(fitted, options)
    with pytest.raises(LabelError, match="not in the taxonomy"):
        Predictor(fitted, PredictOptions(within=("foood",)))
    with pytest.raises(InputError, match="nothing is left"):
        Predictor(fitted, PredictOptions(within=("food/fruit",), without=("food",)))
