from __future__ import annotations

import csv
import io
import json
import sqlite3
import threading

import pytest

from ramify.errors import InputError
from ramify.server.errors import ApiError
from ramify.server.reviews import ReviewStore, Tally, export_rows, summarize, training_rows
from ramify.server.reviews import store as review_store


def label(*path, p=0.5):
    return {"label": " > ".join(path), "path": list(path), "probabilities": [p] * len(path), "probability": p}


def document(text, *path, p=0.5):
    return text, [label(*path, p=p)] if path else [], [], p if path else 0.0, None


@pytest.fixture
def store(tmp_path):
    made = ReviewStore(tmp_path / "reviews.db")
    yield made
    made.close()


def test_what_was_queued_and_decided_is_there_when_the_file_is_opened_again(tmp_path):
    store = ReviewStore(tmp_path / "r.db")
    queued, _ = store.queue("m", [document("ärger 😀", "a", "b", p=0.25)], by="ann")
    before = store.decide(queued[0], "ben", "correct", ["a > c"], "wrong leaf")
    store.close()
    again = ReviewStore(tmp_path / "r.db")
    assert again.get(queued[0]) == before
    assert before.decisions[0].labels == ["a > c"]
    assert (before.text, before.confidence, before.queued_by) == ("ärger 😀", 0.25, "ann")
    again.close()


def test_a_text_is_queued_once_for_a_model(store):
    first, known = store.queue("m", [document("x", "a"), document("y", "a"), document("x", "a")], by="ann")
    assert (first[0], known) == (first[2], 1)
    again, known = store.queue("m", [document("y", "a")], by="ben")
    assert (again, known) == ([first[1]], 1)
    other, known = store.queue("n", [document("y", "a")], by="ben")
    assert known == 0
    assert other != again


def test_the_least_certain_come_first_and_decided_ones_are_done(store):
    numbers, _ = store.queue("m", [document(t, "a", p=p) for t, p in (("x", 0.9), ("y", 0.1), ("z", 0.5))], by="ann")
    assert [review.text for review in store.page()[0]] == ["y", "z", "x"]
    store.decide(numbers[1], "ben", "accept", ["a"])
    assert [review.text for review in store.page()[0]] == ["z", "x"]
    assert [review.text for review in store.page("done")[0]] == ["y"]
    assert store.page("all", order="recent", offset=1, limit=1)[0][0].text == "y"
    assert store.page("all")[1] == 3


def test_a_later_decision_of_the_same_person_counts_and_the_earlier_one_is_kept(store):
    (number,), _ = store.queue("m", [document("x", "a", "b")], by="ann")
    store.decide(number, "ben", "accept", ["a > b"])
    store.decide(number, "cem", "accept", ["a > b"])
    review = store.decide(number, "ben", "correct", ["a > c"])
    assert [d.action for d in review.decisions] == ["accept", "accept", "correct"]
    assert {d.reviewer: d.labels for d in review.current} == {"ben": ["a > c"], "cem": ["a > b"]}
    assert [row["label"] for row in training_rows(store.all())] == [["a > c"]]


def test_nobody_decides_about_what_is_not_there(store):
    assert store.decide(7, "ben", "accept", []) is None
    assert store.get(7) is None


def test_summaries_count_people_levels_and_pairs(store):
    paths = {"a > b": ["a", "b"], "a > c": ["a", "c"], "d": ["d"]}
    numbers, _ = store.queue("m", [document(t, "a", "b") for t in "vwxyz"], by="ann")
    store.decide(numbers[0], "ben", "accept", ["a > b"])
    store.decide(numbers[1], "ben", "correct", ["a > c"])
    store.decide(numbers[2], "ben", "correct", ["d"])
    store.decide(numbers[3], "ben", "reject", [])
    store.decide(numbers[0], "cem", "accept", ["a > b"])
    store.decide(numbers[1], "cem", "accept", ["a > b"])
    made = summarize(store.all(), paths.get)
    assert (made.open, made.reviewed, made.accepted, made.corrected, made.rejected) == (1, 4, 3, 2, 1)
    assert made.agreement == pytest.approx(3 / 5)
    assert (made.between_reviewers.pairs, made.between_reviewers.same) == (2, 1)
    assert [(row.depth, row.documents, row.agreement) for row in made.by_level] == [(0, 5, 0.8), (1, 4, 0.75)]
    assert [(row.reviewer, row.decisions) for row in made.by_reviewer] == [("ben", 4), ("cem", 2)]


def test_nothing_to_sum_up_gives_no_agreement(store):
    assert summarize(store.all()).agreement is None


