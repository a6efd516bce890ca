"""The slow twin of multinomial naive Bayes: counts and logarithms, document by document."""

import math


def log_posteriors(
    counts: list[list[float]], own: list[set[int]], document: list[float], alpha: float = 1.0, fit_prior: bool = True
) -> dict[int, float]:
    """ln P(class | document) for every class with a document of its own; a document counts in each of its classes."""
    classes = sorted(set().union(*own))
    n_words = len(document)
    joint = {}
    total = sum(len(labels) for labels in own)
    for c in classes:
        members = [row for row, labels in zip(counts, own, strict=True) if c in labels]
        word_counts = [sum(row[w] for row in members) for w in range(n_words)]
        prior = len(members) / total if fit_prior else 1 / len(classes)
        joint[c] = math.log(prior)
        for w in range(n_words):
            theta = (word_counts[w] + alpha) / (sum(word_counts) + alpha * n_words)
            joint[c] += document[w] * math.log(theta)
    top = max(joint.values())
    log_evidence = top + math.log(sum(math.exp(value - top) for value in joint.values()))
    return {c: value - log_evidence for c, value in joint.items()}
