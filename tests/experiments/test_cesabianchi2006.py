"""The study of Cesa-Bianchi, Gentile & Zaniboni 2006."""

import numpy as np
import pytest
from paper_files.made_up import write_rcv1

from experiments import find_study, reproduce
from experiments.cesabianchi2006.figures import REPORTED
from experiments.cesabianchi2006.showing import losses
from experiments.cesabianchi2006.trials import Circle
from experiments.data import Datasets
from experiments.page import Beside

STUDY = find_study("cesabianchi2006")


def tables(outcome):
    return {block.title: block.rows for block in outcome.blocks if isinstance(block, Beside)}


@pytest.fixture(scope="module")
def on_stories(tmp_path_factory):
    """RCV1 alone, on made-up stories whose words tell their topics."""
    folder = write_rcv1(tmp_path_factory.mktemp("corpora"), n_train=120, n_test=120)
    return reproduce(STUDY, Datasets(folder), tmp_path_factory.mktemp("out"), "tiny", ["rcv1"], threads=1)


def test_three_chunks_in_a_row_teach_and_the_next_is_tested():
    folds = Circle(n_chunks=4, n_train=3).folds(8)
    assert [fold.train.tolist() for fold in folds][:2] == [[0, 1, 2, 3, 4, 5], [2, 3, 4, 5, 6, 7]]
    assert [fold.test.tolist() for fold in folds] == [[6, 7], [0, 1], [2, 3], [4, 5]]


@pytest.mark.parametrize("circle", [Circle(4, 3), Circle(5, 1)])
def test_every_document_is_tested_once_and_never_trained_on_there(circle):
    folds = circle.folds(23)
    assert sorted(np.concatenate([fold.test for fold in folds])) == list(range(23))
    assert all(not set(fold.train) & set(fold.test) for fold in folds)


def test_stories_of_rcv1_stand_beside_all_three_tables(on_stories):
    assert on_stories.outcomes[0].part.name == "rcv1"
    shown = tables(on_stories.outcomes[0])
    assert [row.what for row in shown["Table 1: H-loss, mean over folds"]] == ["H-SVM", "B-SVM", "what B-SVM gains"]
    assert shown["Table 1: H-loss, mean over folds"][0].paper == 0.716
    assert len(shown["Table 2: H-loss of each chunk"]) == 2  # one fold, two rules
    assert len(shown["Table 3: H-loss by depth"]) == 6  # three levels, two rules
    assert "216 documents in place of 100,000" in shown["Table 1: H-loss, mean over folds"][0].why


def test_stories_whose_words_tell_all_are_labelled_without_a_mistake(on_stories):
    rules = on_stories.outcomes[0].entry.found["rules"]
    assert losses(rules["H-SVM"]) == losses(rules["B-SVM"]) == [0]
    assert losses(rules["no labels"]) == pytest.approx([1])


def test_with_stories_nothing_stands_in_for_them(on_stories):
    assert "electronics" not in on_stories.missing
    assert [outcome.part.name for outcome in on_stories.outcomes] == ["rcv1"]


def test_the_papers_means_agree_with_its_chunks():
    for rule, reported in REPORTED["rcv1"].items():
        assert np.mean(reported.folds) == pytest.approx(reported.mean, abs=6e-4), rule