def test_rejected_documents_are_no_training_rows_and_rows_survive_csv_and_json(store):
    texts = ['comma, "quotes"\nand a line', "=1+1", "plain"]
    numbers, _ = store.queue("m", [document(text, "a", "b") for text in texts], by="ann")
    store.decide(numbers[0], "ben", "correct", ["a > b", "c"])
    store.decide(numbers[1], "ben", "accept", ["a > b"])
    store.decide(numbers[2], "ben", "reject", [])
    rows = list(training_rows(store.all()))
    table = list(csv.DictReader(io.StringIO("".join(export_rows(rows, "csv")))))
    assert [(row["text"], row["label"]) for row in table] == [(texts[0], "a > b | c"), (texts[1], "a > b")]
    assert [json.loads(line)["label"] for line in export_rows(rows, "jsonl")] == [["a > b", "c"], ["a > b"]]


def test_files_of_others_are_refused_and_left_alone(tmp_path):
    foreign = tmp_path / "other.db"
    base = sqlite3.connect(foreign)
    base.execute("CREATE TABLE t (x)")
    base.commit()
    base.close()
    text = tmp_path / "text.db"
    text.write_text("no database, but long enough to be looked at " * 50)
    for path, said in (
        (foreign, "not a review file"),
        (text, "cannot store reviews"),
        (tmp_path / "no" / "r.db", "cannot store reviews"),
    ):
        before = path.read_bytes() if path.exists() else None
        with pytest.raises(InputError, match=said):
            ReviewStore(path)
        assert (path.read_bytes() if path.exists() else None) == before


def test_a_failed_change_leaves_nothing_behind(store):
    with pytest.raises((TypeError, ValueError, sqlite3.Error)):
        store.queue("m", [document("x", "a"), ("y", [], [], object(), None)], by="ann")
    assert store.page("all")[1] == 0


def test_two_stores_on_one_file_lose_nothing(tmp_path):
    path = tmp_path / "r.db"
    stores = [ReviewStore(path), ReviewStore(path)]

    def fill(store, name):
        for i in range(50):
            store.queue("m", [document(f"{name} {i}", "a")], by=name)

    threads = [threading.Thread(target=fill, args=(store, f"p{i}")) for i, store in enumerate(stores)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stores[0].page("all")[1] == 100
    for store in stores:
        store.close()


def test_pairs_of_reviewers_are_counted_without_looking_at_each(store):
    """Ten thousand people who judge one document are fifty million pairs."""
    (number,), _ = store.queue("m", [document("dark", "a", "b")], by="ann")
    made = [("r0", "reject", "[]"), ("r1", "correct", '["a > c"]'), ("r2", "reject", '["a > b"]')]
    made += [(f"r{i}", "accept", '["a > b"]') for i in range(3, 30_000)]
    insert = f"INSERT INTO decisions (document, reviewer, action, labels, at) VALUES ({number}, ?, ?, ?, '2026-01-01T00:00:00+00:00')"
    with store._transaction() as base:
        base.executemany(insert, made)
    between = summarize(store.all()).between_reviewers
    assert between.pairs == 30_000 * 29_999 // 2
    assert between.same == 29_997 * 29_996 // 2 + 1


def test_reviews_are_added_up_a_few_at_a_time(store):
    store.queue("m", [document(f"dark {i}", "a", "b") for i in range(900)], by="ann")
    tally, reviews, times = Tally(), store.all(), 0
    while tally.add_some(reviews):
        times += 1
        assert times < 100
    assert times > 1
    assert tally.summary() == summarize(store.all())


def test_a_document_has_so_many_decisions_and_no_more(store, monkeypatch):
    monkeypatch.setattr(review_store, "MOST_DECISIONS", 3)
    numbers, _ = store.queue("m", [document("dark", "a", "b"), document("light", "a", "b")], by="ann")
    for person in "xyz":
        store.decide(numbers[0], person, "accept", ["a > b"])
    with pytest.raises(ApiError, match="3 decisions about document number 1") as refused:
        store.decide(numbers[0], "x", "reject", [])
    assert refused.value.status == 409
    assert [each.action for each in store.get(numbers[0]).decisions] == ["accept"] * 3
    assert store.decide(numbers[1], "x", "accept", ["a > b"]) is not None


def test_decisions_are_taken_when_the_queue_is_full_but_not_for_ever(tmp_path):
    store = ReviewStore(tmp_path / "r.db", most_bytes=200_000)
    (number,), _ = store.queue("m", [document("dark", "a", "b")], by="ann")
    with pytest.raises(ApiError, match="has its 0 MB"):
        for i in range(1_000):
            store.queue("m", [document(f"{i} " + "x" * 1_000, "a", "b")], by="ann")
    assert store.decide(number, "ann", "accept", ["a > b"], "c" * 2_000) is not None
    with pytest.raises(ApiError, match="has its 0 MB") as refused:
        for _ in range(500):
            store.decide(number, "ann", "accept", ["a > b"], "c" * 2_000)
    assert refused.value.status == 507
    store.close()
