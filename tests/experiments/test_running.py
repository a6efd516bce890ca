"""Running a study: nothing twice, nothing lost, nothing left out in silence."""

import html
import json
from dataclasses import replace

import pytest
from paper_files.made_up import Counting, write_newsgroups

from experiments import reproduce
from experiments.data import Datasets
from ramify.errors import InputError
from ramify.persistence import exclusive_writer

PLAIN, LAST = ("plain one", "plain two", "plain three"), ("last one", "last two", "last three")
NEWS, INSTEAD = ("news one", "news two", "news three"), ("instead one", "instead two", "instead three")


@pytest.fixture
def counting():
    return Counting()


@pytest.fixture
def news(tmp_path):
    """A folder with 20 newsgroups."""
    return write_newsgroups(tmp_path / "corpora")


def results_of(tmp_path):
    return json.loads((tmp_path / "out" / "made2000.json").read_text())


def run(counting, tmp_path, data=None, size="tiny", **settings):
    study = settings.pop("study", None) or counting.study()
    return reproduce(study, Datasets(data), tmp_path / "out", size, **settings)


# ---- resuming -----------------------------------------------------------------------------------------------------------


def test_what_is_known_is_not_computed_again(counting, tmp_path):
    first = run(counting, tmp_path)
    assert sorted(counting.done) == sorted(PLAIN + INSTEAD + LAST)
    again = run(counting, tmp_path)
    assert len(counting.done) == 9
    assert [outcome.origin for outcome in first.outcomes] == ["ran", "ran", "ran"]
    assert [outcome.origin for outcome in again.outcomes] == ["known", "known", "known"]
    assert [o.entry.found for o in again.outcomes] == [o.entry.found for o in first.outcomes]


@pytest.mark.parametrize("stop_at", ["plain one", "plain three", "last two", "instead three"])
def test_after_an_interruption_no_step_is_computed_twice(counting, tmp_path, stop_at):
    counting.stop_at = stop_at
    with pytest.raises(KeyboardInterrupt):
        run(counting, tmp_path)
    before = list(counting.done)
    assert stop_at not in before
    counting.stop_at = None
    done = run(counting, tmp_path)
    assert sorted(counting.done) == sorted(PLAIN + INSTEAD + LAST)  # each once
    assert len(done.outcomes) == 3
    assert done.outcomes[0].entry.found["steps"]["three"] == {"value": 0.25}


def test_an_interruption_leaves_a_page_of_what_is_done(counting, tmp_path):
    counting.stop_at = "last one"
    with pytest.raises(KeyboardInterrupt):
        run(counting, tmp_path)
    page = (tmp_path / "out" / "made2000.html").read_text()
    assert "needs nothing" in page
    assert "looks at the others" not in page
    parts = {entry["part"]: entry for entry in results_of(tmp_path)["parts"]}
    assert "found" in parts["plain"]
    assert parts["last"]["steps"] == {}


def test_seconds_of_an_interrupted_part_add_up(counting, tmp_path, monkeypatch):
    clock = iter(range(0, 1000, 5))
    monkeypatch.setattr("experiments.running.time.perf_counter", lambda: next(clock))
    counting.stop_at = "plain two"
    with pytest.raises(KeyboardInterrupt):
        run(counting, tmp_path)
    counting.stop_at = None
    assert run(counting, tmp_path).outcomes[0].entry.seconds == 10


def test_seconds_are_the_same_on_the_page_of_a_run_and_of_the_next(counting, tmp_path, monkeypatch):
    clock = iter([0.0, 0.4499999] * 10)  # shown as 0.4, and as 0.5 once rounded to thousandths
    monkeypatch.setattr("experiments.running.time.perf_counter", lambda: next(clock))
    page = run(counting, tmp_path).page
    first = page.read_text(encoding="utf-8")
    run(counting, tmp_path)
    assert page.read_text(encoding="utf-8") == first


