"""From text to the document matrix X."""

from ramify.features.vectorizer import Vectorizer
from ramify.features.vectors import Vectors

__all__ = ["Vectorizer", "Vectors"]
