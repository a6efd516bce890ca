"""The study of McCallum et al. 1998: its trials, what it measures, what it shows."""

import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from paper_files.all_newsgroups import write_all_newsgroups, write_tree
from scipy.sparse import csr_array

from experiments import find_study, reproduce
from experiments.data import Datasets
from experiments.mccallum1998.corpora import Counted, count_requests, count_tree, count_usenet, usenet_taxonomy
from experiments.mccallum1998.mixtures import distance, weight_rows
from experiments.mccallum1998.protocol import Trial, gather
from experiments.mccallum1998.published import WEIGHTS
from experiments.mccallum1998.tables import branch_rows, claims_about_sizes, gain, percent, saved
from experiments.mccallum1998.trials import accuracy, fraction_unknown
from experiments.page import Beside, Chart, Table, Text
from ramify import Taxonomy

pytestmark = pytest.mark.slow

CORPORA = Path(os.environ.get("RAMIFY_CORPORA", "no folder"))
needs_the_corpus = pytest.mark.skipif(
    not (CORPORA / "20news_bydate").is_dir(), reason="RAMIFY_CORPORA names no folder that holds 20news_bydate"
)
STAND_INS = ["bundled-weights", "bundled-sizes", "bundled-words", "bundled-branches"]


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    folder = write_all_newsgroups(tmp_path_factory.mktemp("corpora"))
    for name in ("arxiv_small", "esco_titles"):
        write_tree(folder / name)
    return folder


@pytest.fixture(scope="module")
def posts(corpora):
    return count_usenet(Datasets(corpora).read("20newsgroups"))


def made_of(names, tree=None):
    X = csr_array(np.ones((len(names), 1), dtype=np.float32))
    return Counted(X, np.asarray(names), tree or Taxonomy.flat(sorted(set(names))))


# ---- running ------------------------------------------------------------------------------------------------------------


def test_every_part_runs_on_the_published_layout_and_shows_tables_and_charts(corpora, tmp_path):
    done = reproduce(find_study("mccallum1998"), Datasets(corpora), tmp_path, "tiny")
    assert not done.missing
    shown = {outcome.part.name: outcome.blocks for outcome in done.outcomes}
    assert list(shown) == ["corpus", "weights", "sizes", "words", "branches", "branches-arxiv", "branches-esco"]
    assert all(any(isinstance(block, Beside) for block in blocks) for blocks in shown.values())
    assert sum(isinstance(block, Chart) for block in shown["sizes"]) == 4
    assert done.page.read_text().count("<svg") == sum(isinstance(b, Chart) for blocks in shown.values() for b in blocks)


def test_without_the_newsgroups_bundled_requests_stand_in_and_say_so(tmp_path):
    done = reproduce(find_study("mccallum1998"), Datasets(), tmp_path, "tiny")
    assert [outcome.part.name for outcome in done.outcomes] == STAND_INS
    assert set(done.missing) == {"corpus", "weights", "sizes", "words", "branches", "branches-arxiv", "branches-esco"}
    for outcome in done.outcomes:
        first = outcome.blocks[0]
        assert isinstance(first, Text)
        assert first.words.startswith("Not the paper's corpus")
        assert {row.why for table in outcome.figures() for row in table.rows} <= {"other documents"}
        assert any(isinstance(block, Table) for block in outcome.blocks)
    assert "Industry Sector" in done.page.read_text()


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(corpora, tmp_path):
    def weights(seed, out):
        done = reproduce(find_study("mccallum1998"), Datasets(corpora), tmp_path / out, "tiny", ["weights"], seed=seed)
        return next(outcome.entry.found for outcome in done.outcomes if outcome.part.name == "weights")

    assert weights(0, "a") == weights(0, "b") != weights(1, "c")


# ---- documents ----------------------------------------------------------------------------------------------------------


def test_15_newsgroups_are_used_without_their_headers(posts):
    assert len(posts.names) == 15 * 6
    assert set(posts.names) < set(usenet_taxonomy().names)
    assert posts.X.sum() == 15 * 6 * 60  # no word of a From or a Subject


def test_subjects_stay_where_that_is_asked_for(corpora, posts):
    kept = count_usenet(Datasets(corpora).read("20newsgroups"), keep=("Subject",))
    assert kept.X.sum() > posts.X.sum()


def test_documents_with_two_labels_are_left_out_of_a_tree(corpora):
    assert len(count_tree(Datasets(corpora).read("esco_titles")).names) == 2 * 6 * 4


def test_the_topic_is_the_highest_node_below_a_lone_root_and_else_a_root(posts):
    assert posts.topics_of(np.asarray(["rec.autos", "alt.atheism"])).tolist() == ["vehicles", "religion"]
    requests = count_requests()
    assert set(requests.topics_of(requests.names)) == {requests.taxonomy.names[root] for root in requests.taxonomy.roots}


