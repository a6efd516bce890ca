"""The study of Punera & Ghosh 2008: its folds, what it measures, what it shows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from paper_files.all_newsgroups import write_all_newsgroups

from experiments import find_study, reproduce
from experiments.bundled import requests_at_leaves
from experiments.data import Datasets
from experiments.page import Beside, Chart, Text
from experiments.punera2008.folds import Scored, parts_of, split
from experiments.punera2008.measures import label_measures, measures, readings
from experiments.punera2008.posts import SHOP, Posts, Protocol, below_one_root
from experiments.punera2008.tables import average, change, gain, gain_rows
from experiments.punera2008.ways import hybrid_rows, missing_rows, penalty_rows
from ramify import Taxonomy
from ramify.decisions import IsotonicSmooth
from ramify.taxonomy import expand_to_ancestors

pytestmark = pytest.mark.slow

TREE = Taxonomy.from_edges([("all", None), ("a", "all"), ("b", "all"), ("a1", "a"), ("a2", "a")])
LEAVES = ["a1", "a2", "b"]


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    return write_all_newsgroups(tmp_path_factory.mktemp("corpora"))


@pytest.fixture(scope="module")
def scored():
    rng = np.random.default_rng(0)
    names = rng.choice(LEAVES, 40)
    T = expand_to_ancestors(TREE.encode([[name] for name in names]), TREE)
    P = np.clip(T.toarray() * 0.5 + rng.random(T.shape) * 0.6, 0, 1)
    return Scored(TREE, P, T.toarray(), T)


# ---- running ------------------------------------------------------------------------------------------------------------


def test_every_part_runs_on_the_published_layout_and_shows_tables_and_charts(corpora, tmp_path):
    done = reproduce(find_study("punera2008"), Datasets(corpora), tmp_path, "tiny")
    assert not done.missing
    shown = {outcome.part.name: outcome.blocks for outcome in done.outcomes}
    assert list(shown) == ["svm", "naive-bayes", "hybrids"]
    assert [sum(isinstance(block, Chart) for block in blocks) for blocks in shown.values()] == [6, 2, 4]
    beside = [block for block in shown["svm"] if isinstance(block, Beside)]
    assert [row.paper for row in beside[0].rows] == [16.0, 3.0, 254.0, 24.0, 155.0]
    assert done.outcomes[2].entry.found["svm"][0]["learnt"] > done.outcomes[0].entry.found["svm"][0]["learnt"]


def test_without_the_newsgroups_bundled_requests_stand_in_and_say_so(tmp_path):
    done = reproduce(find_study("punera2008"), Datasets(), tmp_path, "tiny")
    assert [outcome.part.name for outcome in done.outcomes] == ["bundled-svm", "bundled-naive-bayes", "bundled-hybrids"]
    assert set(done.missing) == {"svm", "naive-bayes", "hybrids"}
    for outcome in done.outcomes:
        first = outcome.blocks[0]
        assert isinstance(first, Text)
        assert first.words.startswith("Not the paper's corpus")
        assert {row.why for table in outcome.figures() for row in table.rows} <= {"other documents"}
    assert "The tree of Figure 1" in done.page.read_text()


# ---- folds --------------------------------------------------------------------------------------------------------------


@given(st.integers(10, 300), st.integers(2, 6), st.integers(0, 9))
def test_folds_test_every_post_once_and_train_on_none_that_they_test(n, folds, seed):
    tested = []
    for fold in range(folds):
        parts = split(n, fold, folds, seed)
        assert sorted(place for part in parts for place in part) == list(range(n))
        assert len(parts[1]) == round(0.1 * (n - len(parts[2])))
        tested += parts[2].tolist()
    assert sorted(tested) == list(range(n))


def test_hybrids_to_be_tested_hold_no_word_of_a_post_of_the_training_set():
    texts = [f"only{k} here{k}" for k in range(60)]
    posts = Posts(texts, LEAVES * 20, TREE)
    learnt, _, test = parts_of(posts, 0, Protocol(folds=3, tested=1, draws=1, per_node=30), 0, hybrids=True)
    words = [{word for text in part.texts for word in text.split()} for part in (learnt, test)]
    assert not words[0] & words[1]
    assert test.names.count("a") == test.names.count("all") == 10


def test_the_requests_have_one_root_and_keep_their_leaves():
    texts, names, forest = requests_at_leaves()
    tree = below_one_root(forest)
    assert (len(tree), tree.names[tree.roots[0]], len(tree.roots)) == (len(forest) + 1, SHOP, 1)
    assert all(tree.is_leaf[tree.index(name)] for name in set(names))
    assert len(texts) == len(names)


# ---- measures -----------------------------------------------------------------------------------------------------------


def test_accuracy_wants_all_labels_of_a_document_and_no_other():
    T = np.asarray([[1, 1, 0], [1, 0, 1], [1, 1, 0], [1, 1, 0]], dtype=bool)
    G = np.asarray([[1, 1, 0], [1, 1, 1], [1, 0, 0], [0, 0, 0]], dtype=bool)
    found = label_measures(T, G)
    assert found["accuracy"] == pytest.approx(1 / 4)
    assert found["precision"] == pytest.approx((1 + 2 / 3 + 1 + 0) / 4)
    assert found["recall"] == pytest.approx((1 + 1 + 1 / 2 + 0) / 4)
    assert found["f"] == pytest.approx((1 + 4 / 5 + 2 / 3 + 0) / 4)


def test_readings_of_accuracy_differ_and_of_equal_scores_each_counts_in_part():
    T = np.asarray([[1, 0, 0], [0, 1, 0]], dtype=bool)
    scores = np.asarray([[0.9, 0.6, 0.1], [0.4, 0.4, 0.4]])
    found = readings(T, scores >= 0.5, scores)
    assert found == {"leaves": 0.0, "found": 0.5, "each": pytest.approx(4 / 6), "best": pytest.approx((1 + 1 / 3) / 2)}


def test_smoothed_measures_are_those_of_the_rule(scored):
    rule = IsotonicSmooth(penalty=np.inf, at_least_one=True)
    labels = rule.decide(scored.P, TREE).toarray()
    wanted = measures(scored.T, rule.refine(scored.P, TREE), labels, TREE)
    assert scored.measure_smoothed(scored.P, penalty=np.inf) == pytest.approx(wanted)
    assert wanted["f_one"] == pytest.approx(label_measures(scored.T, labels)["f"])


# ---- ways ---------------------------------------------------------------------------------------------------------------


def test_where_no_classifier_is_missing_guesses_and_priors_change_nothing(scored):
    penalty = penalty_rows(scored, 3, np.random.default_rng(0))
    missing = missing_rows(scored, 3, np.random.default_rng(0))
    assert missing["guesses 0"] == pytest.approx(penalty["none"])
    for way in ("strict 0", "priors-0.1 0", "priors-0.5 0"):
        assert missing[way] == pytest.approx(penalty["inf"])
    assert missing["plain 0"] == pytest.approx(penalty["0"])
    assert missing["guesses 60"]["auc"] < missing["guesses 0"]["auc"]


def test_a_penalty_in_proportion_to_shares_of_one_is_the_same_at_every_node(scored):
    rows = hybrid_rows(scored, 1, np.random.default_rng(0))  # all documents lie at leaves, so that every share is 1
    assert [rows[f"shares {scale:g}"] for scale in (0, 1, np.inf)] == [rows[f"one {scale:g}"] for scale in (0, 1, np.inf)]


# ---- beside the paper ---------------------------------------------------------------------------------------------------


def test_gains_are_in_proportion_to_the_value_before():
    assert gain(0.1442, 0.0481) == pytest.approx(199.8, abs=0.1)
    assert gain(0.5, 0.0) is None
    assert change(0.8, 0.4) == "80.00 → 40.00 (−50.0 %)"
    assert change(0.0, 0.4) == "0.00 → 40.00 (from 0)"


def test_rows_are_averaged_over_folds():
    folds = [{"rows": {"penalty": {"none": {"f": f}}}} for f in (0.25, 0.75)]
    assert average(folds, "penalty") == {"none": {"f": 0.5}}


def test_the_papers_gains_stand_beside_ours_with_and_without_missing_classifiers():
    before, after = {"accuracy": 0.5, "auc": 0.8, "f": 0.5}, {"accuracy": 0.75, "auc": 0.84, "f": 0.6}
    rows = list(gain_rows({"none": before, "inf": after}, {"guesses 50": before, "strict 50": after}))
    assert [row.ours for row in rows] == pytest.approx([50.0, 5.0, 50.0, 5.0, 20.0])
    assert all(row.why for row in rows)
