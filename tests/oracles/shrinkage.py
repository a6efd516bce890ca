"""The slow twin of naive Bayes with shrinkage: for every document left out, all estimates are counted anew.

A unit is a pair: ("class", c) has the documents whose own label is c, ("inner", v) those with own labels at or below v,
where other classes lie below v, and ("all", -1) all, where several roots have classes. The words of a unit are counted
once for each pair (document, own label) in it. Along a path of units u_0, u_1, ..., upward,

    θ^0 = N_u0 / T_u0,   θ^i = (N_ui − N_u(i−1)) / (T_ui − T_u(i−1)),   and last 1 / V;   all zeros where there is no data

    θ̌ = Σ_i λ_i θ^i,   λ by EM on words whose document took no part in θ

N_u: words of a unit, T_u: their sum, V: the number of words that there are, λ: mixture weights.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from oracles.taxonomy import ancestors, children, descendants

Unit = tuple[str, int]
ALL: Unit = ("all", -1)
LEAST_UNIFORM = 1e-9


@dataclass(frozen=True)
class Corpus:
    """parents: those of each node, X: documents × words, own: most specific labels, s: the weight of each document."""

    parents: list[list[int]]
    X: np.ndarray
    own: list[set[int]]
    s: np.ndarray


def without(corpus: Corpus, documents: set[int]) -> Corpus:
    """The same units, with documents that count for nothing."""
    return replace(corpus, s=np.array([0.0 if d in documents else weight for d, weight in enumerate(corpus.s)]))


# ---- units ----------------------------------------------------------------------------------------------------------


def classes(corpus: Corpus) -> list[int]:
    return sorted(set().union(*corpus.own))


def has_classes_below(corpus: Corpus, node: int) -> bool:
    return any(c in descendants(corpus.parents, node) for c in classes(corpus))


def live_roots(corpus: Corpus) -> list[int]:
    roots = [node for node, above in enumerate(corpus.parents) if not above]
    return [root for root in roots if root in classes(corpus) or has_classes_below(corpus, root)]


def top_of(corpus: Corpus) -> Unit:
    """Where the walk down begins; a single root has classes below it, since there are at least two."""
    roots = live_roots(corpus)
    return ALL if len(roots) > 1 else ("inner", roots[0])


def units(corpus: Corpus) -> list[Unit]:
    inner = [("inner", node) for node in range(len(corpus.parents)) if has_classes_below(corpus, node)]
    return [("class", c) for c in classes(corpus)] + inner


def units_below(corpus: Corpus, unit: Unit) -> list[Unit]:
    """The children of an inner unit: its own class, the classes below it, the inner units below it."""
    kind, node = unit
    nodes = live_roots(corpus) if kind == "all" else children(corpus.parents, node)
    own = [("class", node)] if node in classes(corpus) else []
    ends = [("class", n) for n in nodes if n in classes(corpus) and not has_classes_below(corpus, n)]
    return own + ends + [("inner", n) for n in nodes if has_classes_below(corpus, n)]


def classes_in(corpus: Corpus, unit: Unit) -> set[int]:
    kind, node = unit
    if kind == "class":
        return {node}
    if kind == "all":
        return set(classes(corpus))
    return {c for c in classes(corpus) if c == node or c in descendants(corpus.parents, node)}


def path_of(corpus: Corpus, unit: Unit) -> list[Unit]:
    """The unit and all units above it."""
    kind, node = unit
    path = [unit]
    if kind == "class" and has_classes_below(corpus, node):
        path.append(("inner", node))
    path += [("inner", above) for above in sorted(ancestors(corpus.parents, node), reverse=True)]  # the nearest first
    return [*path, ALL] if len(live_roots(corpus)) > 1 else path


# ---- estimates ------------------------------------------------------------------------------------------------------


def pairs_in(corpus: Corpus, unit: Unit) -> list[tuple[int, int]]:
    """The pairs (document, own label) of a unit."""
    inside = classes_in(corpus, unit)
    return [(d, label) for d, labels in enumerate(corpus.own) for label in sorted(labels) if label in inside]


def layers_of(corpus: Corpus, unit: Unit) -> list[list[tuple[int, int]]]:
    """The pairs that each unit of the path adds to those of the unit before it."""
    layers, counted = [], []
    for here in path_of(corpus, unit):
        pairs = pairs_in(corpus, here)
        layers.append([pair for pair in pairs if pair not in counted])
        counted = pairs
    return layers


def estimates(corpus: Corpus, layers: list[list[tuple[int, int]]]) -> np.ndarray:
    """θ^i of every word, estimates × words; the uniform last."""
    n_words = corpus.X.shape[1]
    thetas = []
    for pairs in layers:
        counts = np.zeros(n_words)
        for d, _ in pairs:
            counts += corpus.s[d] * corpus.X[d]
        thetas.append(counts / counts.sum() if counts.sum() > 0 else counts)
    return np.array([*thetas, np.full(n_words, 1 / n_words)])


# ---- mixture weights ------------------------------------------------------------------------------------------------


def left_out_words(corpus: Corpus, unit: Unit, held_out: set[int] | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The mass of every word of every document of a unit, and that word's estimates without the document.

    held_out: documents that take no part in any estimate, and whose words alone count; None: each document in its turn.
    Where none of a unit's documents is held out, it is each of them in its turn, without those held out elsewhere.
    """
    if held_out is not None and not any(d in held_out for d, _ in pairs_in(corpus, unit)):
        return left_out_words(without(corpus, held_out), unit)
    layers = layers_of(corpus, unit)
    masses, thetas = [], []
    for d, _ in pairs_in(corpus, unit):
        if held_out is None or d in held_out:
            theta = estimates(without(corpus, {d} if held_out is None else held_out), layers)
            for word in range(corpus.X.shape[1]):
                if corpus.s[d] * corpus.X[d, word] > 0:
                    masses.append(corpus.s[d] * corpus.X[d, word])
                    thetas.append(theta[:, word])
    return np.array(masses), np.array(thetas).reshape(len(masses), len(layers) + 1)


