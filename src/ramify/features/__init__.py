"""From text to the document matrix X."""

from ramify.features.columns import Cells, Column
from ramify.features.relevance import term_relevance
from ramify.features.selection import TermSelector
from ramify.features.transformer import Transformer
from ramify.features.union import Characters, FeatureUnion, Words
from ramify.features.vectorizer import Vectorizer
from ramify.features.vectors import Vectors

__all__ = ["Cells", "Characters", "Column", "FeatureUnion", "TermSelector", "Transformer", "Vectorizer", "Vectors", "Words"]
__all__ += ["term_relevance"]
