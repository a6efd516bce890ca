"""Hierarchical Bayesian logistic regression by variational inference (hblr)."""
