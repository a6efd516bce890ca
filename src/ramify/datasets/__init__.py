"""Documents: files of texts or vectors with labels, hold-outs, and the corpus that comes with Ramify."""

from ramify.datasets.cesa_bianchi import make_cesa_bianchi
from ramify.datasets.corpus import BadRow, Corpus, comparable_keys
from ramify.datasets.documents import read_corpus, stream_rows
from ramify.datasets.electronics import load_electronics
from ramify.datasets.holdout import hold_out
from ramify.datasets.newsgroups import add_hybrids, newsgroups_taxonomy, read_newsgroups
from ramify.datasets.parts import Parts, find_parts, is_several, open_parts
from ramify.datasets.synthetic import Problem, make_directory

__all__ = [
    "BadRow",
    "Corpus",
    "Parts",
    "Problem",
    "add_hybrids",
    "comparable_keys",
    "find_parts",
    "hold_out",
    "is_several",
    "load_electronics",
    "make_cesa_bianchi",
    "make_directory",
    "newsgroups_taxonomy",
    "open_parts",
    "read_corpus",
    "read_newsgroups",
    "stream_rows",
]
