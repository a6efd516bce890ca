"""Parallel training, in threads or other processes, gives the same model to the last bit, and can be resumed."""

import pickle
import threading
from contextlib import nullcontext

import numpy as np
import pytest
from apart import ApartExecutor
from scipy.sparse import csr_array
from seeds import each_seed
from strategies import random_forest

from ramify import Taxonomy, TextClassifier
from ramify.errors import InputError, LabelError, ModelError
from ramify.learners import (
    AdaBoostMH,
    MultinomialNaiveBayes,
    NodeClassifiers,
    OneVsRestSVM,
    PachinkoNaiveBayes,
    ShrinkageNaiveBayes,
    TopDownSVM,
    TreeBoostMH,
)
from ramify.learners.boosting import rounds
from ramify.learners.boosting.rounds import Progress
from ramify.learners.naive_bayes.mixture_weights import Units
from ramify.parallel import Checkpoints, checkpointing, reporting_to, running_on
from ramify.parallel.checkpoints import read_state, write_state
from ramify.systems import SYSTEMS

pytestmark = pytest.mark.slow

TREE = Taxonomy.from_paths(["a/x", "a/y/deep", "a/y/deeper", "b/z", "b/only/one", "c"])


def make_problem(seed=0, n_documents=150, labels="leaves"):
    """Counts with a word for each node on the way to a label, words of chance, and weights."""
    rng = np.random.default_rng(seed)
    nodes = np.flatnonzero(TREE.is_leaf) if labels == "leaves" else np.arange(len(TREE))
    X, rows = rng.poisson(0.3, (n_documents, 40)).astype(np.float32), []
    for i in range(n_documents):
        chosen = rng.choice(nodes, size=1 if labels == "leaves" else rng.integers(1, 4), replace=False)
        rows.append([TREE.names[node] for node in chosen])
        for node in chosen:
            X[i, TREE.nodes_to(int(node))] += rng.poisson(1.5)
    return csr_array(X), TREE.encode(rows), rng.choice([0, 0.5, 1, 3], size=n_documents)


def fit(make, problem, **given):
    return make().fit(problem[0], problem[1], **given)


def fit_in_two_parts(make, problem):
    X, Y, _ = problem
    return make().partial_fit(X[:90], Y[:90]).partial_fit(X[90:], Y[90:])


BOOSTED = {
    "treeboost": (TreeBoostMH, {"n_rounds": 30}),
    "treeboost that stops early": (TreeBoostMH, {"n_rounds": 80, "early_stopping": True, "patience": 5}),
    "treeboost with few terms": (TreeBoostMH, {"n_rounds": 20, "n_terms": 4, "measure": "chi2", "join": "max"}),
    "treeboost that abstains": (TreeBoostMH, {"n_rounds": 20, "variant": "RA"}),
    "adaboost": (AdaBoostMH, {"n_rounds": 30}),
    "adaboost that stops early": (AdaBoostMH, {"n_rounds": 80, "early_stopping": True, "variant": "D"}),
}
MIXED = {
    "shrinkage": (ShrinkageNaiveBayes, {}),
    "shrinkage with branches": (ShrinkageNaiveBayes, {"branches": 2}),
    "shrinkage by EM": (ShrinkageNaiveBayes, {"newton": False, "tol": 1e-3}),
    "shrinkage from documents held out": (ShrinkageNaiveBayes, {"weights": "held-out", "random_state": 3}),
}
OTHERS = {
    "pachinko": (PachinkoNaiveBayes, {}),
    "pachinko with few words": (PachinkoNaiveBayes, {"n_words": 5}),
    "naive Bayes": (MultinomialNaiveBayes, {}),
    "svm with a cost that is chosen": (OneVsRestSVM, {"C": "auto"}),
    "machines from the top down": (TopDownSVM, {"C": "auto"}),
    "nodes that are calibrated": (NodeClassifiers, {"calibration": "sigmoid"}),
    "nodes with a cost that is chosen": (NodeClassifiers, {"C": "auto", "calibration": "isotonic"}),
}
LEARNERS = BOOSTED | MIXED | OTHERS
PROBLEMS = {name: make_problem(labels=name) for name in ("leaves", "several labels and inner nodes")}


def states_in(learners):
    """For every learner, plain values and arrays as bytes, so that they are compared to the last bit."""
    for learner in learners:
        values, arrays = learner.state()
        yield values, {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in arrays.items()}


