"""Documents: files of texts or vectors with labels, hold-outs, and the corpus that comes with Ramify."""

from ramify.datasets.corpus import BadRow, Corpus
from ramify.datasets.documents import read_corpus, stream_rows
from ramify.datasets.electronics import load_electronics
from ramify.datasets.holdout import hold_out
from ramify.datasets.synthetic import Problem, make_directory

__all__ = [
    "BadRow",
    "Corpus",
    "Problem",
    "hold_out",
    "load_electronics",
    "make_directory",
    "read_corpus",
    "stream_rows",
]
