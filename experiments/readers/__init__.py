"""Corpora in the layouts in which they were published."""
