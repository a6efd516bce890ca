"""How many labels documents have: on this depends which rule decides, and how probabilities are calibrated."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from ramify.taxonomy import Taxonomy, most_specific

SEVERAL = 0.05  # the share of documents with several labels from which answers may have several, too


def share_with_several(Y: csr_array, taxonomy: Taxonomy) -> float:
    """The share of documents that have more than one most specific label."""
    return float(np.mean(np.diff(most_specific(Y, taxonomy).indptr) > 1))


def have_one_each(Y: csr_array, taxonomy: Taxonomy) -> bool:
    """Whether nearly all documents have just one most specific label."""
    return float(np.mean(np.diff(most_specific(Y, taxonomy).indptr) == 1)) > 1 - SEVERAL
