"""Corpora that scikit-learn downloads; the only file that names its fetchers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from scipy.sparse import csr_array
from sklearn.datasets import fetch_20newsgroups
from sklearn.datasets import fetch_rcv1 as sklearn_rcv1

from experiments.readers.layout import Split
from experiments.readers.newsgroups import dotted_taxonomy
from experiments.readers.rcv1 import tree_of_codes
from ramify.data import Corpus
from ramify.errors import DataError, first_sentence
from ramify.taxonomy import most_specific

PARTS = ("train", "test")


def fetch_newsgroups() -> Split:
    """The 20 newsgroups by date, with all headers."""
    parts = [_ask("20 newsgroups", fetch_20newsgroups, subset=part, shuffle=False) for part in PARTS]
    names = list(parts[0].target_names)
    train, test = (Corpus("20 newsgroups", list(part.data), [[names[k]] for k in part.target]) for part in parts)
    return train, test, dotted_taxonomy(names)


def fetch_rcv1() -> Split:
    """RCV1-v2; topics lie below one another as their codes tell."""
    parts = [_ask("RCV1-v2", sklearn_rcv1, subset=part) for part in PARTS]
    taxonomy = tree_of_codes(parts[0].target_names)
    places = [list(parts[0].target_names).index(name) for name in taxonomy.names]
    corpora = []
    for part in parts:
        Y = most_specific(csr_array(part.target).astype(bool)[:, places], taxonomy)
        corpora.append(Corpus("RCV1-v2", csr_array(part.data).astype("float32"), [list(n) for n in taxonomy.decode(Y)]))
    return corpora[0], corpora[1], taxonomy


def _ask(title: str, fetch: Callable[..., Any], **settings: Any) -> Any:
    """What a fetcher gives; a download that fails is a DataError of one sentence."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it tells of every attempt
            return fetch(**settings)
    except (OSError, EOFError, ValueError, RuntimeError) as error:
        raise DataError(f"{title} could not be downloaded: {first_sentence(error).rstrip('.')}") from None
