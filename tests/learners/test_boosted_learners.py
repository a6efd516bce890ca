"""What boosted learners do beside boosting: early stopping, partial_fit, narrow documents, words, and files."""

import threading

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array
from seeds import each_seed

from ramify import Taxonomy
from ramify.errors import InputError, LabelError, ModelError
from ramify.learners import AdaBoostMH, TreeBoostMH
from ramify.learners.boosting import problems
from ramify.metrics import micro_f1

TREE = Taxonomy.from_paths(["a/x", "a/y", "b/z", "b/only/deep", "c"])
BOTH = [AdaBoostMH, TreeBoostMH]


def make_problem(seed=0, n_documents=120, noise=0.2):
    """Documents of one leaf each, with a word for each node above them, words of chance, and some wrong labels."""
    rng = np.random.default_rng(seed)
    leaves = np.flatnonzero(TREE.is_leaf)
    true = rng.choice(leaves, size=n_documents)
    X = csr_array(random_array((n_documents, 30), density=0.2, rng=rng, format="csr"), dtype=np.float32).toarray()
    for i, leaf in enumerate(true):
        for node in TREE.nodes_to(int(leaf)):
            X[i, node] = float(rng.random() > noise)
    shown = np.where(rng.random(n_documents) < noise / 2, rng.choice(leaves, size=n_documents), true)
    return csr_array(X), TREE.encode([[TREE.names[leaf]] for leaf in shown])


# ---- how many rounds ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", BOTH)
def test_early_stopping_keeps_the_round_that_was_best_on_the_documents_held_out(learner):
    X, Y = make_problem()
    stopped = learner(TREE, n_rounds=400, early_stopping=True, patience=20, validation_fraction=0.3).fit(X, Y)
    top = stopped.committees_[0]
    assert top.n_rounds < 400 - 20
    # the same split by hand: no earlier round was as good, and the patience that followed found nothing better
    n = X.shape[0]
    held_out = np.sort(np.random.default_rng((0, 0)).permutation(n)[: round(0.3 * n)])
    kept = np.setdiff1d(np.arange(n), held_out)
    longer = learner(TREE, n_rounds=top.n_rounds + 20).fit(X[kept], Y[kept])
    np.testing.assert_array_equal(longer.committees_[0].pivots[: top.n_rounds], top.pivots)
    quality, losses = [], []
    for s in range(1, top.n_rounds + 21):
        (given,) = [scores[:, top.classes] > 0 for _, scores in longer.staged_scores(X[held_out], [s])]
        true = Y[held_out][:, top.classes].toarray()
        quality.append(2 * (given & true).sum() / (given.sum() + true.sum()))
        losses.append(np.exp(np.where(true, -1, 1) * longer.at_round(s).scores(X[held_out])[:, top.classes]).sum())
    best = np.flatnonzero(np.asarray(quality) == max(quality))
    assert top.n_rounds - 1 in best
    assert losses[top.n_rounds - 1] == pytest.approx(min(losses[s] for s in best), rel=1e-6)


@each_seed(8)
def test_early_stopping_leaves_no_committee_without_a_round(seed):
    """Also where no document that is held out has any of the classes, and where none is ever answered right."""
    tree = Taxonomy.from_paths(["r/a", "r/b", "s"])
    labels = ["r"] * 20 + ["r/a"] * 12 + ["r/b"] * 8 + ["s"] * 20
    X = np.zeros((60, 4), dtype=np.float32)
    X[np.arange(60), [["r", "r/a", "r/b", "s"].index(label) for label in labels]] = 1
    fitted = TreeBoostMH(tree, n_rounds=50, early_stopping=True, random_state=seed).fit(X, labels)
    assert all(committee.n_rounds for committee in fitted.committees_)
    assert tree.decode(fitted.predict_sets(X)) == [[label] for label in labels]


def test_committees_with_few_documents_hold_none_out():
    X, Y = make_problem(n_documents=19)
    plain, stopping = (AdaBoostMH(TREE, n_rounds=30, early_stopping=early).fit(X, Y) for early in (False, True))
    assert plain.committees_[0].n_rounds == stopping.committees_[0].n_rounds
    np.testing.assert_array_equal(plain.committees_[0].pivots, stopping.committees_[0].pivots)


