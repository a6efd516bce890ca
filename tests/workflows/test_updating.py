"""Classifiers that follow a change of their taxonomy."""

import numpy as np
import pytest

from ramify import Taxonomy, TextClassifier, load
from ramify.classifier.loading import from_stored
from ramify.data import make_web_directory
from ramify.decisions import SCut
from ramify.errors import InputError, LabelError, ModelError, TaxonomyError
from ramify.features import Vectors
from ramify.learners import OneVsRestSVM, RecursiveSVM
from ramify.learners.base import Learner
from ramify.learners.warm_start import WarmStart
from ramify.persistence import read_model
from ramify.systems import SYSTEMS, find_system
from ramify.taxonomy import most_specific
from ramify.workflows.updating import update

PROBLEM = make_web_directory(n_leaves=24, n_docs=300, seed=3)
OLD = PROBLEM.taxonomy
LABELS = [row[0] for row in OLD.decode(PROBLEM.Y)]
LEAVES = [name for name, leaf in zip(OLD.names, OLD.is_leaf, strict=True) if leaf]
REUSES_CLASSIFIERS = {"svm", "lr", "td-svm", "h-svm", "b-svm", "isotonic-svm", "adaboost-mh", "treeboost-mh"}


def edges_of(taxonomy):
    return {
        name: None if p < 0 else taxonomy.names[p] for name, p in zip(taxonomy.names, taxonomy.parent.tolist(), strict=True)
    }


def with_edges(changed, drop=(), **titles):
    """The problem's taxonomy with some nodes under other parents."""
    edges = {name: parent for name, parent in (edges_of(OLD) | changed).items() if name not in drop}
    return Taxonomy.from_edges(edges.items(), titles=titles)


def another_parent(name):
    """An inner node far from a node."""
    own = OLD.ancestors_of(OLD.index(name)).tolist()
    return next(n for k, n in enumerate(OLD.names) if not OLD.is_leaf[k] and k not in own)


MOVED = with_edges({LEAVES[5]: another_parent(LEAVES[5])})


def fitted(system, taxonomy=OLD, labels=LABELS, **settings):
    settings = {"calibrate": False, "keep_training_data": True} | settings
    return TextClassifier(system, taxonomy, features=Vectors(), **settings).fit(PROBLEM.X, labels)


# ---- equal to training anew -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_moved_node_gives_the_model_of_a_full_training(system, tmp_path):
    fitted(system).save(tmp_path / "model")
    done, anew = update(load(tmp_path / "model"), MOVED), fitted(system, MOVED)
    ours, theirs = done.classifier.learner_, anew.learner_
    np.testing.assert_array_equal(np.isnan(ours.scores(PROBLEM.X)), np.isnan(theirs.scores(PROBLEM.X)))
    assert np.mean(done.classifier.predict(PROBLEM.X) == anew.predict(PROBLEM.X)) >= 0.99
    if hasattr(theirs, "gap_"):
        assert ours.gap_ <= 1e-3
        assert ours.gap_.primal == pytest.approx(theirs.gap_.primal, rel=1e-3)
        assert max(ours.gap_.dual, theirs.gap_.dual) <= min(ours.gap_.primal, theirs.gap_.primal)
    else:
        np.testing.assert_allclose(ours.scores(PROBLEM.X), theirs.scores(PROBLEM.X), rtol=1e-5, atol=1e-5)
    if system in REUSES_CLASSIFIERS:
        taken, total = done.reused
        assert 0 < taken <= total
    assert done.warm_started == (system in ("hr-svm", "hr-lr"))
    done.classifier.save(tmp_path / "model")
    again = update(load(tmp_path / "model"), OLD).classifier  # and back
    assert np.mean(again.predict(PROBLEM.X) == fitted(system).predict(PROBLEM.X)) >= 0.99


@pytest.mark.parametrize("system", ["hr-svm", "hr-lr", "svm"])
def test_a_tree_that_becomes_flat_gives_the_model_of_a_full_training(system):
    flat = Taxonomy.flat(sorted(set(LABELS)))
    done, anew = update(fitted(system), flat).classifier, fitted(system, flat)
    assert np.mean(done.predict(PROBLEM.X) == anew.predict(PROBLEM.X)) >= 0.99
    assert done.learner_.gap_.primal == pytest.approx(anew.learner_.gap_.primal, rel=1e-3)


@pytest.mark.parametrize("system", ["svm", "td-svm", "hr-svm", "isotonic-svm", "nb"])
def test_documents_added_with_a_change_are_trained_on_as_in_a_full_training(system):
    first = 240
    before = TextClassifier(system, OLD, features=Vectors(), calibrate=False, keep_training_data=True)
    before.fit(PROBLEM.X[:first], LABELS[:first])
    done = update(before, MOVED, PROBLEM.X[first:], [[label] for label in LABELS[first:]])
    selected = before.learner_.selected_params()  # an update keeps C, which a full training might select anew
    anew = fitted(system, MOVED, learner=find_system(system).learner().set_params(**selected))
    assert (done.added, done.replaced, done.documents) == (60, 0, 300)
    assert np.mean(done.classifier.predict(PROBLEM.X) == anew.predict(PROBLEM.X)) >= 0.99
    if hasattr(anew.learner_, "gap_"):
        assert done.classifier.learner_.gap_.primal == pytest.approx(anew.learner_.gap_.primal, rel=1e-3)