def test_other_settings_keep_old_entries(counting, tmp_path):
    run(counting, tmp_path)
    run(counting, tmp_path, seed=1)
    run(counting, tmp_path, size="quick")
    run(counting, tmp_path, study=counting.study(also={"systems": ["a", "b"]}))
    entries = [entry["settings"] for entry in results_of(tmp_path)["parts"] if entry["part"] == "plain"]
    assert [(e["size"], e["seed"], e.get("systems")) for e in entries] == [
        ("tiny", 0, None),
        ("tiny", 1, None),
        ("quick", 0, None),
        ("tiny", 0, ["a", "b"]),
    ]
    counting.done.clear()
    run(counting, tmp_path, seed=1)
    assert counting.done == []


def test_a_part_that_takes_too_long_for_a_quick_run_is_named(counting, tmp_path):
    study = counting.study()
    study = replace(study, parts=tuple(replace(part, in_quick=part.name != "plain") for part in study.parts))
    assert "takes too long for a quick run" in run(counting, tmp_path, study=study, size="quick").missing["plain"]
    assert not set(PLAIN) & set(counting.done)
    assert "plain" not in run(counting, tmp_path, study=study, size="full").missing
    assert set(PLAIN) <= set(counting.done)


def test_a_newer_version_of_a_part_runs_again_and_drops_the_older_results(counting, tmp_path):
    run(counting, tmp_path)
    counting.done.clear()
    run(counting, tmp_path, study=counting.study(version=2))
    assert sorted(counting.done) == sorted(PLAIN)
    assert [e["settings"]["version"] for e in results_of(tmp_path)["parts"] if e["part"] == "plain"] == [2]


def test_the_number_of_threads_does_not_make_results_others(counting, tmp_path):
    run(counting, tmp_path, threads=1)
    counting.done.clear()
    run(counting, tmp_path, threads=2)
    assert counting.done == []


# ---- data ---------------------------------------------------------------------------------------------------------------


def test_a_stand_in_runs_only_where_its_part_cannot(counting, tmp_path, news):
    without = run(counting, tmp_path)
    assert [o.part.name for o in without.outcomes] == ["plain", "instead", "last"]
    counting.done.clear()
    with_data = run(counting, tmp_path, news)
    assert counting.done == list(NEWS)
    assert [o.part.name for o in with_data.outcomes] == ["plain", "news", "last"]
    assert with_data.missing == {}


def test_what_is_missing_is_named_everywhere_with_what_to_do(counting, tmp_path):
    done = run(counting, tmp_path)
    page, held = (tmp_path / "out" / "made2000.html").read_text(), results_of(tmp_path)
    why = done.missing["news"]
    assert "20 newsgroups" in why
    assert "--data DIR" in why
    assert "--fetch" in why
    assert why in page
    assert "nobody has it any more" in page
    assert held["not_run"] == [{"part": "news", "about": "needs 20 newsgroups", "why": why}]
    assert held["not_obtainable"] == {"a lost corpus": "nobody has it any more."}
    assert done.as_dict()["not_run"] == held["not_run"]


def test_changed_data_is_computed_again(counting, tmp_path, news):
    run(counting, tmp_path, news)
    (news / "20news-bydate-train" / "sci.space" / "new").write_text("one more post")
    counting.done.clear()
    done = run(counting, tmp_path, news)
    assert counting.done == list(NEWS)
    assert done.outcomes[1].entry.found["steps"]["one"] == {"documents": 13}


def test_results_stay_on_the_page_when_their_data_is_put_away(counting, tmp_path, news):
    run(counting, tmp_path, news)
    counting.done.clear()
    done = run(counting, tmp_path)
    assert counting.done == []
    assert [(o.part.name, o.origin) for o in done.outcomes] == [("plain", "known"), ("news", "earlier"), ("last", "known")]
    assert "not at hand this time" in (tmp_path / "out" / "made2000.html").read_text()


