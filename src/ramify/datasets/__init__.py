"""Documents: files of texts or vectors with labels, hold-outs, and the corpus that comes with Ramify."""

from ramify.datasets.corpus import BadRow, Corpus
from ramify.datasets.documents import read_corpus, stream_rows
from ramify.datasets.electronics import load_electronics
from ramify.datasets.holdout import hold_out

__all__ = ["BadRow", "Corpus", "hold_out", "load_electronics", "read_corpus", "stream_rows"]