@pytest.mark.parametrize("learner", BOTH)
def test_the_number_of_rounds_can_be_chosen_after_training(learner):
    (X, Y), (more, true) = make_problem(), make_problem(seed=1)
    fitted = learner(TREE, n_rounds=60).fit(X, Y)
    best, quality = fitted.choose_rounds(more, true, rounds=[1, 2, 5, 10, 60])
    by_hand = {s: micro_f1(true, fitted.at_round(s).predict_sets(more), TREE, over="own") for s in (1, 2, 5, 10, 60)}
    assert quality == pytest.approx(by_hand)
    assert quality[best] == max(quality.values())
    assert best == min(s for s, value in quality.items() if value == quality[best])
    assert max(fitted.choose_rounds(more, true)[1]) == 60
    with pytest.raises(InputError, match="no numbers of rounds to try"):
        fitted.choose_rounds(more, true, rounds=[])
    with pytest.raises(InputError, match="rounds is 0; give a whole number"):
        fitted.at_round(0)


# ---- partial_fit -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", BOTH)
def test_partial_fit_refuses_unknown_nodes_and_leaves_the_model_as_it_was(learner):
    X, Y = make_problem()
    without = np.flatnonzero(Y[:, [TREE.index("c")]].toarray().ravel() == 0)
    fitted = learner(TREE, n_rounds=5).fit(X[without], Y[without])
    before = fitted.scores(X)
    with pytest.raises(InputError, match="node 'c' had no documents when the model was trained"):
        fitted.partial_fit(X, Y)
    with pytest.raises(InputError, match="the taxonomy is another one, and boosting cannot change its nodes"):
        fitted.partial_fit(X[without], Y[without], taxonomy=Taxonomy.from_paths(["a/x", "a/y"]))
    np.testing.assert_array_equal(fitted.scores(X), before)


def test_committees_without_new_documents_stay_as_they_are():
    X, Y = make_problem()
    fitted = TreeBoostMH(TREE, n_rounds=5).fit(X, Y)
    in_a = np.flatnonzero(Y[:, [TREE.index("a")]].toarray().ravel())
    before = {committee.node: committee.n_rounds for committee in fitted.committees_}
    fitted.partial_fit(X[in_a], Y[in_a])
    after = {committee.node: committee.n_rounds for committee in fitted.committees_}
    assert after[TREE.index("a")] == 10
    assert after[TREE.index("b")] == before[TREE.index("b")] == 5


def test_new_terms_make_room_and_change_nothing():
    X, Y = make_problem()
    fitted = TreeBoostMH(TREE, n_rounds=20).fit(X, Y)
    before = fitted.scores(X)
    columns = np.arange(30) * 2 + 1
    fitted.widen(columns, 61)
    wide = np.zeros((X.shape[0], 61), dtype=np.float32)
    wide[:, columns] = X.toarray()
    np.testing.assert_array_equal(fitted.scores(wide), before)


def test_classes_that_are_only_announced_are_refused():
    with pytest.raises(InputError, match="cannot add classes later"):
        AdaBoostMH().partial_fit([[1, 0], [0, 1]], ["a", "b"], classes=["a", "b", "c"])


def test_partial_fit_on_other_documents_starts_from_the_scores_of_the_committees():
    """Also where other terms are chosen now: pivots of before still count."""
    (X, Y), (more, labels) = make_problem(), make_problem(seed=5)
    fitted = TreeBoostMH(TREE, n_rounds=8, n_terms=4).fit(X, Y)
    top = fitted.committees_[0]
    said = fitted.scores(more)[:, top.classes].astype(float)
    D = np.exp(np.where(labels[:, top.classes].toarray(), -said, said))
    fitted.set_params(n_rounds=1).partial_fit(more, labels)
    new = fitted.committees_[0]
    assert new.n_rounds == 9
    has, y = more.toarray()[:, new.pivots[8]] != 0, np.where(labels[:, top.classes].toarray(), 1, -1)
    votes = np.where(has[:, None], new.present[8], new.absent[8])
    assert new.normalizers[8] == pytest.approx(float((D / D.sum() * np.exp(-y * votes)).sum()), rel=1e-5)


