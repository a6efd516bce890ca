import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify import TextClassifier
from ramify.errors import InputError
from ramify.learners import RecursiveSVM
from ramify.parallel import (
    OutOfTime,
    SerialExecutor,
    ThreadExecutor,
    check_deadline,
    choose_executor,
    count_workers,
    deadline_at,
    note,
    reporting_to,
    row_blocks,
    single_stage,
    stage,
)

EXECUTORS = [SerialExecutor(), ThreadExecutor(1), ThreadExecutor(3)]


@pytest.mark.parametrize("executor", EXECUTORS, ids=["serial", "one thread", "three threads"])
def test_results_come_in_the_order_of_the_blocks(executor):
    def work(block):
        time.sleep(0.002 * (block % 3))
        return block * block

    assert list(executor.map(work, range(20))) == [n * n for n in range(20)]
    assert list(executor.map(work, [])) == []


@pytest.mark.parametrize("executor", EXECUTORS, ids=["serial", "one thread", "three threads"])
def test_the_first_error_is_raised_and_later_blocks_are_dropped(executor):
    seen = []

    def work(block):
        seen.append(block)
        if block == 2:
            raise InputError("no")
        return block

    with pytest.raises(InputError, match="no"):
        list(executor.map(work, range(1000)))
    assert len(seen) < 50


def test_threads_take_blocks_only_as_room_becomes_free():
    taken = []
    results = ThreadExecutor(2).map(lambda block: block, (taken.append(n) or n for n in range(100)))
    next(results)
    assert len(taken) <= 5
    results.close()


def test_threads_really_run_side_by_side():
    barrier = threading.Barrier(2, timeout=10)
    assert len(list(ThreadExecutor(2).map(lambda _: barrier.wait(), range(2)))) == 2


@given(st.integers(0, 200), st.integers(0, 50), st.integers(1, 300))
def test_blocks_cover_every_row_once_and_keep_the_budget(n_rows, bytes_per_row, budget):
    blocks = row_blocks(n_rows, bytes_per_row, budget)
    rows = [row for block in blocks for row in range(block.start, block.stop)]
    assert rows == list(range(n_rows))
    assert all(b.stop - b.start == 1 or (b.stop - b.start) * bytes_per_row <= budget for b in blocks)


@pytest.mark.parametrize("n_jobs", ["a", "2", 2.5, 1.0, True, float("nan"), [1], np.float64(2)])
def test_what_is_no_whole_number_of_threads_is_refused(n_jobs):
    for use in (
        lambda: count_workers(n_jobs),
        lambda: choose_executor(n_jobs),
        lambda: ThreadExecutor(n_jobs),
        lambda: TextClassifier("svm", n_jobs=n_jobs).fit(["a b", "c d"] * 5, ["x", "y"] * 5),
        lambda: RecursiveSVM(n_jobs=n_jobs).fit(np.eye(4), ["x", "y", "x", "y"]),
    ):
        with pytest.raises(InputError, match="n_jobs is .*; give None for one thread, a whole number of threads, or -1"):
            use()
    with pytest.raises(InputError, match="n_jobs is 0"):
        ThreadExecutor(0)
    assert (count_workers(np.int64(2)), count_workers(None), ThreadExecutor(3).workers) == (2, 1, 3)


def test_n_jobs_means_what_it_means_in_scikit_learn():
    assert isinstance(choose_executor(None), SerialExecutor)
    assert isinstance(choose_executor(1), SerialExecutor)
    assert isinstance(choose_executor(2), ThreadExecutor)
    assert count_workers(-1) >= 1
    assert count_workers(-1000) == 1
    with pytest.raises(InputError, match="n_jobs is 0"):
        choose_executor(0)


class Listener:
    def __init__(self):
        self.heard = []

    def stage(self, title, total):
        return Heard(self.heard, title, total)


class Heard:
    def __init__(self, heard, title, total):
        self.heard, self.title = heard, title
        heard.append((title, total))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.heard.append((self.title, "done"))

    def advance(self, amount=1):
        self.heard.append((self.title, "+", amount))


def test_work_is_silent_until_someone_listens():
    listener = Listener()
    with stage("unheard", 3) as step:
        step.advance()
    with reporting_to(listener), stage("heard", 3) as step:
        step.advance(2)
    with stage("unheard again") as step:
        step.advance()
    assert listener.heard == [("heard", 3), ("heard", "+", 2), ("heard", "done")]


