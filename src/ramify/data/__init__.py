"""Documents: files of texts or vectors with labels, hold-outs, and the corpus that comes with Ramify."""

from ramify.data.bundled import load_electronics
from ramify.data.corpus import BadRow, Corpus, comparable_keys
from ramify.data.documents import read_corpus, stream_rows
from ramify.data.parts import Parts, find_parts, is_several, open_parts
from ramify.data.splits import hold_out
from ramify.data.synthetic import Problem, make_directory

__all__ = [
    "BadRow",
    "Corpus",
    "Parts",
    "Problem",
    "comparable_keys",
    "find_parts",
    "hold_out",
    "is_several",
    "load_electronics",
    "make_directory",
    "open_parts",
    "read_corpus",
    "stream_rows",
]