def assert_same_everywhere(learn, name):
    """With one thread, with two, and elsewhere; each sends what it spreads."""
    kind, options = LEARNERS[name]
    apart, is_spread = ApartExecutor(1), name not in OTHERS
    with running_on(apart):
        far = learn(lambda: kind(TREE, **options, n_jobs=1))
    if is_spread:
        assert set(apart.jobs) == {"fit_block" if name in MIXED else "add_rounds"}
    near = [learn(lambda n_jobs=n_jobs: kind(TREE, **options, n_jobs=n_jobs)) for n_jobs in ((1, 2) if is_spread else (1,))]
    first, *others = states_in([far, *near])
    assert all(first == other for other in others)


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("name", [*BOOSTED, *MIXED])
def test_models_that_were_learnt_elsewhere_are_the_same(name, problem):
    assert_same_everywhere(lambda make: fit(make, PROBLEMS[problem]), name)


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_not_spread_learns_the_same_when_an_executor_elsewhere_is_in_force(name):
    assert_same_everywhere(lambda make: fit(make, PROBLEMS["several labels and inner nodes"]), name)


@pytest.mark.parametrize("name", [*BOOSTED, *MIXED])
def test_documents_weigh_the_same_elsewhere(name):
    problem = PROBLEMS["several labels and inner nodes"]
    assert_same_everywhere(lambda make: fit(make, problem, sample_weight=problem[2]), name)


@pytest.mark.parametrize(
    "name", [*BOOSTED, "shrinkage", "shrinkage with branches", "shrinkage by EM", "pachinko", "naive Bayes"]
)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_learning_goes_on_elsewhere_as_it_does_here(name, problem):
    assert_same_everywhere(lambda make: fit_in_two_parts(make, PROBLEMS[problem]), name)


@each_seed(6)
@pytest.mark.parametrize("kind", [TreeBoostMH, ShrinkageNaiveBayes])
def test_random_forests_are_learnt_the_same_elsewhere(seed, kind):
    rng = np.random.default_rng(seed)
    parents = random_forest(rng, 12)
    tree = Taxonomy.from_edges([(str(n), str(p[0]) if p else None) for n, p in enumerate(parents)])
    X = csr_array(rng.poisson(0.5, (60, 10)).astype(np.float32))
    labels = [[tree.names[k] for k in rng.choice(len(tree), size=rng.integers(1, 3), replace=False)] for _ in range(60)]
    options = {"n_rounds": 10} if kind is TreeBoostMH else {"branches": 1}
    here = kind(tree, **options).fit(X, tree.encode(labels))
    with running_on(ApartExecutor()):
        there = kind(tree, **options).fit(X, tree.encode(labels))
    first, second = states_in([here, there])
    assert first == second


@pytest.mark.parametrize("name", [*BOOSTED, *MIXED])
def test_one_class_is_refused_elsewhere_as_it_is_here(name):
    kind, options = LEARNERS[name]
    with running_on(ApartExecutor()), pytest.raises(LabelError, match="learning needs documents of at least two classes"):
        kind(TREE, **options).fit([[1, 0], [0, 1]], ["c", "c"])


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_answers_the_same_when_an_executor_elsewhere_is_in_force(system, shop):
    """Also those that run nothing there: nobody who shares memory is sent away."""
    corpus, tested = shop.train.take(range(0, len(shop.train), 6)), shop.test.documents[:40]
    labels = [labels[0] for labels in corpus.labels]
    here = TextClassifier(system, shop.taxonomy).fit(corpus.documents, labels)
    with running_on(ApartExecutor(1)):
        there = TextClassifier(system, shop.taxonomy).fit(corpus.documents, labels)
        assert there.predict(tested).tolist() == here.predict(tested).tolist()
        np.testing.assert_array_equal(there.predict_proba(tested), here.predict_proba(tested))


# ---- resuming ----------------------------------------------------------------------------------------------------

KERNELS = {
    "add_rounds": "ramify.learners.boosting.rounds.boost_until_best",
    "fit_block": "ramify.learners.naive_bayes.mixture_weights.fit_mixtures_in_place",
}


class BrokenError(Exception):
    pass


class Counting:
    """Stands for what every block calls: counts blocks, and breaks at one of them."""

    def __init__(self, real):
        self.real, self.count, self.breaks_at = real, 0, None

    def __call__(self, *arguments):
        self.count += 1
        if self.count == self.breaks_at:
            raise BrokenError
        return self.real(*arguments)


