"""Anderson's mixing against a slow version, which stores everything and has all rows at once."""

import numpy as np
import pytest

from ramify.learners.linear.graph_problem import RIDGE, WORSE, AndersonHistory, AndersonMixer


class Plain:
    """The next point as the head of the module says, from a list of all points and residuals since the last step back."""

    def __init__(self, depth, weights):
        self.depth, self.weights, self.seen, self.size = depth, weights[:, None], [], np.inf

    def next(self, point, residual):
        size = np.sqrt(np.sum(self.weights * residual**2))
        if self.seen and size > WORSE * self.size:
            back = self.seen[-1]
            self.seen = []
            return back[0] + back[1]
        self.seen, self.size = [*self.seen, (point, residual)][-self.depth - 1 :], size
        moves, turns = (np.diff([each[which] for each in self.seen], axis=0) for which in (0, 1))
        if not len(turns):
            return point + residual
        gram = np.array([[np.sum(self.weights * a * b) for b in turns] for a in turns])
        aims = [np.sum(self.weights * turn * residual) for turn in turns]
        gamma = np.linalg.solve(gram + RIDGE * np.trace(gram) * np.eye(len(gram)), aims)
        return point + residual - np.tensordot(gamma, moves + turns, 1)


def rows_of(array, owners):
    return [np.ascontiguousarray(array[owners == k]) for k in range(owners.max() + 1)]


@pytest.mark.parametrize("owners", [[0] * 6, [0, 1, 0, 2, 1, 2]], ids=["one owner", "three owners"])
@pytest.mark.parametrize("depth", [0, 1, 3])
def test_points_equal_those_of_the_slow_version_for_any_owners_of_rows(owners, depth):
    rng, owners = np.random.default_rng(0), np.array(owners)
    weights = rng.uniform(0.5, 2, size=6)
    plain, mixer = Plain(depth, weights), AndersonMixer()
    trails = [AndersonHistory(depth, weights[owners == k]) for k in range(owners.max() + 1)]
    n_back = 0
    for _ in range(25):
        point = rng.normal(size=(6, 4)).astype(np.float32)
        residual = (rng.uniform(0.4, 1.6) * rng.normal(size=(6, 4))).astype(np.float32)
        parts = zip(trails, rows_of(point, owners), rows_of(residual, owners), strict=True)
        gamma = mixer.next(np.sum([trail.add(*rows) for trail, *rows in parts], axis=0).tolist())
        n_back += gamma is None
        found = np.empty((6, 4))
        for k, trail in enumerate(trails):
            found[owners == k] = trail.step(gamma)
        np.testing.assert_allclose(found, plain.next(point.astype(float), residual.astype(float)), rtol=1e-4, atol=1e-4)
    assert 2 < n_back < 15


def test_a_linear_iteration_is_solved_in_as_many_steps_as_it_has_unknowns():
    rng = np.random.default_rng(1)
    A, b = 0.9 * np.linalg.qr(rng.normal(size=(3, 3)))[0].astype(np.float32), rng.normal(size=(3, 1)).astype(np.float32)
    trail, mixer, point = AndersonHistory(5, np.ones(3)), AndersonMixer(), np.zeros((3, 1), dtype=np.float32)
    for _ in range(4):
        point = trail.step(mixer.next(trail.add(point, A @ point + b - point)))
    np.testing.assert_allclose(point, np.linalg.solve(np.eye(3) - A, b), rtol=1e-3)
