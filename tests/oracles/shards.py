"""The slow twin of a search over shards, on dense lists, one class after the other."""

from oracles.linear import dot


def find_top_classes(X, index, start, width):
    """Of all classes the best by start + product with the index, in order of number, and these sums."""
    found = []
    for row in X:
        sums = [s + dot(row, weights) for s, weights in zip(start, index, strict=True)]
        best = sorted(sorted(range(len(sums)), key=lambda c: (-sums[c], c))[:width])
        missing = width - len(best)
        found.append((best + [-1] * missing, [sums[c] for c in best] + [float("-inf")] * missing))
    return found


def search(X, shards, k, width):
    """The k best (class, score) of each document, of the `width` that are likeliest of those likeliest in their shards.

    shards: one list a shard of (largest weights, weights, bias), one a class.
    """
    found = []
    for row in X:
        likely, first = [], 0
        for shard in shards:
            chances = [(-(bias + dot(row, largest)), first + c) for c, (largest, _, bias) in enumerate(shard)]
            likely += sorted(chances)[:width]
            first += len(shard)
        classes = [c for shard in shards for c in shard]
        scored = [(-(classes[c][2] + dot(row, classes[c][1])), c) for _, c in sorted(likely)[:width]]
        found.append([(c, -score) for score, c in sorted(scored)[:k]])
    return found


def top_features(weights, most, faint):
    """Of the weights above zero the largest, none of them faint beside the first; the others as zeros."""
    least = max(faint * max(weights), 0)
    kept = sorted((w for w in weights if w > 0 and w >= least), reverse=True)[:most]
    return [w if kept and w >= kept[-1] else 0.0 for w in weights]
