"""Whatever files and requests hold, Ramify answers or refuses in one sentence: known attacks, and some random ones."""

from __future__ import annotations

import pytest

from attacks.run import SHARES, known_cases, numbers, prepare
from attacks.workers import Worker

SEED, CASES = 7, 500
KNOWN = dict(known_cases())


@pytest.fixture(scope="module")
def worker(tmp_path_factory):
    with Worker(tmp_path_factory.mktemp("attacks")) as made:
        prepare(made, SHARES)
        yield made


@pytest.mark.parametrize("name", KNOWN)
def test_a_known_attack_is_answered_or_refused_in_one_sentence(worker, name):
    result = worker.ask({"case": KNOWN[name]})
    assert result["outcome"] in ("answered", "refused"), result


@pytest.mark.parametrize("target", SHARES)
def test_random_damage_is_answered_or_refused_in_one_sentence(worker, target):
    outcomes = set()
    for name, number in numbers(CASES, None):
        if name == target:
            result = worker.ask({"target": target, "seed": SEED, "number": number})
            outcomes.add(result["outcome"])
            assert result["outcome"] in ("answered", "refused"), f"{target}-{SEED}-{number}: {result}"
    assert outcomes == {"answered", "refused"}, "damage that is always refused, or never, tries nothing"
