"""Esuli, Fagni & Sebastiani 2008 as a study: every part runs, and stands beside what the paper says."""

import json

import numpy as np
import pytest
from paper_files.layouts import TREE, write_stories, write_topics, write_vectors
from scipy.sparse import csr_array

from experiments import find_study, reproduce
from experiments.data import Datasets
from experiments.esuli2008.material import Collection, read_news, read_tree
from experiments.esuli2008.measuring import count_sums, measure
from experiments.esuli2008.rounds import run_reuters
from experiments.page import Beside
from experiments.results import Results
from experiments.study import Run
from ramify import Taxonomy
from ramify.learners import AdaBoostMH, TreeBoostMH
from ramify.metrics import modified_f1

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("corpora"), np.random.default_rng(0)
    write_stories(folder / "reuters", rng)
    write_topics(folder / "rcv1", rng)
    write_vectors(folder / "medical_cmc2007", rng, TREE)
    return folder


@pytest.fixture(scope="module")
def done(corpora, tmp_path_factory):
    return reproduce(find_study("esuli2008"), Datasets(corpora), tmp_path_factory.mktemp("out"), "tiny", threads=1)


def found_of(done, part):
    return next(o.entry.found for o in done.outcomes if o.part.name == part)


def beside_of(done, part, title):
    blocks = next(o.blocks for o in done.outcomes if o.part.name == part)
    return {row.what: row for block in blocks if isinstance(block, Beside) and block.title == title for row in block.rows}


def test_every_part_runs_where_its_corpus_is_there(done):
    assert [o.part.name for o in done.outcomes] == ["reuters", "variants", "trees", "rcv1", "medical"]
    assert not done.missing


def test_the_bundled_corpus_stands_in_where_there_is_none(tmp_path):
    done = reproduce(find_study("esuli2008"), Datasets(), tmp_path, "tiny", threads=1)
    assert [o.part.name for o in done.outcomes] == ["electronics"]
    assert set(done.missing) == {"reuters", "variants", "trees", "rcv1", "medical"}
    assert beside_of(done, "electronics", "What TreeBoost.MH changes, all terms")
    assert "leaves" in found_of(done, "electronics")["rounds"]["all"]["tree"]["5"]  # some requests stop at inner nodes


def test_the_corpus_stands_beside_the_papers(done):
    rows = beside_of(done, "reuters", "The corpus")
    assert (rows["training documents"].paper, rows["training documents"].ours) == (7770, 60)
    assert (rows["terms"].paper, rows["training documents a category, mean"].paper) == (18177, 106.5)
    rows = beside_of(done, "rcv1", "The corpus")
    assert (rows["test documents"].paper, rows["categories"].ours, rows["of these inner nodes"].ours) == (781265, 7, 3)


def test_claims_are_the_papers_and_ours_are_changes_in_percent(done):
    rows = beside_of(done, "reuters", "What TreeBoost.MH changes, all terms")
    least = rows["micro F1, least gain (%), official groups"]
    by_way = found_of(done, "reuters")["rounds"]["all"]
    expected = min(100 * (by_way["official"][s]["micro"] / by_way["adaboost"][s]["micro"] - 1) for s in ("2", "5"))
    assert (least.paper, least.ours) == (2.3, pytest.approx(expected))


def test_tests_compare_both_trees_with_adaboost_and_both_choices_of_terms(done):
    pairs = [(tuple(row["a"]), tuple(row["b"])) for row in found_of(done, "reuters")["tests"]]
    assert len(pairs) == 8
    assert (("learnt", "glocal"), ("adaboost", "global")) in pairs
    assert (("official", "global"), ("official", "glocal")) in pairs


def test_a_run_that_was_stopped_goes_on_with_what_it_has(corpora, tmp_path, monkeypatch):
    results = Results.open(tmp_path / "r.json", "esuli2008")
    entry = results.begin("reuters", {"version": 1})
    run = Run("reuters", "tiny", 0, 1, Datasets(corpora), entry)
    first = run_reuters(run)
    again = Results.open(tmp_path / "r.json", "esuli2008").find("reuters", {"version": 1})
    monkeypatch.setattr("experiments.esuli2008.rounds.follow", lambda *_: pytest.fail("is known"))
    second = run_reuters(Run("reuters", "tiny", 0, 1, Datasets(corpora), again))
    assert json.dumps(first) == json.dumps(second)


def test_answers_that_stop_at_an_inner_node_count_where_documents_stop_there():
    tree = Taxonomy.from_paths(["a/x", "a/y", "b"])
    labels = [["a/x"], ["a"], ["b"], ["a/y"]]
    X = csr_array(np.eye(4, dtype=np.float32))
    of = Collection(X, X, labels, labels, tree, {"tree": tree}, 2)
    given = tree.encode([["a/x"], ["a"], ["b"], ["a"]])
    row = measure(of, given)
    assert row["micro"] == modified_f1(tree.encode(labels), given, tree).all.micro_f1 == pytest.approx(6 / 8)
    assert row["dummies"] == [pytest.approx(2 / 3)] * 2
    assert row["n_by_size"] == [4, 0, 0]
    assert row["by_size"][1:] == [None, None]


def test_additions_are_those_of_the_committees_that_documents_meet(corpora):
    news = read_news(Datasets(corpora).read("reuters21578"))
    of, tree = news.collection, news.official
    flat = AdaBoostMH(of.judged, n_rounds=3).fit(of.X, of.judged.encode(of.labels))
    over_all, over_present = count_sums(flat, of.X_test)
    pivots = np.unique(flat.committees_[0].pivots)
    assert over_all == of.X_test.shape[0] * len(pivots) * len(of.judged)
    assert over_present == of.X_test[:, pivots].nnz * len(of.judged)
    boosted = TreeBoostMH(tree, n_rounds=3).fit(of.X, tree.encode(of.labels))
    assert 0 < count_sums(boosted, of.X_test)[0] < over_all


def test_categories_without_training_documents_are_left_out_of_a_tree(corpora):
    data = Datasets(corpora).read("rcv1")
    some = data.train.take([i for i, labels in enumerate(data.train.labels) if "C152" not in labels])
    of = read_tree(some, data.test, data.taxonomy, 10)
    assert "C152" not in of.judged
    assert all(labels for labels in of.labels_test)  # a story of C152 is one of C15
