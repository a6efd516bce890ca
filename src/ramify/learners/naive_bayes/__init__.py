"""Naive Bayes: multinomial, with shrinkage along the hierarchy, and top-down (pachinko)."""