@pytest.fixture
def counted(monkeypatch):
    """What blocks of boosting and of mixing call, by the names of their jobs."""
    found = {}
    for job, path in KERNELS.items():
        module, _, name = path.rpartition(".")
        found[job] = Counting(getattr(__import__(module, fromlist=[name]), name))
        monkeypatch.setattr(path, found[job])
    return found


WAYS = {"one thread": (1, None), "two threads": (2, None), "apart": (1, ApartExecutor(1))}
KEPT = {name: (*LEARNERS[name], "add_rounds" if name in BOOSTED else "fit_block") for name in (*BOOSTED, *MIXED)}


def fit_checkpointed(
    name, way, directory, problem=PROBLEMS["several labels and inner nodes"], learn=fit, resume=False, **changes
):
    kind, options, _ = KEPT[name]
    n_jobs, executor = WAYS[way]
    with running_on(executor), checkpointing(Checkpoints(directory, resume=resume)):
        return learn(lambda: kind(TREE, **{**options, **changes}, n_jobs=n_jobs), problem)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", KEPT)
def test_finished_blocks_are_not_run_again(name, way, counted, tmp_path):
    kind, options, job = KEPT[name]
    counting = counted[job]
    whole = fit(lambda: kind(TREE, **options), PROBLEMS["several labels and inner nodes"])
    n_blocks, counting.count = counting.count, 0
    assert n_blocks > 3 or kind is AdaBoostMH
    counting.breaks_at = (n_blocks + 1) // 2
    with pytest.raises(BrokenError):
        fit_checkpointed(name, way, tmp_path)
    done = len(list(tmp_path.rglob("block-*.safetensors")))
    assert (n_blocks + 1) // 2 - (WAYS[way][0] or 1) <= done < n_blocks  # what another thread is at is not finished
    counting.count, counting.breaks_at = 0, None
    again = fit_checkpointed(name, way, tmp_path, resume=True)
    assert counting.count == n_blocks - done
    counting.count = 0
    once_more = fit_checkpointed(name, "apart" if way != "apart" else "two threads", tmp_path, resume=True)
    assert counting.count == 0
    first, second, third = states_in([whole, again, once_more])
    assert first == second == third


@pytest.mark.parametrize("name", ["treeboost", "shrinkage"])
def test_learning_that_goes_on_is_taken_up_again(name, counted, tmp_path):
    """Two trainings in one run: the first is known when the second breaks."""
    kind, options, job = KEPT[name]
    whole = fit_in_two_parts(lambda: kind(TREE, **options), PROBLEMS["leaves"])
    n_blocks, counted[job].count = counted[job].count, 0
    counted[job].breaks_at = n_blocks - 1
    with pytest.raises(BrokenError):
        fit_checkpointed(name, "one thread", tmp_path, PROBLEMS["leaves"], fit_in_two_parts)
    counted[job].count, counted[job].breaks_at = 0, None
    again = fit_checkpointed(name, "one thread", tmp_path, PROBLEMS["leaves"], fit_in_two_parts, resume=True)
    assert counted[job].count == 2
    first, second = states_in([whole, again])
    assert first == second


CHANGES = {
    "treeboost": [{"n_rounds": 31}, {"variant": "D"}, {"n_terms": 5}, {"early_stopping": True}],
    "adaboost that stops early": [{"patience": 49}, {"random_state": 1}],
    "shrinkage": [{"tol": 1e-3}, {"newton": False}, {"max_iter": 7}, {"branches": 1}],
    "shrinkage from documents held out": [{"random_state": 4}, {"held_out": 0.4}],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["treeboost", "adaboost", "shrinkage"])
def test_checkpoints_of_other_documents_are_refused(name, way, tmp_path):
    X, Y, weight = PROBLEMS["several labels and inner nodes"]
    fit_checkpointed(name, way, tmp_path, (X, Y, weight))
    more = X.toarray()
    more[0, 0] = 0 if more[0, 0] else 1
    for problem in ((csr_array(more), Y, weight), (X, csr_array(Y[::-1]), weight)):
        with pytest.raises(InputError, match="is of other documents, labels or settings"):
            fit_checkpointed(name, way, tmp_path, problem, resume=True)


@pytest.mark.parametrize(("name", "changes"), [(name, changes) for name, listed in CHANGES.items() for changes in listed])
def test_checkpoints_of_other_settings_are_refused(name, changes, tmp_path):
    fit_checkpointed(name, "one thread", tmp_path)
    with pytest.raises(InputError, match="is of other documents, labels or settings"):
        fit_checkpointed(name, "one thread", tmp_path, resume=True, **changes)