@pytest.mark.parametrize("learner", BOTH)
def test_plain_classes_keep_their_places_in_later_documents(learner):
    X, y = np.eye(4, dtype=np.float32)[np.arange(40) % 4], np.arange(40) % 4
    fitted = learner(n_rounds=20).fit(X, y)
    later = y > 0
    once = learner(n_rounds=20).fit(X, y).partial_fit(X, y, sample_weight=later.astype(float))
    fitted.partial_fit(X[later], y[later])
    np.testing.assert_allclose(fitted.scores(X), once.scores(X), rtol=1e-5)
    assert fitted.predict(X).tolist() == y.tolist()
    assert fitted.choose_rounds(X[later], y[later])[0] >= 1
    with pytest.raises(InputError, match="mix types"):
        fitted.partial_fit(X, np.asarray(list("wxyz"))[y])
    with pytest.raises(InputError, match="node '4' is new, and boosting cannot change its nodes"):
        fitted.partial_fit(X, y + 1)


def test_lists_of_names_may_come_first_with_classes_announced():
    fitted = AdaBoostMH(n_rounds=3).partial_fit([[1, 0], [0, 1]], [["a"], ["a", "b"]], classes=["a", "b"])
    assert fitted.predict([[1, 0]]) == [["a"]]


def test_is_multi_label_that_come_later_are_several():
    X, Y = make_problem()
    fitted = AdaBoostMH(TREE, n_rounds=3).fit(X, Y)
    assert not fitted.is_multi_label_
    assert fitted.partial_fit(X, TREE.encode([["a/x", "c"]] * X.shape[0])).is_multi_label_


def test_weights_that_no_number_can_hold_are_refused():
    X, Y = make_problem()
    with pytest.raises(InputError, match=r"a document weighs 1e\+308; give weights of about 1"):
        AdaBoostMH(TREE).fit(X, Y, np.full(X.shape[0], 1e308))


@pytest.mark.parametrize("weight", [1e-40, 1e40, 1e99])
@pytest.mark.parametrize("variant", ["R", "RA", "D"])
def test_weights_of_any_size_are_survived_also_by_classes_without_documents(variant, weight):
    X, Y = make_problem()
    fitted = AdaBoostMH(TREE, n_rounds=30, variant=variant).fit(X, Y)
    without = Y[:, [TREE.index("c")]].toarray().ravel() == 0
    fitted.partial_fit(X[without], Y[without], sample_weight=np.full(int(without.sum()), weight))
    assert np.isfinite(fitted.scores(X)[:, fitted.class_nodes_]).all()
    assert fitted.committees_[0].pivots.max() < X.shape[1]
    assert np.isfinite(fitted.committees_[0].normalizers).all()


# ---- documents ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", BOTH)
def test_a_learner_over_its_pivots_alone_gives_the_same_scores(learner):
    X, Y = make_problem()
    fitted = learner(TREE, n_rounds=5).fit(X, Y)
    columns, narrow = fitted.with_used_features()
    assert len(columns) < X.shape[1]
    assert sorted({int(pivot) for committee in fitted.committees_ for pivot in committee.pivots}) == columns.tolist()
    np.testing.assert_array_equal(narrow.scores(X[:, columns]), fitted.scores(X))
    assert fitted.with_used_features()[1] is narrow
    fitted.partial_fit(X, Y)
    assert fitted.with_used_features()[1] is not narrow


def test_passing_scores_are_the_scores_of_nodes_that_are_reached_and_of_no_others():
    X, Y = make_problem(noise=0.5)
    fitted = TreeBoostMH(TREE, n_rounds=10).fit(X, Y)
    full = fitted.scores(X)
    lazy = np.concatenate([S for _, S in fitted.map_positive_scores(X, lambda S: S)])
    reached = np.ones_like(full, dtype=bool)
    for node in np.flatnonzero(TREE.parent >= 0):
        above = TREE.parent[node]  # a merged node is reached with the node that it is one with
        reached[:, node] = reached[:, above] & ((full[:, above] > 0) | (node in fitted.merged_))
    np.testing.assert_array_equal(lazy, np.where(reached, full, np.nan))
    assert not reached.all()


def test_zeros_that_are_written_down_are_no_terms():
    X, Y = make_problem()
    coo = X.tocoo()
    rows, columns = np.append(coo.row, np.arange(100)), np.append(coo.col, np.full(100, 29))
    values = np.append(coo.data, np.zeros(100, dtype=np.float32))
    written = csr_array((values, (rows, columns)), shape=X.shape)
    np.testing.assert_array_equal(AdaBoostMH(TREE, n_rounds=10).fit(written, Y).scores(written), _scores(X, Y))


