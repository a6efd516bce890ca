"""XGBoost's trees of one split: ``python -m peers.xgboost_stumps FOLDER --threads 2 --rounds 100``.

FOLDER holds train.npz and test.npz, documents × terms, and labels.npy: a class for each document, or documents × classes of 0
and 1. Each line on the standard input, ``train`` or ``predict``, is answered by one of JSON; what is predicted goes to
predicted.npy, chances of documents × classes.
"""

import argparse
import json
import sys
from importlib.metadata import version
from pathlib import Path
from time import perf_counter

import numpy as np
import xgboost
from scipy.sparse import load_npz

STUMPS = {"tree_method": "hist", "max_depth": 1, "multi_strategy": "one_output_per_tree"}


def main() -> None:
    """Answer requests until there are no more."""
    given = _parse()
    X, Z = (load_npz(given.folder / f"{part}.npz") for part in ("train", "test"))
    y = np.load(given.folder / "labels.npy")
    settings = {**STUMPS, **_objective(y), "nthread": given.threads}
    model = None
    for request in sys.stdin:
        is_training, start = request.strip() == "train", perf_counter()
        if is_training:
            model = xgboost.train(settings, xgboost.QuantileDMatrix(X, label=y, nthread=given.threads), given.rounds)
        else:
            chances = model.predict(xgboost.DMatrix(Z, nthread=given.threads))
        answer = {"seconds": perf_counter() - start, "version": version("xgboost")}
        if not is_training:
            np.save(given.folder / "predicted.npy", chances)
        print(json.dumps(answer), flush=True)


def _objective(y):
    if y.ndim == 1:
        return {"objective": "multi:softprob", "num_class": int(y.max()) + 1}
    return {"objective": "binary:logistic"}


def _parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=100)
    return parser.parse_args()


if __name__ == "__main__":
    main()
