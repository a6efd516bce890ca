"""Naive Bayes at every node, by hand."""

import math


def log_softmax(parents, counts, own, document, alpha, fit_prior, sets=None):
    """ln P(node | parent) of every node that has documents, by loops over documents. sets: words by parent, or all."""
    alive = {a for labels in own for label in labels for a in _up(parents, label)}
    found = {}
    for parent in [-1, *range(len(parents))]:
        if parent >= 0 and parent not in alive:
            continue
        ways = [n for n in range(len(parents)) if parents[n] == parent and n in alive]
        stays = parent >= 0 and any(parent in labels for labels in own)
        if len(ways) + stays == 1 and ways:
            found[ways[0]] = 0.0
        if len(ways) + stays < 2:
            continue
        words = list(range(len(document))) if sets is None else list(sets.get(parent, []))
        joint = {w: _joint(parents, counts, own, document, alpha, fit_prior, words, w, False) for w in ways}
        if stays:
            joint["stays"] = _joint(parents, counts, own, document, alpha, fit_prior, words, parent, True)
        highest = max(joint.values())
        total = highest + math.log(sum(math.exp(j - highest) for j in joint.values()))
        found |= {w: joint[w] - total for w in ways}
    return found


def _joint(parents, counts, own, document, alpha, fit_prior, words, node, is_stay):
    times = [sum(label == node if is_stay else node in _up(parents, label) for label in labels) for labels in own]
    N = {w: sum(t * row[w] for t, row in zip(times, counts, strict=True)) for w in words}
    total = sum(N.values())
    n_words = max(1, len(words))
    score = math.log(sum(times)) if fit_prior else 0.0
    return score + sum(document[w] * math.log((alpha + N[w]) / (alpha * n_words + total)) for w in words)


def _up(parents, node):
    path = []
    while node >= 0:
        path.append(node)
        node = parents[node]
    return path
