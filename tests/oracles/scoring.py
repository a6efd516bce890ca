"""The slow twin of the scoring kernel."""


def score_rows(X: list[list[float]], weights: list[list[float]], bias: list[float]) -> list[list[float]]:
    """bias + row · weights, for every row and class."""
    return [[b + sum(x * w[c] for x, w in zip(row, weights, strict=True)) for c, b in enumerate(bias)] for row in X]