def _scores(X, Y):
    return AdaBoostMH(TREE, n_rounds=10).fit(X, Y).scores(X)


def test_weights_count_as_copies_of_documents():
    X, Y = make_problem(n_documents=40)
    times = np.random.default_rng(0).integers(0, 4, size=40)
    often = np.repeat(np.arange(40), times)
    weighted = TreeBoostMH(TREE, n_rounds=20).fit(X, Y, times)
    np.testing.assert_allclose(
        weighted.scores(X), TreeBoostMH(TREE, n_rounds=20).fit(X[often], Y[often]).scores(X), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("learner", BOTH)
def test_documents_of_one_class_that_weigh_something_are_too_few(learner):
    with pytest.raises(LabelError, match="learning needs documents of at least two classes"):
        learner().fit([[1, 0], [0, 1]], ["a", "b"], sample_weight=[1, 0])


def test_a_problem_that_does_not_fit_into_memory_is_refused_with_what_to_do(monkeypatch):
    monkeypatch.setattr(problems, "MOST_BYTES", 1000)
    with pytest.raises(InputError, match=r"boosting 5 classes over 30 terms .* needs 0 GB; keep fewer terms"):
        AdaBoostMH(TREE).fit(*make_problem())


def test_interrupted_work_stops_at_the_next_few_rounds(monkeypatch):
    """Other threads must not go on to the end once the first error is there."""
    made = []
    other_began = threading.Event()
    real = problems.Documents.problem

    def problem(self, so_far):
        if so_far.node == -1:
            assert other_began.wait(timeout=30)
            raise KeyboardInterrupt
        other_began.set()
        return real(self, so_far)

    monkeypatch.setattr(problems.Documents, "problem", problem)
    monkeypatch.setattr("ramify.learners.boosting.rounds.boost", _counted_boost(made))
    with pytest.raises(KeyboardInterrupt):
        TreeBoostMH(TREE, n_rounds=10**6, n_jobs=2).fit(*make_problem(noise=0.8))
    assert sum(made) < 10**5


def _counted_boost(made):
    from ramify.learners.boosting.rounds import boost

    def counted(*arguments):
        for committee in boost(*arguments):
            made.append(1)
            yield committee

    return counted


# ---- labels and words -----------------------------------------------------------------------------------------------


def test_inner_nodes_at_which_no_document_ended_are_no_labels():
    X, Y = make_problem()
    fitted = TreeBoostMH(TREE, n_rounds=10).fit(X, Y)
    labels = fitted.label_scores(fitted.scores(X))
    assert np.isnan(labels[:, ~TREE.is_leaf]).all()
    assert np.isfinite(labels[:, TREE.is_leaf]).all()
    assert fitted.class_nodes_.tolist() == np.flatnonzero(TREE.is_leaf).tolist()


@pytest.mark.parametrize("learner", BOTH)
def test_contributions_add_up_to_scores_and_pivots_of_a_class_are_its_words(learner):
    X, Y = make_problem(noise=0.05)
    fitted = learner(TREE, n_rounds=20).fit(X, Y)
    node, x = TREE.index("a/x"), X[[3]]
    features, added, bias = fitted.contributions(x, node)
    assert features.tolist() == x.indices.tolist()
    path = [node] if learner is AdaBoostMH else TREE.nodes_to(node)
    assert added.sum() + bias == pytest.approx(float(fitted.scores(x)[0, path].sum()), rel=1e-5)
    assert fitted.top_terms("a/x", n=1)[0][0] == node
    names = [f"word {column}" for column in range(30)]
    assert fitted.top_terms(node, n=1, feature_names=names)[0][0] == f"word {node}"
    assert fitted.top_terms(node, n=1)[0][1] == pytest.approx(max(fitted._tree.votes_for(node)[1]))


def test_a_merged_node_has_no_words_of_its_own():
    fitted = TreeBoostMH(TREE, n_rounds=5).fit(*make_problem())
    with pytest.raises(InputError, match="node 'b/only/deep' has no classifier: it has no documents, or is the only way on"):
        fitted.top_terms("b/only/deep")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_rounds": 0}, "n_rounds is 0; give a whole number from 1 to 1,000,000"),
        ({"n_rounds": 2.5}, "n_rounds is 2.5"),
        ({"variant": "r"}, r"variant is 'r'; give 'R', 'RA' \(abstaining\) or 'D' \(discrete\)"),
        ({"early_stopping": "yes"}, "early_stopping is 'yes'; give true or false"),
        ({"validation_fraction": 1.0}, "validation_fraction is 1.0; give a fraction between 0 and 1"),
        ({"patience": -1}, "patience is -1"),
    ],
)
@pytest.mark.parametrize("learner", BOTH)
def test_settings_that_mean_nothing_are_refused(learner, settings, message):
    with pytest.raises(InputError, match=message):
        learner(TREE, **settings).fit(*make_problem())


