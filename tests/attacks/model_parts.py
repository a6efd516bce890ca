"""Attacks on model files: every part of a model of every system is damaged, and its hashes are put right again.

A damaged model must load and answer with finite probabilities, or be refused in one sentence.
"""

from __future__ import annotations

import copy
import hashlib
import json
import pickle
import shutil
from collections.abc import Callable
from dataclasses import asdict, is_dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from safetensors.numpy import save
from scipy.sparse import csr_array
from sklearn.base import clone

from attacks import edits
from attacks.edits import Rng
from ramify import Taxonomy, TextClassifier, decisions, learners, load
from ramify.data import Corpus
from ramify.errors import InputError, ModelError, RamifyError
from ramify.features import FeatureUnion, TermSelector, Vectorizer, Vectors
from ramify.features.union import Characters, Words
from ramify.learners.linear import dual_solver
from ramify.persistence import read_model
from ramify.persistence.model_directory import CHECKSUM
from ramify.systems import SYSTEMS
from ramify.workflows import PredictOptions, Predictor, train_classifier, update

PATHS = ("a/b", "a/c", "d/e", "d/f/g", "d/f/h", "i")
NEVER = "this case cannot be made"
QUESTIONS = ("red b1 b2 box w7", "word of no class", "")

# ---- models to damage -------------------------------------------------------------------------------------------------------


