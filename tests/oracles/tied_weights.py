"""The slow twin of tied mixture weights: plain EM over the left-out words of all units of a group.

A unit's size is the weight of its pairs (document, own label) whose documents have words, over the mean weight m of a pair. A
unit without one of its pairs belongs to the group (kind, estimates with data, ⌊log₂ of the size left⌋), and a group's weights
maximize, over its documents d with weight s_d,

    Σ_d s_d (mean over the words of d of ln Σ_i λ_i θ^i(w)) + m Σ_i ln λ_i

A unit takes the weights of the group whose size is nearest to its own; with `shrunk`, its weights λ then maximize

    Σ_d s_d (mean over the words of d of ln Σ_i λ_i θ^i(w)) + 100 m Σ_i λ_i^group ln λ_i

At last, if λ_0 / T_0 < 2 λ_1 / T_1, where T_i are the words behind an estimate, λ_0 and λ_1 with the same sum make both equal.
"""

import math

import numpy as np

from oracles.shrinkage import LEAST_UNIFORM, Corpus, Unit, estimates, layers_of, pairs_in, without

PRIOR_DOCUMENTS = 100
TINY = 1e-9


def counted(corpus: Corpus, held_out: set[int]) -> Corpus:
    """What estimates are made of."""
    return without(corpus, held_out)


def with_data(corpus: Corpus, unit: Unit, held_out: set[int]) -> list[int]:
    """The places of the estimates that have data: the unit's own and the uniform one always count."""
    theta = estimates(counted(corpus, held_out), layers_of(corpus, unit))
    return [i for i, row in enumerate(theta) if i == 0 or row.sum() > 0]


def heavy_pairs(corpus: Corpus, unit: Unit) -> list[int]:
    """The documents of a unit's pairs, where they have words and a weight."""
    return [d for d, _ in pairs_in(corpus, unit) if corpus.X[d].sum() > 0 and corpus.s[d] > 0]


def fitted_pairs(corpus: Corpus, unit: Unit, held_out: set[int]) -> list[int]:
    """The documents of the pairs that weights are fitted to."""
    return [d for d in heavy_pairs(corpus, unit) if not held_out or d in held_out]


def sizes(corpus: Corpus, unit: Unit, held_out: set[int], mean: float) -> tuple[float, float]:
    """The size of a unit, and without one of its pairs; 0 where that tells nothing."""
    own = [corpus.s[d] for d in heavy_pairs(corpus, unit) if d not in held_out]
    size = sum(own)
    left = size - size / max(1, len(own))
    if held_out:
        left = size if fitted_pairs(corpus, unit, held_out) else 0.0
    return size / mean, left / mean if left > TINY * size else 0.0


def mean_weight(corpus: Corpus, all_units: list[Unit], held_out: set[int]) -> float:
    found = [corpus.s[d] for kind, c in all_units if kind == "class" for d in fitted_pairs(corpus, (kind, c), held_out)]
    return sum(found) / len(found) if found else 1.0


def words(corpus: Corpus, unit: Unit, held_out: set[int]) -> list[tuple[float, np.ndarray]]:
    """The mass of every word of a unit's documents, one document s_d in all, and the estimates of the word without it."""
    layers, kept, found = layers_of(corpus, unit), with_data(corpus, unit, held_out), []
    for d in fitted_pairs(corpus, unit, held_out):
        theta = estimates(without(corpus, held_out or {d}), layers)[kept]
        for word, count in enumerate(corpus.X[d]):
            if count > 0:
                found.append((corpus.s[d] * count / corpus.X[d].sum(), theta[:, word]))
    return found


def maximize(evidence: list[tuple[float, np.ndarray]], prior: np.ndarray) -> np.ndarray:
    """Plain EM, until nothing can be gained."""
    lam = prior / prior.sum()
    for _ in range(200_000):
        expected = prior.astype(float)
        for mass, theta in evidence:
            expected = expected + mass * lam * theta / (lam @ theta)
        new = expected / expected.sum()
        gain = max(new[i] / lam[i] for i in range(len(lam)) if lam[i] > 0) - 1
        lam = new
        if gain <= 1e-11:
            break
    return lam


def size_class(size: float) -> int:
    return math.floor(math.log2(max(size, 1.0)) + TINY)


def nearest(known: list[int], size: int) -> int:
    """The nearest size, the larger of two that are equally near."""
    return sorted(known, key=lambda other: (abs(other - size), -other))[0]


def tied_weights(corpus: Corpus, all_units: list[Unit], shrunk: bool, held_out: set[int]) -> dict[Unit, np.ndarray]:
    """λ of every unit, from the unit itself to the uniform."""
    mean = mean_weight(corpus, all_units, held_out)
    size = {unit: sizes(corpus, unit, held_out, mean) for unit in all_units}
    kept = {unit: with_data(corpus, unit, held_out) for unit in all_units}
    evidence, groups = {}, {}
    for unit in all_units:
        evidence[unit] = words(corpus, unit, held_out)
        if size[unit][1] > 0:
            groups.setdefault((unit[0], len(kept[unit])), {}).setdefault(size_class(size[unit][1]), []).append(unit)
    fitted = {
        (depth, k): maximize([token for unit in some for token in evidence[unit]], np.full(depth[1], mean))
        for depth, by_size in groups.items()
        for k, some in by_size.items()
    }
    found = {}
    for unit in all_units:
        depth = unit[0], len(kept[unit])
        lam = np.full(depth[1], 1 / depth[1])
        if depth in groups:
            lam = fitted[depth, nearest(list(groups[depth]), size_class(size[unit][0]))]
        if shrunk and size[unit][1] > 0:
            lam = maximize(evidence[unit], PRIOR_DOCUMENTS * mean * lam)
        found[unit] = place(corpus, unit, ordered(lam, words_behind(corpus, unit, held_out)), kept[unit], held_out)
    return found


def words_behind(corpus: Corpus, unit: Unit, held_out: set[int]) -> list[float]:
    """The words behind the unit's own estimate, and behind each of the others that have data, but for the uniform one."""
    layers, weight = layers_of(corpus, unit), counted(corpus, held_out).s
    found = [sum(weight[d] * corpus.X[d].sum() for d, _ in pairs) for pairs in layers]
    return [found[0], *(total for total in found[1:] if total > 0)]


def ordered(lam: np.ndarray, totals: list[float]) -> np.ndarray:
    if len(totals) > 1 and totals[0] > 0 and lam[0] / totals[0] < 2 * lam[1] / totals[1]:
        both = lam[0] + lam[1]
        lam = lam.copy()
        lam[0], lam[1] = both * 2 * totals[0] / (2 * totals[0] + totals[1]), both * totals[1] / (2 * totals[0] + totals[1])
    return lam


def place(corpus: Corpus, unit: Unit, lam: np.ndarray, kept: list[int], held_out: set[int]) -> np.ndarray:
    """The weights of all estimates: 0 where there is no data, and at least a little for the uniform one."""
    theta = estimates(counted(corpus, held_out), layers_of(corpus, unit))
    whole = np.zeros(len(theta))
    whole[kept] = lam
    whole[0] *= theta[0].sum() > 0
    whole /= whole.sum()
    whole[-1] = max(whole[-1], LEAST_UNIFORM)
    return whole / whole.sum()