def test_a_number_of_terms_that_means_nothing_is_refused():
    with pytest.raises(InputError, match="n_terms is 0; give a whole number of 1 or more, or none for all terms"):
        TreeBoostMH(TREE, n_terms=0).fit(*make_problem())
    with pytest.raises(InputError, match="measure"):
        TreeBoostMH(TREE, measure="gut feeling").fit(*make_problem())


# ---- files ----------------------------------------------------------------------------------------------------------


def _broken(arrays, name, change):
    copied = dict(arrays)
    copied[name] = change(arrays[name].copy())
    return copied


def _set(place, value):
    def change(array):
        array[place] = value
        return array

    return change


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("pivots", _set(0, 30)),
        ("pivots", _set(0, -1)),
        ("pivots", lambda array: array[:-1]),
        ("pivots", lambda array: array.astype(np.int32)),
        ("classes", _set(0, 99)),
        ("classes", _set(0, TREE.index("a/y"))),
        ("classes", lambda array: array[::-1].copy()),
        ("committee_nodes", _set(0, -2)),
        ("committee_nodes", _set(0, 99)),
        ("committee_nodes", _set(1, -1)),
        ("class_offsets", _set(0, 1)),
        ("class_offsets", _set(1, 99)),
        ("round_offsets", _set(-1, 3)),
        ("absent", _set(0, np.nan)),
        ("present", _set(0, np.inf)),
        ("absent", lambda array: array[:-1]),
        ("z", _set(0, np.nan)),
        ("normalizers", lambda array: array[:-1]),
        ("merged", _set(0, TREE.index("a/x"))),
        ("merged", _set(0, 99)),
        ("merged", lambda array: array[:-1]),
        ("merged_with", _set(0, -1)),
        ("merged", lambda array: array.astype(np.float64)),
        ("merged_with", lambda array: array.astype(np.int32)),
        ("class_nodes", lambda array: array.reshape(1, -1)),
        ("class_nodes", _set(0, 99)),
        ("class_nodes", lambda array: array[::-1].copy()),
    ],
)
def test_model_files_that_do_not_fit_are_refused(name, change):
    values, arrays = TreeBoostMH(TREE, n_rounds=4).fit(*make_problem()).state()
    with pytest.raises(ModelError, match="train the model again"):
        TreeBoostMH.from_state(TREE, values, _broken(arrays, name, change))


def test_a_flat_model_with_the_committees_of_a_tree_is_refused():
    _, arrays = TreeBoostMH(TREE, n_rounds=4).fit(*make_problem()).state()
    values, _ = AdaBoostMH(TREE, n_rounds=4).fit(*make_problem()).state()
    with pytest.raises(ModelError, match="one committee for all classes"):
        AdaBoostMH.from_state(TREE, values, arrays)


@pytest.mark.parametrize(
    "change", [{"n_features": 0}, {"n_features": 2.0}, {"is_multi_label": 1}, {"parameters": {"n_rounds": 3}}]
)
def test_values_of_model_files_that_do_not_fit_are_refused(change):
    values, arrays = TreeBoostMH(TREE, n_rounds=4).fit(*make_problem()).state()
    with pytest.raises(ModelError, match="parameters of boosting are not the ones"):
        TreeBoostMH.from_state(TREE, values | change, arrays)


def test_models_of_both_kinds_keep_every_round():
    X, Y = make_problem()
    for learner in BOTH:
        fitted = learner(TREE, n_rounds=7).fit(X, Y)
        again = learner.from_state(TREE, *fitted.state())
        for before, after in zip(fitted.committees_, again.committees_, strict=True):
            np.testing.assert_array_equal(before.pivots, after.pivots)
            np.testing.assert_array_equal(before.normalizers, after.normalizers)
        np.testing.assert_array_equal(again.at_round(3).scores(X), fitted.at_round(3).scores(X))
