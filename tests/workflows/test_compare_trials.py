"""How much memory a piece of work needs at its height."""

import time

import numpy as np
import pytest

from ramify.workflows import compare_trials
from ramify.workflows.compare_trials import measure_memory

WAYS = ["reported by the system", "sampled"]


@pytest.fixture(params=WAYS)
def way(request, monkeypatch):
    """Both ways to measure, where the platform has them."""
    if request.param == "sampled":
        monkeypatch.setattr(compare_trials, "_reset_peak", lambda: False)
        if compare_trials._resident() is None:
            pytest.skip("this platform does not tell the resident set")
    elif not compare_trials._reset_peak():
        pytest.skip("this platform does not tell the height of the resident set")
    return request.param


def needed(megabytes):
    with measure_memory() as peak:
        work = np.ones(megabytes * 125_000)  # eight bytes each, all of them touched
        time.sleep(0.1)  # so that who looks now and then sees it
        del work
    return peak.megabytes


def test_a_known_allocation_is_measured_though_it_is_freed_before_the_end(way):
    assert needed(80) == pytest.approx(80, abs=8)


def test_nothing_is_left_over_from_the_work_before(way):
    """The same work twice needs the same, and less work less, whatever was freed in between."""
    assert [needed(megabytes) for megabytes in (60, 60, 10, 60)] == pytest.approx([60, 60, 10, 60], abs=8)


def test_many_small_pieces_count_too(way):
    with measure_memory() as peak:
        pieces = [bytearray(1000) for _ in range(40_000)]
    assert peak.megabytes == pytest.approx(40, rel=0.3)
    assert len(pieces) == 40_000


def test_what_was_there_before_does_not_count(way):
    before = np.ones(10_000_000)
    with measure_memory() as peak:
        before += 1
    assert peak.megabytes < 8


def test_work_that_fails_fails_as_it_would(way):
    with pytest.raises(KeyError), measure_memory() as peak:
        raise KeyError("x")
    assert peak.megabytes is None


def test_where_nothing_can_be_measured_work_goes_on(monkeypatch, tmp_path):
    monkeypatch.setattr(compare_trials, "STATUS", tmp_path / "none")
    monkeypatch.setattr(compare_trials, "CLEAR", tmp_path / "no directory" / "none")
    assert needed(1) is None
