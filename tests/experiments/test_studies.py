"""What every study keeps to; studies are found by themselves."""

import json
import xml.etree.ElementTree as ElementTree

import pytest

from experiments import find_study, reproduce, study_names
from experiments.data import CORPORA, Datasets
from experiments.page import Beside

pytestmark = pytest.mark.slow

STUDIES = [find_study(name) for name in study_names()]


@pytest.fixture(scope="module", params=STUDIES, ids=lambda study: study.name)
def done(request, tmp_path_factory):
    """A study run as small as can be, without any data."""
    return reproduce(request.param, Datasets(), tmp_path_factory.mktemp("out"), "tiny", threads=1)


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_parts_have_names_of_their_own_and_refer_to_what_there_is(study):
    names = [part.name for part in study.parts]
    assert study.name in study_names()
    assert len(set(names)) == len(names)
    assert study.title
    assert study.lead
    for part in study.parts:
        assert part.about
        assert set(part.needs) <= set(CORPORA)
        assert set(part.in_place_of) <= set(names) - {part.name}
        json.dumps(part.also())


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_something_runs_on_a_fresh_clone(study):
    assert any(not part.needs for part in study.parts)


def test_without_data_what_needs_none_runs_and_the_rest_is_named(done):
    ran = {outcome.part.name for outcome in done.outcomes}
    for part in done.study.parts:
        if part.needs:
            assert part.name not in ran
            for name in part.needs:
                assert CORPORA[name].title in done.missing[part.name]
                assert "--data DIR" in done.missing[part.name]
        elif not part.in_place_of or any(name in done.missing for name in part.in_place_of):
            assert part.name in ran
    assert not set(done.missing) & ran


def test_the_page_is_well_formed_and_names_what_is_missing(done):
    text = done.page.read_text(encoding="utf-8")
    words = "".join(ElementTree.fromstring(text).find("body").itertext())
    for outcome in done.outcomes:
        assert outcome.part.about in words
    for name, why in done.missing.items():
        assert name in words
        assert why in words
    for what, why in done.study.not_obtainable.items():
        assert what in words
        assert why.replace("`", "") in words


def test_results_are_json_and_say_the_same(done):
    held = json.loads(done.results.read_text(encoding="utf-8"))
    assert held["paper"] == done.study.name
    assert {each["part"]: each["why"] for each in held["not_run"]} == done.missing
    assert held["not_obtainable"] == dict(done.study.not_obtainable)
    assert {entry["part"] for entry in held["parts"] if "found" in entry} == {o.part.name for o in done.outcomes}


def test_every_part_shows_something(done):
    for outcome in done.outcomes:
        assert outcome.blocks, outcome.part.name
    json.dumps(done.as_dict(), allow_nan=False)


def test_something_stands_beside_the_paper(done):
    rows = [row for outcome in done.outcomes for block in outcome.blocks if isinstance(block, Beside) for row in block.rows]
    assert any(row.paper is not None and row.ours is not None for row in rows)


def test_a_second_run_gives_the_same_page_and_computes_nothing(done):
    before = done.page.read_text(encoding="utf-8")
    again = reproduce(done.study, Datasets(), done.page.parent, "tiny", threads=1)
    assert all(outcome.origin == "known" for outcome in again.outcomes)
    assert done.page.read_text(encoding="utf-8") == before
