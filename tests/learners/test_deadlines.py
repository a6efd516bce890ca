"""Every system's training can be broken off, and tells so often enough that it ends soon after its time."""

import pytest

import ramify
from ramify.parallel import OutOfTime, deadline_at, single_stage
from ramify.systems import SYSTEMS


@pytest.mark.parametrize("system", sorted(SYSTEMS))
def test_training_is_broken_off_once_time_is_up(shop, system):
    few = shop.train.take([i for i, labels in enumerate(shop.train.labels) if len(labels) == 1][:200])
    asked = []

    def clock():
        asked.append(None)
        return len(asked)

    def train():
        return ramify.TextClassifier(system, shop.taxonomy, calibrate=False).fit(few.documents, few.labels)

    with single_stage("training"), deadline_at(1e9, clock):
        train()
    n_asked = len(asked)
    assert n_asked >= 3  # when words are read, when something is learnt, and again until it is
    asked.clear()
    with pytest.raises(OutOfTime), single_stage("training"), deadline_at(n_asked // 2, clock):
        train()
    assert len(asked) == n_asked // 2 + 1