def test_a_warm_start_at_the_optimum_needs_no_round_of_screening():
    problem = make_web_directory(n_leaves=200, n_docs=1500, n_words=40, seed=1)  # more pairs than are taken at once
    own = most_specific(problem.Y, problem.taxonomy)
    first = RecursiveSVM(problem.taxonomy)
    first.keeps_warm_start = True
    first.fit(problem.X, problem.Y)
    before = WarmStart(first, own, np.arange(1500), 1500)
    again = RecursiveSVM(problem.taxonomy).refit_from(problem.X, problem.Y, before)
    assert again.gap_.rounds == 0
    assert again.gap_ <= 1e-3
    assert again.gap_.dual == pytest.approx(first.gap_.dual, rel=1e-5)
    node = int(np.flatnonzero(problem.taxonomy.is_leaf)[7])
    edges = edges_of(problem.taxonomy) | {problem.taxonomy.names[node]: problem.taxonomy.names[0]}
    moved = Taxonomy.from_edges(edges.items())
    Y = moved.encode(problem.taxonomy.decode(problem.Y))
    gone_on, anew = RecursiveSVM(moved).refit_from(problem.X, Y, before), RecursiveSVM(moved).fit(problem.X, Y)
    assert gone_on.gap_ <= 1e-3
    assert gone_on.gap_.rounds < anew.gap_.rounds
    assert gone_on.gap_.primal == pytest.approx(anew.gap_.primal, rel=1e-3)


# ---- renaming ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("system", SYSTEMS)
def test_new_titles_train_nothing_and_change_no_bit(system, tmp_path, monkeypatch):
    before = fitted(system, keep_training_data=False)
    monkeypatch.setattr(Learner, "fit", lambda *_: pytest.fail("trained"))
    order = list(edges_of(OLD).items())
    titles = {name: f"Title of {name}" for name in OLD.names}
    done = update(before, Taxonomy.from_edges(order[:1] + order[:0:-1], titles=titles))  # in another order, too
    assert not done.is_trained
    assert done.changes.counts["renamed"] == len(OLD)
    ours, theirs = (each.learner_.state()[1] for each in (done.classifier, before))
    assert set(ours) == set(theirs)
    for name in ours:
        np.testing.assert_array_equal(ours[name], theirs[name])
    done.classifier.save(tmp_path / "model")
    after = load(tmp_path / "model")
    assert after.taxonomy_.titles[0] == f"Title of {OLD.names[0]}"
    assert after.predict(PROBLEM.X[:20]).tolist() == before.predict(PROBLEM.X[:20]).tolist()


def test_predictions_have_new_names_where_names_are_paths():
    texts, labels = ["red apple", "ripe pear", "black tea"], ["food/apple", "food/pear", "drink/tea"]
    done = update(TextClassifier("nb").fit(texts, labels), Taxonomy.from_paths(["eats/apple", "eats/pear", "drink/tea"]))
    assert not done.is_trained
    assert done.classifier.predict(["red apple"]).tolist() == ["eats/apple"]


# ---- what is taken over -----------------------------------------------------------------------------------------------------


def test_flat_classes_of_moved_nodes_keep_their_weights_and_only_merged_ones_are_trained():
    before = fitted("svm")
    moved = update(before, MOVED)
    assert moved.reused == (24, 24)
    assert not moved.is_trained
    first, second = LEAVES[:2]
    merged = update(before, with_edges({}, drop=[first]), reassignments=_merge(first, second))
    assert merged.reused == (22, 23)
    ours, theirs = merged.classifier.learner_, before.learner_
    for name in LEAVES[2:]:
        k, j = ours._class_of(merged.classifier.taxonomy_.index(name)), theirs._class_of(OLD.index(name))
        assert (ours.weights_.deltas[[k]] != theirs.weights_.deltas[[j]]).nnz == 0
    assert merged.relabelled == sum(label in (first, second) for label in LABELS)


def _merge(first, second):
    new = with_edges({}, drop=[first])
    return {OLD.index(first): (new.index(second),)}