def documents(n: int, is_multi_label: bool = False, paths: Any = PATHS, seed: int = 0) -> tuple[list[str], list[list[str]]]:
    """Texts with words of their classes and others."""
    rng = np.random.default_rng(seed)
    texts, labels = [], []
    for k in range(n):
        mine = [paths[k % len(paths)]] + ([paths[(k // 2 + 1) % len(paths)]] if is_multi_label and k % 3 == 0 else [])
        words = [f"{path[-1]}{rng.integers(3)}" for path in mine for _ in range(3)]
        rare = [f"w{k}" for k in rng.integers(300, size=4)]  # with few features, another solver would be at work
        texts.append(" ".join([*words, *rng.choice(["red", "box", "new", "old", "big"], 3), *rare]))
        labels.append(sorted(set(mine)))
    return texts, labels


def diamond() -> Taxonomy:
    """A DAG of which one node has two parents."""
    edges = [
        ("a", None),
        ("b", "a"),
        ("c", "a"),
        ("d", None),
        ("e", "d"),
        ("f", "d"),
        ("f", "a"),
        ("g", "f"),
        ("h", "f"),
        ("i", None),
    ]
    return Taxonomy.from_edges(edges)


def _trained(
    system: str,
    n: int = 36,
    is_multi_label: bool = False,
    is_dag: bool = False,
    numbers: bool = False,
    are_vectors: bool = False,
    **options: Any,
) -> TextClassifier:
    taxonomy: Any = diamond() if is_dag else Taxonomy.from_paths(PATHS)
    options = {name: value() if callable(value) else value for name, value in {"calibrate": False, **options}.items()}
    texts, labels = documents(n, is_multi_label)
    if is_dag:
        labels = [[path[-1] for path in row] for row in labels]
    if are_vectors:
        texts = Vectorizer(hashing=32).fit_transform(texts)
    if numbers:
        taxonomy = Taxonomy.from_edges([("1", None), ("2", "1"), ("3", "1"), ("4", None), ("5", "4"), ("6", "4")])
        labels = [[int("235656"[PATHS.index(row[0])])] for row in labels]
    return TextClassifier(system, taxonomy, n_jobs=1, **options).fit(
        texts, labels if is_multi_label else [row[0] for row in labels]
    )


def _evaluated() -> TextClassifier:
    taxonomy = Taxonomy.from_paths(PATHS)
    train, test = (Corpus("made", *documents(36, seed=seed)) for seed in (1, 2))
    return train_classifier(TextClassifier("nb", taxonomy, calibrate=False, n_jobs=1), train, test).classifier


def _fast() -> TextClassifier:
    # a few documents are otherwise compared with all classes
    with patch.object(dual_solver, "CANDIDATES", 1), patch.object(dual_solver, "SMALL", 0):
        return _trained("hr-svm", n=120, learner=partial(learners.RecursiveSVM, mode="fast"))


_QUICK = {  # learners that would train longer than needed
    "hblr": partial(learners.BayesianLogistic, max_iter=3, tol=0.5),
    "ot": partial(learners.OrthogonalTransfer, max_iter=20, tol=0.5),
    "adaboost-mh": partial(learners.AdaBoostMH, n_rounds=8),
    "treeboost-mh": partial(learners.TreeBoostMH, n_rounds=4),
}

BASES: dict[str, Callable[[], TextClassifier]] = {
    name: partial(_trained, name, **({"learner": _QUICK[name]} if name in _QUICK else {})) for name in SYSTEMS
}
BASES |= {
    "calibrated": partial(_trained, "nb", n=120, calibrate=True),
    "calibrated, multi-label": partial(_trained, "svm", n=120, is_multi_label=True, calibrate=True),
    "guarantee": partial(_trained, "nb", n=160, calibrate=True, keep_back=0.25),
    "multi-label": partial(_trained, "hr-svm", is_multi_label=True),
    "dag, svm": partial(_trained, "hr-svm", is_dag=True),
    "dag, path-svm": partial(_trained, "path-svm", is_dag=True, keep_training_data=True),
    "dag, nb": partial(_trained, "shrinkage-nb", is_dag=True),
    "dag, multi-label": partial(_trained, "isotonic-svm", is_dag=True, is_multi_label=True),
    "hashing": partial(_trained, "svm", features=partial(Vectorizer, hashing=64)),
    "hashing, selected": partial(_trained, "nb", features=partial(Vectorizer, hashing=64, weighting="counts"),
                                 selector=partial(TermSelector, 20, measure="chi2")),
    "union": partial(_trained, "lr", features=lambda: FeatureUnion([Words(), Characters(2, 3, hashing=128)], [1.0, 0.5])),
    "stop words": partial(_trained, "nb", features=lambda: Vectorizer(weighting="counts", stop_words=["red"], stemmer="english")),
    "fast": _fast,
    "word sets": partial(_trained, "pachinko-nb", learner=partial(learners.PachinkoNaiveBayes, n_words=5)),
    "branches": partial(_trained, "shrinkage-nb", learner=partial(learners.ShrinkageNaiveBayes, branches=2)),
    "sigmoid": partial(_trained, "b-svm", learner=partial(learners.NodeClassifiers, calibration="sigmoid")),
    "isotonic curves": partial(_trained, "h-svm", learner=partial(learners.NodeClassifiers, calibration="isotonic")),
    "thresholds": partial(_trained, "svm", is_multi_label=True, n=120, decision=decisions.SCut),
    "costs": partial(_trained, "b-svm", decision=lambda: decisions.MinimizeHLoss(costs={"a": 2.0})),
    "vectors": partial(_trained, "svm", are_vectors=True, features=Vectors),
    "integers": partial(_trained, "nb", numbers=True),
    "report": _evaluated,
}  # fmt: skip
BASES |= {
    f"kept, {name}": partial(_trained, name, keep_training_data=True, **({"learner": _QUICK[name]} if name in _QUICK else {}))
    for name in ("svm", "lr", "hr-svm", "hr-lr", "path-svm", "td-svm", "h-svm", "hsvm", "nb", "adaboost-mh", "ensemble")
}  # fmt: skip
SHARDED = {"shards": ("svm", 3), "shards, tree": ("hr-svm", 2), "shards, fast": ("fast", 2)}


def prepare(folder: Path) -> None:
    """Train every model once."""
    for name, make in BASES.items():
        made = make()
        made.save(folder / name)
        for sharded, (base, shards) in SHARDED.items():
            if base == name:
                made.save(folder / sharded, shards=shards)


@cache
def files_of(model: Path) -> dict[str, bytes]:
    """The files of a model."""
    return {path.name: path.read_bytes() for path in sorted(model.iterdir())}


@cache
def parts_of(model: Path) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """JSON documents and arrays of a model, by file."""
    stored, files = read_model(model), files_of(model)
    values = {name: json.loads(data) for name, data in files.items() if name.endswith(".json")}
    names = [name for name in files if name.endswith(".safetensors") and "-" in name]
    arrays = {name: dict(shard.arrays) for name, shard in zip(names, stored.shards, strict=True)}
    return values, arrays | ({"weights.safetensors": dict(stored.arrays)} if stored.arrays else {})


# ---- cases ------------------------------------------------------------------------------------------------------------------


def make(rng: Rng, folder: Path) -> dict[str, Any]:
    """A random case: a model and one or more changes of its files."""
    base = edits.pick(rng, [*BASES, *SHARDED])
    values, arrays = parts_of(folder / base)
    n = 1 if rng.random() < 0.7 else int(rng.integers(2, 5))
    return {"model": base, "edits": [_random_edit(rng, values, arrays, files_of(folder / base)) for _ in range(n)]}


def _random_edit(rng: Rng, values: dict[str, Any], arrays: dict[str, Any], files: dict[str, bytes]) -> dict[str, Any]:
    kind = rng.random()
    if kind < 0.55 and arrays:
        file = edits.pick(rng, sorted(arrays))
        return {"file": file, **edits.random_array_edit(rng, arrays[file])}
    if kind < 0.9:
        file = edits.pick(rng, sorted(values) + ["manifest.json"] * 2)
        return {"file": file, **edits.random_json_edit(rng, values[file], edits.paths_in(values[file]))}
    file = edits.pick(rng, sorted(files))
    if kind < 0.96 and file in arrays:  # the header of an array file
        header = json.loads(files[file][8 : 8 + int.from_bytes(files[file][:8], "little")])
        return {"file": file, "header": True, **edits.random_json_edit(rng, header, edits.paths_in(header))}
    return {"file": file, **edits.random_byte_edit(rng, len(files[file]))}


def write(case: dict[str, Any], folder: Path, target: Path) -> None:
    """Write the damaged model of a case, with the right hashes of its files."""
    values, arrays = ({name: dict(part) for name, part in parts.items()} for parts in parts_of(folder / case["model"]))
    files = dict(files_of(folder / case["model"]))
    for edit in case["edits"]:
        name = edit["file"]
        if "array" in edit:
            if edit["array"] not in parts_of(folder / case["model"])[1][name]:
                raise KeyError(f"the model {case['model']!r} has no array {edit['array']!r}")
            edits.edit_array(arrays[name], edit)
            files[name] = save({key: np.asarray(array, order="C") for key, array in arrays[name].items()})
        elif "header" in edit:
            files[name] = _with_header(files[name], edit)
        elif "json" in edit:
            values[name] = edits.edit_json(values[name], edit)
            files[name] = edits.render_json(values[name])
        else:
            files[name] = edits.edit_bytes(files[name], edit)
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    manifest = values["manifest.json"]
    if any(edit["file"] != "manifest.json" for edit in case["edits"]) and isinstance(manifest, dict):
        listed = manifest.get("files")
        for name, entry in listed.items() if isinstance(listed, dict) else ():
            if name in files and isinstance(entry, dict):
                entry |= {"bytes": len(files[name]), "sha256": hashlib.sha256(files[name]).hexdigest()}
        files["manifest.json"] = edits.render_json(manifest)
    files["manifest.json"] = _sealed(files["manifest.json"])
    for name, data in files.items():
        (target / name).write_bytes(data)


def _sealed(manifest: bytes) -> bytes:
    """A manifest with the hash of itself at its end; one that is no JSON object stays as it is."""
    try:
        values = json.loads(manifest)  # literals and all
        values.pop("sha256", None)
        body = json.dumps(values, ensure_ascii=False).removesuffix("}").encode()
    except (ValueError, RecursionError, AttributeError, TypeError):
        return manifest
    return body + CHECKSUM % hashlib.sha256(body).hexdigest().encode()


def _with_header(data: bytes, edit: dict[str, Any]) -> bytes:
    length = int.from_bytes(data[:8], "little")
    try:
        header = edits.render_json(edits.edit_json(json.loads(data[8 : 8 + length]), edit))
    except (ValueError, RecursionError):  # damaged by an edit before
        return data
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + data[8 + length :]


def attempt(case: dict[str, Any], folder: Path, scratch: Path) -> str:
    """Load the model of a case and ask it for answers; returns what happened, and raises whatever is not clear."""
    write(case, folder, scratch / "model")
    try:
        classifier = load(scratch / "model")
    except ModelError as error:
        return f"refused: {error}"
    classifier.use_threads(1)
    try:
        use(classifier)
        use_again(classifier, scratch)
    except (InputError, ModelError) as error:
        return f"refused: {error}"
    return "answered"


def use(classifier: TextClassifier) -> None:
    """Ask for labels, probabilities and reasons; train again from what is kept."""
    questions: Any = QUESTIONS
    if isinstance(classifier.vectorizer_, Vectors):
        questions = csr_array(([1.0, 2.0], [0, 5], [0, 1, 2]), shape=(2, classifier.vectorizer_.n_features_in_))
    P = classifier.predict_proba(questions)
    assert np.isfinite(P).all(), "a probability is not finite"
    assert ((P >= 0) & (P <= 1)).all(), f"a probability is {P.min()} or {P.max()}"
    classifier.predict(questions)
    for options in (PredictOptions(), PredictOptions(top=3), PredictOptions(risk=0.3)):
        try:
            Predictor(classifier, options).predict(questions)
        except RamifyError as error:
            check_message(error)
    for row, label in ((0, None), (1, classifier.taxonomy_.names[-1])):
        text = questions[row] if isinstance(questions, tuple) else questions[[row]]
        try:
            classifier.explain(text, label)
        except RamifyError as error:
            check_message(error)
    classifier.summary()
    if classifier.training_data_ is not None:
        try:
            update(classifier, Taxonomy.from_state(_renamed(classifier.taxonomy_.state())))
        except RamifyError as error:
            check_message(error)


def use_again(classifier: TextClassifier, scratch: Path) -> None:
    """Save, copy, describe and train further; what is saved or copied answers the same."""
    questions: Any = QUESTIONS
    if isinstance(classifier.vectorizer_, Vectors):
        questions = csr_array(([1.0, 2.0], [0, 5], [0, 1, 2]), shape=(2, classifier.vectorizer_.n_features_in_))
    P = classifier.predict_proba(questions)
    for made in (pickle.loads(pickle.dumps(classifier)), copy.deepcopy(classifier)):
        assert np.array_equal(made.predict_proba(questions), P), "a copy answers otherwise"
    clone(classifier)
    shutil.rmtree(scratch / "saved", ignore_errors=True)
    try:
        classifier.save(scratch / "saved")
        again = load(scratch / "saved")
        again.use_threads(1)
        assert np.allclose(again.predict_proba(questions), P, atol=1e-5), "a saved model answers otherwise"
    except RamifyError as error:
        raise AssertionError(f"a model that was loaded cannot be saved and loaded: {error}") from None
    for options in (PredictOptions(), PredictOptions(top=3), PredictOptions(risk=0.3)):
        try:
            found = list(Predictor(classifier, options).predict(questions))
            json.dumps([asdict(each) if is_dataclass(each) else each for each in found], allow_nan=False, default=str)
        except RamifyError as error:
            check_message(error)
    taxonomy = classifier.taxonomy_
    for row, label in ((0, None), (1, taxonomy.names[-1]), (0, taxonomy.names[0])):
        text = questions[row] if isinstance(questions, tuple) else questions[[row]]
        try:
            told = asdict(classifier.explain(text, label))
            json.dumps(told, allow_nan=False, default=float)
        except RamifyError as error:
            check_message(error)
    if classifier.vectorizer_.n_features_out <= 1 << 20:
        names = classifier.vectorizer_.get_feature_names_out()
        for node in taxonomy.names:
            try:
                told = [classifier.learner_.top_terms(node, 20, names), classifier.learner_.mixture_weights(node)]
                json.dumps(told, allow_nan=False, default=float)
            except RamifyError as error:
                check_message(error)
    json.dumps([classifier.learner_.training_facts(), classifier.learner_.selected_params()], allow_nan=False, default=float)
    if classifier.vectorizer_.n_features_out > 1 << 24:
        return  # training on so many columns takes as much memory as with an honest model
    before = classifier.learner_
    if classifier.training_data_ is not None:
        for made in (Taxonomy.flat(taxonomy.names), Taxonomy.from_state(_moved(taxonomy.state()))):
            try:
                changed = update(classifier, made).classifier
                assert np.isfinite(changed.predict_proba(questions)).all(), "after an update, a probability is not finite"
            except RamifyError as error:
                check_message(error)
    try:
        classifier.partial_fit(["red b1 new words", "g0 g1 old"], [taxonomy.names[int(k)] for k in before.class_nodes_[:2]])
        P = classifier.predict_proba(questions)
        assert np.isfinite(P).all(), "after partial_fit, a probability is not finite"
    except RamifyError as error:
        check_message(error)


def _renamed(state: dict[str, Any]) -> dict[str, Any]:
    """The state of a taxonomy with one more root above the last root."""
    return {**state, "nodes": [*state["nodes"], {"name": "new", "parents": [state["nodes"][0]["name"]]}]}


def _moved(state: dict[str, Any]) -> dict[str, Any]:
    """The state of a taxonomy whose last node is below the first root, and every other one where it was."""
    *nodes, last = state["nodes"]
    return {**state, "nodes": [*nodes, {"name": last["name"], "parents": [nodes[0]["name"]]}]}


def check_message(error: Exception) -> None:
    """A message is one line of at most 1,000 characters."""
    message = str(error)
    assert message.strip(), "the message is empty"
    assert len(message) <= 1000, f"the message has {len(message)} characters: {message[:200]}"
    assert "\n" not in message, f"the message has several lines: {message[:200]}"
    assert "Traceback" not in message, message[:200]
