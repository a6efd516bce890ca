"""Documents: files of texts or vectors with labels, splits, the bundled corpus, synthetic problems."""

from ramify.data.bundled import load_electronics
from ramify.data.corpus import BadRow, Corpus, comparable_keys, hold_out
from ramify.data.documents import read_corpus, stream_rows
from ramify.data.file_sets import FileSet, find_files, open_file_set
from ramify.data.synthetic import Problem, make_web_directory
from ramify.data.tables import is_file_set

__all__ = ["BadRow", "Corpus", "FileSet", "Problem", "comparable_keys", "find_files", "hold_out", "is_file_set"]
__all__ += ["load_electronics", "make_web_directory", "open_file_set", "read_corpus", "stream_rows"]
