"""Small problems for learners in which the answers to a document compete: any forest, labels at any node, one a document."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ramify import Taxonomy


@dataclass(frozen=True)
class Small:
    taxonomy: Taxonomy
    X: np.ndarray
    ends: list[int]
    weights: np.ndarray
    C: float

    @property
    def names(self):
        return [self.taxonomy.names[end] for end in self.ends]

    @property
    def parents(self):
        """As oracles take them: a list of none or one parent a node."""
        return [[] if parent < 0 else [int(parent)] for parent in self.taxonomy.parent]

    @property
    def costs(self):
        return self.C * self.weights

    def with_bias(self):
        """X as oracles take it."""
        return np.column_stack([self.X.astype(np.float64), np.ones(len(self.X))])


def draw_small(seed: int, roots: float = 0.25, costs: tuple[float, float] = (-2, 1.5)) -> Small:
    """A problem; some with documents that are empty or come twice, weights, and weights of zero."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    edges = [(f"n{i}", f"n{rng.integers(0, i)}" if i and rng.random() > roots else None) for i in range(n)]
    taxonomy = Taxonomy.from_edges(edges)
    n_docs, n_features = int(rng.integers(3, 14)), int(rng.integers(1, 5))
    X = rng.normal(size=(n_docs, n_features)).astype(np.float32)
    ends = rng.integers(0, n, size=n_docs)
    ends[:2] = rng.choice(n, size=2, replace=False)
    weights = np.ones(n_docs)
    if rng.random() < 0.3:
        X[rng.integers(0, n_docs)] = 0
        X[-1], ends[-1] = X[0], ends[0]
    if rng.random() < 0.3:
        weights = rng.integers(0, 4, size=n_docs) / 2
        weights[:2] = 1
    return Small(taxonomy, X, ends.tolist(), weights, float(10 ** rng.uniform(*costs)))
