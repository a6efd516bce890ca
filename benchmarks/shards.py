"""Answers from a model in shards: ``python benchmarks/shards.py --classes 100000 --shards 16``.

Makes a directory of so many classes with short documents, takes the mean documents of its nodes for weights (nothing is
trained: this measures answers, not their quality), saves it in shards, and tells how long loading takes, how much memory
it needs beside the files, and how many documents a second one thread answers. Needs Linux.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np
from scipy.sparse import csr_array, diags_array, load_npz, save_npz

import ramify
from ramify.data import Problem, make_web_directory
from ramify.features import Vectors
from ramify.learners import RecursiveSVM
from ramify.learners.linear.candidates import largest_of_rows
from ramify.learners.linear.learner import Gap
from ramify.learners.linear.taxonomy_ties import Forest, tie_along_paths
from ramify.learners.linear.weights import Weights
from ramify.workflows import Predictor

DOCUMENTS_A_CLASS = 3
WORDS = 30  # of a typical document
KEPT = 400  # weights of a unit at most
OF_CLASSES, OF_INNER_UNITS = 2.0, 0.3  # how much their means count
ASKED, BATCH = 10_000, 500


def main() -> None:
    """Make and save a model; another process, whose memory holds nothing else, loads it, answers, and tells."""
    given = parse()
    if given.model is not None:
        predict_with(given.model)
        return
    made = make_web_directory(given.classes, DOCUMENTS_A_CLASS * given.classes, n_words=WORDS, seed=1)
    asked = made.X[np.random.default_rng(0).integers(0, made.X.shape[0], ASKED)]
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        classifier_of(made).save(model, shards=given.shards)
        save_npz(Path(folder) / "asked.npz", asked)
        megabytes = sum(file.stat().st_size for file in model.glob("weights-*")) / 1e6
        size = f"{megabytes:,.0f} MB, {asked.nnz / ASKED:.0f} words a document"
        print(f"{given.classes:,} classes in {given.shards} shards, {size}", flush=True)
        del made
        subprocess.run([sys.executable, __file__, "--model", model], check=True)


def predict_with(model: Path) -> None:
    """Load, predict, report."""
    asked = csr_array(load_npz(model.parent / "asked.npz"))
    before, began = anonymous(), perf_counter()
    classifier = ramify.load(model)
    loading = perf_counter() - began
    classifier.use_threads(1)
    predictor = Predictor(classifier)
    predictor.predict(asked[:BATCH])
    began = perf_counter()
    for start in range(0, ASKED, BATCH):
        predictor.predict(asked[start : start + BATCH])
    speed = ASKED / (perf_counter() - began)
    print(f"loading {loading:.1f} s, {anonymous() - before:,.0f} MB beside the files, {speed:,.0f} documents/s")


def parse() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--classes", type=int, default=100_000)
    parser.add_argument("--shards", type=int, default=16)
    parser.add_argument("--model", type=Path, help="Only predict with this model, with documents in asked.npz beside it.")
    return parser.parse_args()


def classifier_of(made: Problem) -> ramify.TextClassifier:
    """A classifier of vectors whose weights were never trained."""
    forest = tie_along_paths(made.taxonomy, np.flatnonzero(made.taxonomy.is_leaf))
    learner = RecursiveSVM(made.taxonomy)
    learner.weights_, learner.taxonomy_, learner.form_ = mean_weights(made, forest), made.taxonomy, "matrix"
    learner.C_, learner.gap_, learner.is_multi_label_, learner.n_features_in_ = 1.0, Gap(1.0, 1.0, 1), False, made.X.shape[1]
    learner._set_classes(forest.class_nodes)
    few = slice(0, 20)
    classifier = ramify.TextClassifier("hr-svm", made.taxonomy, features=Vectors())
    classifier.fit(made.X[few], made.taxonomy.decode(made.Y[few]))
    classifier.learner_ = learner
    return classifier


def mean_weights(made: Problem, forest: Forest) -> Weights:
    """For every unit the largest words of the mean of its documents."""
    own = csr_array(made.Y[:, forest.node].T.astype(np.float32))
    scale = np.where(forest.class_of >= 0, OF_CLASSES, OF_INNER_UNITS) / np.maximum(np.diff(own.indptr), 1)
    deltas = largest_of_rows(csr_array(diags_array(scale.astype(np.float32)) @ own @ made.X), KEPT)
    deltas.sort_indices()
    bias, units = np.where(forest.parent < 0, -1.0, 0.0), np.flatnonzero(forest.class_of >= 0)
    return Weights(deltas.astype(np.float32), bias, forest.parent, units.astype(np.int64))


def anonymous() -> float:
    """Megabytes of memory that belong to no file."""
    found = re.search(r"RssAnon:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) / 1e3 if found else float("nan")


if __name__ == "__main__":
    main()
