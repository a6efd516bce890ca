"""The bundled corpus: support requests to an electronics shop, written for this project."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ramify.data.corpus import Corpus
from ramify.data.documents import read_corpus
from ramify.taxonomy import Taxonomy, read_taxonomy

FOLDER = Path(__file__).parent / "electronics"


@dataclass(frozen=True, slots=True)
class Electronics:
    """The fixed split and the taxonomy."""

    train: Corpus
    test: Corpus
    taxonomy: Taxonomy


def load_electronics() -> Electronics:
    """Load the corpus: three levels, some requests at inner nodes, some with two labels.

    >>> shop = load_electronics()
    >>> shop.taxonomy.n_levels
    3
    """
    taxonomy = read_taxonomy(FOLDER / "taxonomy.txt")
    train, test = (read_corpus(FOLDER / f"{part}.csv", is_label=taxonomy.__contains__) for part in ("train", "test"))
    return Electronics(train, test, taxonomy)