# ---- trials -------------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(2, 30), min_size=2, max_size=6), st.integers(0, 5), st.data())
def test_any_beginning_of_an_order_has_about_the_same_share_of_every_class(sizes, seed, data):
    names = np.repeat([f"c{k}" for k in range(len(sizes))], sizes)
    order = made_of(names).draw_order(seed, 0)
    assert sorted(order) == list(range(len(names)))
    n = data.draw(st.integers(1, len(names)))
    for name, size in zip(np.unique(names), sizes, strict=True):
        share = size / len(names)
        assert abs((names[order[:n]] == name).sum() - n * share) <= 1 + share * len(sizes) + 1e-9


def test_smaller_training_sets_are_parts_of_larger_ones_and_no_test_document_is_trained_on(posts):
    trial = Trial.draw(posts, 60, 0, 0)
    assert trial.training_set(30)[1].tolist() == trial.training_set(60)[1].tolist()[:30]
    assert sorted([*trial.pool, *trial.test]) == list(range(len(posts.names)))
    assert trial.test_on()[0].shape[0] == 30


def test_values_of_trials_are_gathered_in_lists_also_where_they_are_lists():
    assert gather([{"a": {"w": [1, 2]}}, {"a": {"w": [3, 4]}}]) == {"a": {"w": [[1, 2], [3, 4]]}}


# ---- measures -----------------------------------------------------------------------------------------------------------


def test_accuracy_is_of_the_likeliest_class_and_nodes_without_a_score_are_none():
    scores = np.asarray([[np.nan, 0.2, 0.1], [np.nan, -3.0, -2.0], [np.nan, 0.0, 9.0]])
    learner = SimpleNamespace(taxonomy_=SimpleNamespace(names=("root", "a", "b")), scores=lambda X: scores)
    assert accuracy(learner, None, np.asarray(["a", "a", "b"])) == pytest.approx(2 / 3)


def test_words_unseen_are_those_that_no_other_document_has_counted_as_often_as_they_occur():
    X = csr_array(np.asarray([[3, 1, 0], [0, 2, 0], [0, 0, 4]], dtype=np.float32))
    assert fraction_unknown(X, np.asarray([True, True, False])) == pytest.approx(3 / 6)


def test_gains_are_of_the_same_trials():
    assert percent([0.5]) == "50.00"
    assert gain([0.6, 0.8], [0.5, 0.7]).split() == ["+10.00", "±", "0.00"]
    assert gain([0.5], [0.75]) == "−25.00"
    assert saved(0.75, 0.5) == 50.0


# ---- beside the paper ---------------------------------------------------------------------------------------------------


def test_a_weight_far_from_the_papers_has_a_reason_and_one_near_it_has_none():
    papers = WEIGHTS["235"]["alt.atheism"]
    for moved, has_reason in ((0.0, False), (0.05, False), (0.2, True)):
        weights = [[paper + moved for paper in papers]]
        rows = list(weight_rows("235", {"alt.atheism": {"weights": weights}}, "235"))
        assert [bool(row.why) for row in rows] == [has_reason] * 4
        assert distance("235", {"alt.atheism": {"weights": weights}}) == pytest.approx(moved)


def test_every_row_of_table_1_adds_up_to_one():
    assert all(abs(sum(weights) - 1) < 0.002 for classes in WEIGHTS.values() for weights in classes.values())


def test_points_lost_by_few_branches_stand_beside_those_of_the_paper():
    ways = {
        "1": {"accuracy": [0.5, 0.6]},
        "2": {"accuracy": [0.55, 0.7]},
        "3": {"accuracy": [0.6, 0.7]},
        "None": {"accuracy": [0.6, 0.7]},
    }
    rows = list(branch_rows(ways, "why"))
    assert [row.paper for row in rows] == pytest.approx([5.8, 1.5, 0.6])
    assert [row.ours for row in rows] == pytest.approx([10.0, 2.5, 0.0])


def test_sizes_at_which_shrinkage_is_better_are_counted():
    found = {
        "nb": {"59": {"accuracy": [0.5, 0.7]}, "117": {"accuracy": [0.5, 0.7]}},
        "shrinkage": {"59": {"accuracy": [0.8, 0.8]}, "117": {"accuracy": [0.2, 0.8]}},
    }
    assert [row.ours for row in claims_about_sizes(found).rows] == pytest.approx([50.0, 50.0, 50.0])


@needs_the_corpus
def test_the_corpus_is_as_large_as_its_page_says():
    told = count_usenet(Datasets(CORPORA).read("20newsgroups")).told()
    assert (told["documents"], told["words"], told["vocabulary"]) == (13_919, 2_091_249, 67_153)