def test_broken_data_is_named_and_other_parts_go_on(counting, tmp_path, news):
    for post in (news / "20news-bydate-test").glob("*/*"):
        post.unlink()
    done = run(counting, tmp_path, news)
    assert "holds no posts" in done.missing["news"]
    assert [o.part.name for o in done.outcomes] == ["plain", "instead", "last"]


def test_broken_data_is_not_covered_up_by_earlier_results(counting, tmp_path, news):
    run(counting, tmp_path, news)
    for post in (news / "20news-bydate-test").glob("*/*"):
        post.unlink()
    assert "holds no posts" in run(counting, tmp_path, news).missing["news"]


# ---- some parts ---------------------------------------------------------------------------------------------------------


def test_only_the_parts_named_run_and_the_others_are_said_to_be_left_out(counting, tmp_path):
    done = run(counting, tmp_path, parts=["last"])
    assert counting.done == list(LAST)
    assert "was not asked for" in done.missing["plain"]
    assert "was not asked for" in done.missing["news"]


def test_a_part_named_in_vain_calls_its_stand_in(counting, tmp_path):
    run(counting, tmp_path, parts=["news"])
    assert counting.done == list(INSTEAD)


def test_a_stand_in_that_is_named_runs_beside_its_part(counting, tmp_path, news):
    done = run(counting, tmp_path, news, parts=["news", "instead"])
    assert sorted(counting.done) == sorted(NEWS + INSTEAD)
    assert [o.part.name for o in done.outcomes] == ["news", "instead"]


def test_parts_that_were_not_asked_for_stay_on_the_page(counting, tmp_path):
    run(counting, tmp_path, parts=["plain"])
    done = run(counting, tmp_path, parts=["last"])
    assert [o.part.name for o in done.outcomes] == ["plain", "last"]
    assert "others: ['last', 'plain']" in html.unescape((tmp_path / "out" / "made2000.html").read_text())


def test_an_unknown_part_is_refused_with_a_suggestion(counting, tmp_path):
    with pytest.raises(InputError, match="made2000 has no part 'lasst'; its parts are plain, .* Did you mean 'last'"):
        run(counting, tmp_path, parts=["lasst"])
    assert not (tmp_path / "out").exists()


# ---- files --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("{", "is broken"),
        ("[]", "does not hold results of 'python -m experiments'"),
        ('{"kind": "python -m experiments", "format": 1, "paper": "other1999", "parts": []}', "holds results of other1999"),
        ('{"kind": "python -m experiments", "format": 99, "paper": "made2000", "parts": []}', "has format 99"),
        ('{"kind": "python -m experiments", "format": 1, "paper": "made2000", "parts": [{"part": "plain"}]}', "is broken"),
        ('{"kind": "python -m experiments", "format": 1, "paper": "made2000", "parts": [3]}', "is broken"),
    ],
)
def test_a_file_that_holds_something_else_is_refused_and_left_alone(counting, tmp_path, content, match):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "made2000.json").write_text(content)
    with pytest.raises(InputError, match=match):
        run(counting, tmp_path)
    assert (tmp_path / "out" / "made2000.json").read_text() == content
    assert counting.done == []


def test_two_runs_at_once_on_one_file_are_refused(counting, tmp_path):
    (tmp_path / "out").mkdir()
    at_work = exclusive_writer(tmp_path / "out" / "made2000.json")
    with at_work, pytest.raises(InputError, match="made2000.json; wait until it has finished, or choose another path"):
        run(counting, tmp_path)
    assert not counting.done
    assert len(run(counting, tmp_path).outcomes) == 3
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["made2000.html", "made2000.json"]


def test_a_folder_that_is_a_file_is_refused(counting, tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(InputError, match="cannot write into .*out: it is a file; choose another folder with --out"):
        run(counting, tmp_path)


def test_a_value_that_json_cannot_hold_is_refused(counting, tmp_path):
    counting.step = lambda run, key: {1, 2}
    with pytest.raises(TypeError, match="a set is no plain value"):
        run(counting, tmp_path)
