"""Costs, penalties and weights by node name, from mappings and files, in every function and rule that takes them."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import build, trees

from ramify import Taxonomy, TextClassifier
from ramify.decisions import IsotonicSmooth, MinimizeHLoss, isotonic_smooth, minimize_h_loss
from ramify.errors import InputError, ModelError
from ramify.metrics import h_loss
from ramify.taxonomy import read_node_values, values_by_node

TREE = Taxonomy.from_paths(["food/fruit", "food/bread", "drink/tea"])


@given(trees(max_nodes=7, min_nodes=2), st.data())
def test_numbers_by_name_do_what_the_same_numbers_in_node_order_do(parents, data):
    taxonomy, n = build(parents), len(parents)
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    P, T = rng.random((3, n)), rng.random((3, n)) < 0.4
    named = data.draw(st.dictionaries(st.sampled_from(taxonomy.names), st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=1))
    by_default = {other: np.array([named.get(name, other) for name in taxonomy.names]) for other in (0.0, 1.0)}
    same = [
        (minimize_h_loss(P, taxonomy, named), minimize_h_loss(P, taxonomy, by_default[1.0])),
        (MinimizeHLoss(named).decide(P, taxonomy), minimize_h_loss(P, taxonomy, by_default[1.0])),
        (h_loss(T, P > 0.5, taxonomy, named), h_loss(T, P > 0.5, taxonomy, by_default[1.0])),
        (isotonic_smooth(P, taxonomy, named), isotonic_smooth(P, taxonomy, by_default[0.0])),
        (isotonic_smooth(P, taxonomy, 1.0, named), isotonic_smooth(P, taxonomy, 1.0, by_default[1.0])),
        (IsotonicSmooth(penalty=named).refine(P, taxonomy), isotonic_smooth(P, taxonomy, by_default[0.0])),
        (
            IsotonicSmooth(penalty=1.0, weights=named).refine(P, taxonomy),
            isotonic_smooth(P, taxonomy, 1.0, by_default[1.0]),
        ),
    ]
    for found, expected in same:
        a, b = (part.toarray() if hasattr(part, "toarray") else part for part in (found, expected))
        np.testing.assert_array_equal(a, b)


def test_infinite_penalties_by_name_are_saved_and_loaded(tmp_path):
    rule = IsotonicSmooth(penalty={"food": np.inf, "drink": 2}, weights={"tea": 0.5}, at_least_one=True)
    state = json.loads(json.dumps(rule.state(), allow_nan=False))
    assert IsotonicSmooth.from_state(state) == rule
    clf = TextClassifier("isotonic-nb", TREE, decision=rule).fit(
        ["red apple", "rye bread", "tea"] * 3, ["fruit", "bread", "tea"] * 3
    )
    clf.save(tmp_path / "model")
    from ramify import load

    assert load(tmp_path / "model").decision_ == rule
    with pytest.raises(ModelError, match="not numbers"):
        MinimizeHLoss.from_state({"costs": {"food": "much"}, "switch_depth": 0})


def test_notes_tell_what_the_other_nodes_have():
    assert MinimizeHLoss({"food": 2}).notes(TREE) == ["costs: 1 of 5 nodes are named; the others have 1"]
    assert IsotonicSmooth({"food": 2}, weights=dict.fromkeys(TREE.names, 1)).notes(TREE) == [
        "penalty: 1 of 5 nodes are named; the others have 0"
    ]
    assert MinimizeHLoss().notes(TREE) == []


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ({"fruits": 2}, r"the costs name 'fruits', which is none of the 5 nodes of the taxonomy; .* Did you mean 'fruit'"),
        ({"fruit": 2, "food/fruit": 3}, "name one node twice, as 'fruit' and 'food/fruit'"),
        ({"fruit": "much"}, "not numbers"),
        ({"fruit": True}, "not numbers"),
        ({"fruit": -1}, "-1.0 is among the costs"),
        ({"fruit": 10**400}, "not numbers"),
    ],
)
def test_what_is_no_cost_of_a_node_is_refused_before_anything_is_trained(costs, message):
    rule = MinimizeHLoss(costs)
    with pytest.raises(InputError, match=message):
        TextClassifier("b-svm", TREE, decision=rule).fit(["red apple", "rye bread"], ["fruit", "bread"])
    weights = costs
    with pytest.raises(InputError, match=message.replace("costs", "weights")):
        TextClassifier("b-svm", TREE, decision=IsotonicSmooth(weights=weights)).fit(["apple", "bread"], ["fruit", "bread"])


def test_functions_refuse_unknown_nodes_too():
    for call in (
        lambda: h_loss(np.ones((1, 5)), np.ones((1, 5)), TREE, {"nothing": 1}),
        lambda: isotonic_smooth(np.ones((1, 5)), TREE, {"nothing": 1}),
        lambda: values_by_node({"food": "x"}, TREE, "costs", 1.0),
    ):
        with pytest.raises(InputError):
            call()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("costs.json", '{"food": 2, "tea": 0.5, "drink": "inf"}'),
        ("costs.csv", "node,cost\nfood,2\n\n tea , 0.5\ndrink,inf\n"),
        ("costs.tsv", "food\t2\ntea\t0.5\ndrink\tinf\n"),
        ("costs.txt", '\ufeff"food",2\ntea,0.5\ndrink,inf\n'),
    ],
)
def test_files_are_json_objects_and_tables_with_or_without_a_header(tmp_path, name, text):
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert read_node_values(tmp_path / name) == {"food": 2.0, "tea": 0.5, "drink": np.inf}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no number"),
        ("node,cost\n", "there is no number"),
        ("food,2\nfood,3\n", "line 2: node 'food' comes a second time"),
        ('{"food": 2, "food": 3}', "node 'food' comes a second time"),
        ("food,2\ntea,much\n", "line 2 has 'tea much'"),
        ("food,2,3\n", "line 1 has 'food 2 3'"),
        ("food\n", "line 1 has 'food'"),
        ('{"food": true}', "node 'food' has 'True', not a number"),
        ('{"food": {"tea": 2}}', "not a number"),
        ("{food: 2}", "not valid JSON"),
        ("{" * 100_000, "not valid JSON"),
    ],
)
def test_other_files_are_refused_with_their_name_and_what_to_do(tmp_path, text, message):
    path = tmp_path / "costs.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as refusal:
        read_node_values(path)
    assert str(refusal.value).startswith(str(path))
    with pytest.raises(InputError, match="cannot be read"):
        read_node_values(tmp_path / "none.csv")