def test_a_new_leaf_without_documents_begins_as_its_parent_and_learns_once_it_has_some():
    parent = OLD.names[int(OLD.parent[OLD.index(LEAVES[0])])]
    larger = with_edges({"novelty": parent})
    done = update(fitted("hr-svm"), larger)
    assert done.started_from_parent == ("novelty",)
    learner = done.classifier.learner_
    unit = int(learner.weights_.class_units[learner._class_of(larger.index("novelty"))])
    w, bias = learner.weights_.of_unit(unit)
    above, bias_above = learner.weights_.of_unit(int(learner.weights_.parent[unit]))
    np.testing.assert_array_equal(w, above)
    assert bias == bias_above
    assert (
        update(done.classifier, with_edges({"novelty": parent}, novelty="New")).classifier.learner_.weights_ is learner.weights_
    )
    assert update(done.classifier, larger, PROBLEM.X[:3], [["novelty"]] * 3).started_from_parent == ()
    again = update(done.classifier, with_edges({"novelty": parent, LEAVES[5]: another_parent(LEAVES[5])}))
    assert again.started_from_parent == ("novelty",)  # still without documents


# ---- labels -----------------------------------------------------------------------------------------------------------------


def test_documents_of_a_split_node_stay_above_its_parts_until_the_same_documents_come_with_labels():
    leaf = LEAVES[0]
    parent = edges_of(OLD)[leaf]
    new = with_edges({"left": parent, "right": parent}, drop=[leaf])
    answers = {OLD.index(leaf): (new.index("left"), new.index("right"))}
    size = LABELS.count(leaf)
    done = update(fitted("nb"), new, reassignments=answers)
    assert (done.at_split, done.relabelled, done.left_out) == (size, size, 0)
    kept = done.classifier.training_data_.own
    assert np.bincount(kept.indices, minlength=len(new))[new.index(parent)] == size + LABELS.count(parent)
    mine = [row for row, label in enumerate(LABELS) if label == leaf]
    sorted_out = update(fitted("nb"), new, PROBLEM.X[mine], [["left"]] * size, reassignments=answers)
    assert (sorted_out.added, sorted_out.replaced, sorted_out.documents) == (size, size, 300)
    assert np.bincount(sorted_out.classifier.training_data_.own.indices)[new.index("left")] == size


def test_documents_that_are_dropped_are_left_out():
    leaf = LEAVES[0]
    done = update(fitted("svm"), with_edges({}, drop=[leaf]), reassignments={OLD.index(leaf): ()})
    assert done.left_out == LABELS.count(leaf) == 300 - done.documents
    assert done.warm_started


def test_unassigned_nodes_are_refused_only_if_they_have_documents():
    leaf = LEAVES[0]
    with pytest.raises(TaxonomyError, match=f"a node that has documents is not in the new taxonomy: '{leaf}'; reassign"):
        update(fitted("nb"), with_edges({}, drop=[leaf]))
    larger = with_edges({"novelty": OLD.names[0]})
    assert update(fitted("nb", larger), OLD).documents == 300


def test_without_training_data_in_the_model_all_documents_are_needed():
    before = fitted("hr-svm", keep_training_data=False)
    with pytest.raises(InputError, match="has no training data"):
        update(before, MOVED)
    done = update(before, MOVED, PROBLEM.X, [[label] for label in LABELS])
    assert done.classifier.learner_.gap_.primal == fitted("hr-svm", MOVED).learner_.gap_.primal
    with pytest.raises(LabelError, match="label 'nowhere' is neither in the new taxonomy nor in the old one"):
        update(before, MOVED, PROBLEM.X[:1], [["nowhere"]])


def test_rules_and_calibrations_are_fitted_again():
    before = fitted("svm", decision=SCut(), calibrate=True)
    merged = update(before, with_edges({}, drop=LEAVES[:1]), reassignments=_merge(*LEAVES[:2])).classifier
    assert merged.decision_.is_fitted
    assert merged.calibration_ is not None
    assert merged.predict_proba(PROBLEM.X[:5]).shape == (5, len(OLD) - 1)


# ---- keeping ----------------------------------------------------------------------------------------------------------------


def test_partial_fit_adds_to_the_training_data():
    texts, labels = ["red apple", "ripe pear", "black tea"], ["food/apple", "food/pear", "drink/tea"]
    grown = TextClassifier("nb", keep_training_data=True).fit(texts, labels).partial_fit(["hot coffee"], ["drink/coffee"])
    whole = TextClassifier("nb", keep_training_data=True).fit([*texts, "hot coffee"], [*labels, "drink/coffee"])
    assert (grown.training_data_.X != whole.training_data_.X).nnz == 0
    assert (grown.training_data_.own != whole.training_data_.own).nnz == 0


@pytest.mark.parametrize(
    "name", ["training_data.features", "training_data.labels", "training_data.offsets", "learner.dual_documents"]
)
def test_damaged_documents_are_refused(name, tmp_path):
    fitted("svm").save(tmp_path / "model")
    stored = read_model(tmp_path / "model")
    damaged = stored.arrays[name].copy()
    damaged[-1] = 10**6
    stored.arrays[name] = damaged
    with pytest.raises(ModelError, match="train the model again"):
        from_stored(stored)


def test_training_data_is_not_kept_where_it_could_not_be_trained_on_again():
    with pytest.raises(InputError, match="class_weight"):
        fitted("svm", learner=OneVsRestSVM(class_weight="balanced"))