def damage(place, change):
    """Change the arrays of the first block."""
    path = place / "0000" / "block-0.safetensors"
    state = read_state(path)
    change(state)
    write_state(path, state)


@pytest.mark.parametrize("name", ["treeboost", "shrinkage"])
@pytest.mark.parametrize("change", ["nothing", "one array less", "longer", "other type", "another block"])
def test_blocks_that_are_damaged_are_refused_in_one_sentence(name, change, tmp_path):
    fit_checkpointed(name, "one thread", tmp_path)
    array = "pivots" if name == "treeboost" else "weights"
    states = [read_state(path) for path in sorted((tmp_path / "0000").glob("block-*.safetensors"))]
    told_by = "committee_nodes" if name == "treeboost" else "weights"
    other = next(state for state in states if state[told_by].tobytes() != states[0][told_by].tobytes())
    if name == "shrinkage":  # weights of as many places cannot be told apart
        other = next(state for state in states if len(state["weights"]) != len(states[0]["weights"]))
    changes = {
        "nothing": dict.clear,
        "one array less": lambda state: state.pop(array),
        "longer": lambda state: state.update({array: np.append(state[array], state[array][:1])}),
        "other type": lambda state: state.update({array: state[array].astype(np.float32)}),
        "another block": lambda state: state.update(other),
    }
    damage(tmp_path, changes[change])
    with pytest.raises(ModelError) as error:
        fit_checkpointed(name, "one thread", tmp_path, resume=True)
    assert "\n" not in str(error.value)


def test_rounds_of_a_stopped_thread_are_not_saved(monkeypatch, tmp_path):
    """A thread that is stopped has not made all its rounds; they must not pass for a whole committee."""
    began, real = threading.Event(), rounds.boost_until_best

    def boost_until_best(problem, settings, after):
        if problem.node == -1:
            assert began.wait(timeout=30)
            raise KeyboardInterrupt

        def report(rounds):
            began.set()
            return after(rounds)

        return real(problem, settings, report)

    monkeypatch.setattr(rounds, "boost_until_best", boost_until_best)
    with pytest.raises(KeyboardInterrupt):
        fit_checkpointed("treeboost", "two threads", tmp_path, n_rounds=10**6)
    assert list(tmp_path.rglob("block-*.safetensors")) == []


# ---- progress -----------------------------------------------------------------------------------------------------------


class Bar:
    def __init__(self):
        self.total, self.steps = None, []

    def stage(self, title, total):
        self.total = total if title in ("boosting", "mixture weights") else self.total
        return nullcontext(self if title in ("boosting", "mixture weights") else Bar())

    def advance(self, amount=1):
        self.steps.append(amount)


@pytest.mark.parametrize(("way", "each"), [("one thread", 64), ("two threads", 64), ("apart", 200)])
def test_progress_is_by_round_in_this_process_and_by_committee_in_others(way, each):
    bar, (n_jobs, executor) = Bar(), WAYS[way]
    with reporting_to(bar), running_on(executor):
        fit(lambda: TreeBoostMH(TREE, n_rounds=200, n_jobs=n_jobs), PROBLEMS["several labels and inner nodes"])
    assert sum(bar.steps) == bar.total
    assert max(bar.steps) == each


@pytest.mark.parametrize("way", WAYS)
def test_progress_is_complete_where_everything_comes_from_a_checkpoint(way, tmp_path):
    fit_checkpointed("treeboost", way, tmp_path)
    fit_checkpointed("shrinkage", way, tmp_path / "mixed")
    for name, place in (("treeboost", tmp_path), ("shrinkage", tmp_path / "mixed")):
        bar = Bar()
        with reporting_to(bar):
            fit_checkpointed(name, way, place, resume=True)
        assert sum(bar.steps) == bar.total


def test_a_copy_in_another_process_reports_no_rounds():
    bar = Bar()
    progress = Progress(bar)
    progress.stopped.set()
    far = pickle.loads(pickle.dumps(progress))
    assert far.report(3, 10)
    assert (bar.steps, progress.reported) == ([], {})
    assert not progress.report(3, 10)
    assert (bar.steps, progress.reported) == ([10], {3: 10})


def test_weights_of_units_are_at_the_places_of_each_unit():
    units = Units.of(TREE, np.arange(len(TREE)))
    some = np.array([4, 1, len(units) - 1], dtype=np.int32)
    expected = [place for unit in some for place in range(units.n_weights)[units.weights_at(int(unit))]]
    assert units.weights_of(some).tolist() == expected
    assert units.weights_of(some[:0]).tolist() == []