def log_likelihood(lam: np.ndarray, masses: np.ndarray, thetas: np.ndarray) -> float:
    """The mean log-probability of a word."""
    return float(masses @ np.log(thetas @ lam) / masses.sum())


def gains(lam: np.ndarray, masses: np.ndarray, thetas: np.ndarray) -> np.ndarray:
    """g_i; no weights have a log-likelihood above the present one plus max g − 1."""
    return (masses / (thetas @ lam)) @ thetas / masses.sum()


def em_steps(masses: np.ndarray, thetas: np.ndarray, tol: float, max_iter: int) -> list[np.ndarray]:
    """The weights of every step of EM, from equal ones on."""
    steps = [np.full(thetas.shape[1], 1 / thetas.shape[1])]
    while len(steps) <= max_iter:
        g = gains(steps[-1], masses, thetas)
        if g.max() - 1 <= tol:
            break
        beta = steps[-1] * g
        steps.append(beta / beta.sum())
    return steps


def weights(
    corpus: Corpus, unit: Unit, held_out: set[int] | None = None, tol: float = 1e-6, max_iter: int = 1000
) -> np.ndarray:
    """λ of a unit, from the unit itself to the uniform."""
    masses, thetas = left_out_words(corpus, unit, held_out)
    if len(masses):
        lam = em_steps(masses, thetas, tol, max_iter)[-1]
    else:
        theta = estimates(without(corpus, held_out or set()), layers_of(corpus, unit))
        lam = np.array([1.0 if any(row > 0) else 0.0 for row in theta])
        lam /= lam.sum()
    lam = np.array([*lam[:-1], max(lam[-1], LEAST_UNIFORM)])
    return lam / lam.sum()


def mixed(corpus: Corpus, unit: Unit, lam: np.ndarray, held_out: set[int] | None = None) -> np.ndarray:
    """θ̌ of a unit."""
    return lam @ estimates(without(corpus, held_out or set()), layers_of(corpus, unit))


def learn(corpus: Corpus, held_out: set[int] | None = None, tol: float = 1e-6, max_iter: int = 1000) -> dict[Unit, np.ndarray]:
    """θ̌ of every class and every inner unit."""
    return {unit: mixed(corpus, unit, weights(corpus, unit, held_out, tol, max_iter), held_out) for unit in units(corpus)}


# ---- classifying ----------------------------------------------------------------------------------------------------


def priors(corpus: Corpus, fit_prior: bool) -> dict[int, float]:
    """P(c): the share of the weight of all pairs; never quite 0."""
    known = classes(corpus)
    if not fit_prior:
        return {c: 1 / len(known) for c in known}
    weight = {c: sum(corpus.s[d] for d, _ in pairs_in(corpus, ("class", c))) for c in known}
    smallest = np.finfo(np.float64).tiny
    return {c: max(weight[c] / max(sum(weight.values()), smallest), smallest) for c in known}


def score(corpus: Corpus, theta: dict[Unit, np.ndarray], unit: Unit, x: np.ndarray, fit_prior: bool) -> float:
    """ln P(unit) + Σ_w x_w ln θ̌(w)."""
    prior = priors(corpus, fit_prior)
    words = sum(count * math.log(theta[unit][word]) for word, count in enumerate(x) if count > 0)
    return math.log(sum(prior[c] for c in classes_in(corpus, unit))) + words


def descend(
    corpus: Corpus, theta: dict[Unit, np.ndarray], x: np.ndarray, fit_prior: bool, branches: int
) -> tuple[set[int], float]:
    """The classes reached by the best branches, and the least gap between a child kept and one passed over."""
    reached, gap, waiting = set(), math.inf, [top_of(corpus)]
    while waiting:
        below = units_below(corpus, waiting.pop())
        value = {unit: score(corpus, theta, unit, x, fit_prior) for unit in below}
        ranked = sorted(below, key=lambda unit: -value[unit])  # stable: of equal ones the first
        kept, passed = ranked[:branches], ranked[branches:]
        if passed:
            gap = min(gap, value[kept[-1]] - value[passed[0]])
        reached |= {node for kind, node in kept if kind == "class"}
        waiting += [unit for unit in kept if unit[0] == "inner"]
    return reached, gap


def log_posteriors(
    corpus: Corpus, theta: dict[Unit, np.ndarray], x: np.ndarray, fit_prior: bool = True, branches: int | None = None
) -> dict[int, float]:
    """ln P(class | document) of every class; −∞ where the walk does not come."""
    reached = set(classes(corpus)) if branches is None else descend(corpus, theta, x, fit_prior, branches)[0]
    value = {c: score(corpus, theta, ("class", c), x, fit_prior) for c in reached}
    highest = max(value.values())
    total = highest + math.log(sum(math.exp(v - highest) for v in value.values()))
    return {c: value[c] - total if c in reached else -math.inf for c in classes(corpus)}