def test_training_and_scoring_tell_how_far_they_are(shop):
    listener = Listener()
    with reporting_to(listener):
        clf = TextClassifier("nb", shop.taxonomy).fit(shop.train.documents, shop.train.labels)
        clf.predict_proba(shop.test.documents[:10])
    titles = [entry[0] for entry in listener.heard if len(entry) == 2]
    assert ("counting words", len(shop.train)) in listener.heard
    assert "counting words by class" in titles
    assert ("scoring", 10) in listener.heard


# ---- one piece of work made of others -----------------------------------------------------------------------------------


class Bar:
    """Someone who listens, and writes down what is said."""

    def __init__(self, tells=True):
        self.stages, self.advanced, self.words = [], 0, []
        if tells:
            self.describe = self.words.append

    @contextmanager
    def stage(self, title, total):
        self.stages.append((title, total))
        yield self

    def advance(self, amount=1):
        self.advanced += amount


def work_in_pieces():
    with single_stage("comparing", 5) as whole:
        whole.describe("svm")
        with stage("training", 100) as step:
            step.advance(100)
        whole.advance()
        whole.advance(4)


def test_work_inside_one_stage_shows_as_words_and_not_as_stages():
    bar = Bar()
    with reporting_to(bar):
        work_in_pieces()
    assert (bar.stages, bar.advanced) == ([("comparing", 5)], 5)
    assert bar.words == ["svm", "svm: training", "svm"]


def test_a_listener_without_words_still_sees_progress():
    bar = Bar(tells=False)
    with reporting_to(bar):
        work_in_pieces()
    assert (bar.stages, bar.advanced) == ([("comparing", 5)], 5)


def test_one_stage_is_silent_where_nobody_listens_and_over_where_it_ends():
    work_in_pieces()
    bar = Bar()
    with reporting_to(bar):
        work_in_pieces()
        with stage("writing", 1):
            pass
    assert bar.stages[-1] == ("writing", 1)


def test_an_error_inside_one_stage_leaves_the_listener_as_it_was():
    bar = Bar()
    with reporting_to(bar):
        with pytest.raises(InputError), single_stage("comparing"), stage("training"):
            raise InputError("no")
        with stage("writing", 1):
            pass
    assert bar.stages == [("comparing", None), ("writing", 1)]


@pytest.mark.parametrize("listener", [None, Bar()])
def test_notes_go_to_the_log_where_nobody_takes_them(listener, caplog):
    with reporting_to(listener):
        note("outside")
        with single_stage("comparing"), single_stage("training"):
            note("inside")
    assert [record.message for record in caplog.records] == ["outside", "inside"]


def test_notes_go_to_who_takes_them():
    bar, lines = Bar(), []
    bar.note = lines.append
    with reporting_to(bar), single_stage("comparing"):
        note("inside")
    assert lines == ["inside"]


# ---- deadlines ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("executor", EXECUTORS, ids=["serial", "one thread", "three threads"])
def test_blocks_after_a_deadline_are_never_begun(executor):
    done = []
    with pytest.raises(OutOfTime), deadline_at(4.5, lambda: len(done)):
        list(executor.map(done.append, range(1000)))
    assert 5 <= len(done) <= 5 + 2 * executor.workers


@pytest.mark.parametrize("executor", EXECUTORS, ids=["serial", "one thread", "three threads"])
def test_a_long_block_heeds_the_deadline_of_whoever_waits_for_it(executor):
    rounds = []

    def work(block):
        for _ in range(1000):
            check_deadline()
            rounds.append(block)

    with pytest.raises(OutOfTime), deadline_at(9.5, lambda: len(rounds)):
        list(executor.map(work, range(2)))
    assert len(rounds) <= 20
    list(executor.map(work, [0]))  # and nothing of it is left
    assert len(rounds) >= 1000


def test_work_that_tells_how_far_it_is_is_broken_off_there():
    now = []
    with deadline_at(2.5, lambda: len(now)), stage("work") as step:
        for _ in range(2):
            now.append(1)
            step.advance()
        now.append(1)
        with pytest.raises(OutOfTime):
            step.advance()
        with pytest.raises(OutOfTime), stage("more"):
            pass
    with deadline_at(None), stage("work") as step:
        step.advance()


def test_a_block_within_is_given_no_more_time_than_the_one_around_it():
    with deadline_at(1.0, lambda: 2.0):
        with pytest.raises(OutOfTime), deadline_at(5.0, lambda: 2.0):
            check_deadline()
        with pytest.raises(OutOfTime), deadline_at(None):
            check_deadline()
    check_deadline()
