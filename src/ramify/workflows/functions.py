"""The functions of ``ramify``: each takes what people have, and calls the workflow of the same name.

What people have: a path, a corpus, or texts and their labels; a classifier, or the directory of a model; options in one of the
classes of options, or by their names. One function here turns each into the form that workflows take.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, overload

from scipy.sparse import issparse

from ramify.arguments import as_path, check_flag, check_kind, describe, sized_entries
from ramify.classifier import make_rule
from ramify.classifier.loading import load
from ramify.classifier.text_classifier import TextClassifier
from ramify.data import Corpus
from ramify.data.frames import Frame
from ramify.decisions import DecisionRule
from ramify.errors import InputError, suggest
from ramify.features.base import check_fitted
from ramify.metrics import Report
from ramify.metrics.hierarchical import Costs
from ramify.metrics.significance import Correction
from ramify.persistence import is_model, refuse_existing
from ramify.systems import SYSTEMS
from ramify.taxonomy import Taxonomy, as_taxonomy, normalize_labels, read_reassignments
from ramify.workflows.auditing.audit import FOLDS, MAX_ISSUES, MIN_DOCUMENTS, SIMILARITY, Audit
from ramify.workflows.auditing.audit import audit as audit_corpus
from ramify.workflows.comparing import compare as compare_classifiers
from ramify.workflows.comparison import Comparison
from ramify.workflows.evaluation import evaluate as evaluate_classifier
from ramify.workflows.explaining import ExplainResult
from ramify.workflows.explaining import explain as explain_text
from ramify.workflows.option_values import parse_params, split_params
from ramify.workflows.predicting import PredictResult
from ramify.workflows.predicting import predict as predict_documents
from ramify.workflows.predictor import PredictOptions
from ramify.workflows.reading import ReadOptions
from ramify.workflows.training import Data, FeatureOptions, TrainOptions, TrainResult
from ramify.workflows.training import train as train_on
from ramify.workflows.tuning.candidates import Fixed
from ramify.workflows.tuning.tune import Tuned
from ramify.workflows.tuning.tune import tune as tune_classifier
from ramify.workflows.updating import PartialFitResult, UpdateOptions, UpdateResult, update_model
from ramify.workflows.updating import update as update_classifier

Model = TextClassifier | str | Path
AUDIT_SYSTEM = "lr:C=10"  # the best probabilities for their time
GIVEN = "the given texts"


# ---- what people have ----------------------------------------------------------------------------------------------------


def as_data(data: Any, texts: Any, labels: Any) -> Any:
    """Documents as a workflow takes them: `data`, or a corpus of texts and their labels.

    >>> as_data(None, ["red apple", "black tea"], ["fruit", ["tea", "drink"]]).labels
    [['fruit'], ['tea', 'drink']]
    """
    if data is not None:
        if texts is not None or labels is not None:
            raise InputError("documents were given twice, as data and as texts; give data, or texts and labels.")
        return data
    if texts is None or labels is None:
        missing = "labels" if texts is not None else "texts" if labels is not None else "data"
        raise InputError(f"there are no {missing}; give a path or a corpus, or both texts= and labels=.")
    documents: Any = texts if issparse(texts) else list(sized_entries(texts, "texts"))
    rows, n = normalize_labels(sized_entries(labels, "labels"))[0], documents.shape[0] if issparse(texts) else len(documents)
    if n != len(rows):
        raise InputError(f"there are {n:,} texts and {len(rows):,} labels; give one label, or a list of them, for each text.")
    return Corpus(GIVEN, documents, rows)


def as_classifier(model: Model) -> TextClassifier:
    """A classifier, loaded if it is given by its directory."""
    if isinstance(model, TextClassifier):
        check_fitted(model)
        return model
    check_kind(model, (str, Path), "the model", "a TextClassifier, or the directory of a model")
    return load(model)


def as_rule(rule: Any) -> DecisionRule | None:
    """A decision rule, also given as on the command line: "isotonic:penalty=5"."""
    if not isinstance(rule, str):
        return rule  # type: ignore[no-any-return]
    name, params = split_params(rule)
    return make_rule(name, parse_params(params, f"a parameter of rule {name}"))


def train_options(settings: Mapping[str, Any], options: TrainOptions | None = None) -> TrainOptions:
    """Options for training, changed by names of their fields, or of those of FeatureOptions and ReadOptions.

    >>> train_options({"system": "nb", "ngrams": 2, "text": "body"}).features.ngrams
    2
    """
    options = options or TrainOptions()
    check_kind(options, TrainOptions, "options", "ramify.TrainOptions, or settings by name, such as system='nb'")
    classes = {"": TrainOptions, "features": FeatureOptions, "read": ReadOptions}
    parts = {part: {each.name for each in fields(kind)} for part, kind in classes.items()}
    refuse_unknown(settings, [name for names in parts.values() for name in names])
    given = {part: {name: value for name, value in settings.items() if name in names} for part, names in parts.items()}
    if "rule" in given[""]:
        given[""]["rule"] = as_rule(given[""]["rule"])
    options = replace(options, **given[""])
    return replace(
        options, features=replace(options.features, **given["features"]), read=replace(options.read, **given["read"])
    )


def predict_options(settings: Mapping[str, Any], options: PredictOptions | None = None) -> PredictOptions:
    """Options for predictions, changed by names of their fields.

    >>> predict_options({"top": 3, "within": "food"}).within
    ('food',)
    """
    refuse_unknown(settings, [each.name for each in fields(PredictOptions)])
    lists = {name: settings[name] for name in ("within", "without") if name in settings}
    tuples = {name: (value,) if isinstance(value, str) else tuple(value) for name, value in lists.items()}
    return replace(options or PredictOptions(), **{**settings, **tuples})


def refuse_unknown(settings: Iterable[str], known: Sequence[str]) -> None:
    """Refuse the name of a setting that does not exist."""
    for name in settings:
        if name not in known:
            hint = suggest(name, known) or f" Give {', '.join(sorted(known))}."
            raise InputError(f"there is no setting {name!r}.{hint}")


def _documents(options: TrainOptions, data: Any, taxonomy: Taxonomy | None, like: dict[str, Any] | None = None) -> Corpus:
    """Labelled documents, read if need be."""
    return options.read.read(data, None if taxonomy is None else taxonomy.__contains__, like=like)


def _first_or_second(first: Any, second: Any, texts: Any) -> tuple[Any, Any]:
    """A classifier and documents, where the classifier may be left out: one argument alone is the documents."""
    return (None, first) if second is None and texts is None and not isinstance(first, TextClassifier) else (first, second)


def _new(given: Any, options: TrainOptions, default: str | None = None) -> TextClassifier:
    """A classifier that is not trained: itself, or that of a system."""
    if isinstance(given, TextClassifier):
        return given
    return replace(options, system=given or options.system or default).new_classifier()


# ---- the functions -------------------------------------------------------------------------------------------------------


def train(
    data: Data | None = None,
    options: TrainOptions | None = None,
    model: str | Path | None = None,
    *,
    texts: Any = None,
    labels: Any = None,
    overwrite: bool = True,
    **settings: Any,
) -> TrainResult:
    """Train a classifier on documents, evaluate it, and save it.

    data: a file, directory, pattern or data frame in any form that :func:`~ramify.data.read_corpus` reads, or a corpus; or
    give `texts`, and for each one label or a list of labels. options: :class:`~ramify.workflows.TrainOptions`; or give its
    fields, and those of :class:`~ramify.workflows.FeatureOptions` and :class:`~ramify.workflows.ReadOptions`, by name:
    ``system="nb", ngrams=2``. model: directory to save the model to. overwrite: whether a model that is there is replaced, as
    ``TextClassifier.save`` does.

    >>> import ramify
    >>> shop = ramify.data.load_electronics()
    >>> ramify.train(shop.train, system="nb", taxonomy=shop.taxonomy, test=shop.test)
    <TrainResult: nb trained on 2,464 documents; micro F1 0.397 on 1,053 others>
    """
    wanted = train_options(settings, options)
    check_flag(overwrite, "overwrite")
    if model is not None:
        refuse_existing(as_path(model, "model"), overwrite)
    return train_on(as_data(data, texts, labels), wanted, model)


def evaluate(
    classifier: Model,
    corpus: Data | None = None,
    hierarchy: str = "original",
    costs: Costs = None,
    *,
    texts: Any = None,
    labels: Any = None,
    **reading: Any,
) -> Report:
    """Compare a classifier's predictions with the labels of documents.

    classifier: also the directory of a model. corpus: also a path or a data frame; or give `texts` and `labels`. hierarchy:
    "modified" adds F1 on the modified hierarchy, in which inner nodes have leaves for their own documents. costs: adds the
    H-loss with these costs: one number per node, or numbers by node name (others: 1). reading: fields of
    :class:`~ramify.workflows.ReadOptions`.

    >>> import ramify
    >>> clf = ramify.TextClassifier("nb").fit(["red apple", "black tea"], ["food/fruit", "drink/tea"])
    >>> ramify.evaluate(clf, texts=["green tea", "an apple"], labels=["drink/tea", "food/fruit"])
    <Report: 2 documents; exact match 1.000, hierarchical F1 1.000>
    """
    classifier, options = as_classifier(classifier), train_options(reading)
    columns = classifier.figures_.get("columns") or None
    documents = _documents(options, as_data(corpus, texts, labels), classifier.taxonomy_, columns)
    return evaluate_classifier(classifier, documents, hierarchy, costs)


def compare(
    classifiers: Mapping[str, Any] | Iterable[Any] | Data | None = None,
    corpus: Data | None = None,
    *,
    texts: Any = None,
    labels: Any = None,
    test: Data | None = None,
    folds: int = 5,
    seed: int = 0,
    n_resamples: int | None = None,
    correction: Correction = "holm",
    **settings: Any,
) -> Comparison:
    """Compare systems or models on the same documents, with significance tests.

    classifiers: names of systems, with parameters if need be ("nb:alpha=0.1"), directories of models, or classifiers; a list,
    or a mapping from names to them (default: every system). With one argument, it is the documents: a path, a data frame or a
    corpus; or give `texts` and `labels`. settings: fields of :class:`~ramify.workflows.TrainOptions` and its parts. For the
    others see :func:`ramify.workflows.compare`.

    >>> import ramify
    >>> shop = ramify.data.load_electronics()
    >>> systems = ["nb", "shrinkage-nb"]
    >>> ramify.compare(systems, shop.train, test=shop.test, taxonomy=shop.taxonomy, n_resamples=100)
    <Comparison: 2 systems on 1,053 documents; recommended: shrinkage-nb, micro F1 0.556>
    """
    if isinstance(classifiers, (str, Path, Corpus)) or (corpus is None and texts is None and isinstance(classifiers, Frame)):
        classifiers, corpus = _first_or_second(classifiers, corpus, texts)
        if classifiers is not None:
            raise InputError(f"classifiers is {describe(classifiers)}; give a list of two or more, such as ['nb', 'svm'].")
    options = train_options(settings)
    made = _named_classifiers(list(SYSTEMS) if classifiers is None else classifiers, options)
    first = next(iter(made.values()), None)
    taxonomy = first.taxonomy_ if first is not None and first.__sklearn_is_fitted__() else options.known_taxonomy()
    documents = _documents(options, as_data(corpus, texts, labels), taxonomy)
    tested = None if test is None else _documents(options, test, taxonomy)
    how: dict[str, Any] = {"folds": folds, "seed": seed, "n_resamples": n_resamples, "correction": correction}
    return compare_classifiers(made, documents, test=tested, **how)


def _named_classifiers(given: Any, options: TrainOptions) -> dict[str, TextClassifier]:
    """Classifiers by name; those that are equal have a number."""
    named = dict(given) if isinstance(given, Mapping) else {}
    for each in () if isinstance(given, Mapping) else sized_entries(given, "classifiers"):
        name = each.system if isinstance(each, TextClassifier) else str(each)
        same = sum(known.partition(" ")[0] == name for known in named)
        named[f"{name} {same + 1}" if same else name] = each
    return {str(name): _one_classifier(each, options) for name, each in named.items()}


def _one_classifier(given: Any, options: TrainOptions) -> TextClassifier:
    if isinstance(given, TextClassifier):
        return given
    check_kind(given, (str, Path), "a classifier", "the name of a system, the directory of a model, or a TextClassifier")
    name = str(given).partition(":")[0]
    if name not in SYSTEMS and is_model(given):
        return load(given)
    return _new(str(given), options)


def audit(
    classifier: Model | Data | None = None,
    corpus: Data | None = None,
    *,
    texts: Any = None,
    labels: Any = None,
    max_issues: int = MAX_ISSUES,
    folds: int = FOLDS,
    seed: int = 0,
    similarity: float = SIMILARITY,
    min_documents: int = MIN_DOCUMENTS,
    **settings: Any,
) -> Audit:
    """Find labels that are probably wrong by cross-validation: no document is scored by a model that was trained on it.

    classifier: a classifier, or the name of a system (default: "lr:C=10"). With one argument, it is the documents: a path, a
    data frame or a corpus; or give `texts` and `labels`. max_issues: how many label issues are described, the most likely
    ones. similarity: fraction of common terms from which on two texts are near-duplicates. min_documents: a class with fewer
    is reported as tiny. settings: fields of :class:`~ramify.workflows.TrainOptions` and its parts.

    >>> import ramify
    >>> shop = ramify.data.load_electronics()
    >>> ramify.audit("nb", shop.train.take(range(300)), taxonomy=shop.taxonomy)
    <Audit: 300 documents; 231 label issues, 0 groups of duplicates, 36 classes that cannot be learnt>
    """
    classifier, corpus = _first_or_second(classifier, corpus, texts)
    options = train_options(settings)
    made = _new(classifier, options, AUDIT_SYSTEM)
    documents = _documents(options, as_data(corpus, texts, labels), options.known_taxonomy())
    how: dict[str, Any] = {"max_issues": max_issues, "folds": folds, "seed": seed, "similarity": similarity}
    return audit_corpus(made, documents, min_documents=min_documents, **how)


def tune(
    classifier: TextClassifier | Data | None = None,
    corpus: Data | None = None,
    test: Data | None = None,
    *,
    texts: Any = None,
    labels: Any = None,
    seconds: float = 300.0,
    by: str = "micro_f1",
    fixed: Fixed | None = None,
    holdout: float = 0.2,
    seed: int = 0,
    refit: bool = True,
    more: Corpus | None = None,
    **settings: Any,
) -> Tuned:
    """Select features, system, C and rule by cross-validation, and train the selected classifier.

    classifier: has the taxonomy, the separator of paths and the threads; everything else is tuned, except for what is `fixed`.
    With one argument, it is the documents: a path, a data frame or a corpus; or give `texts` and `labels`. seconds: for
    everything. by: the measure to choose by. settings: fields of :class:`~ramify.workflows.TrainOptions` and its parts. For
    the others see :func:`ramify.workflows.tuning.tune`.
    """
    classifier, corpus = _first_or_second(classifier, corpus, texts)
    further = {name: settings.pop(name) for name in ("started", "clock", "run_fold") if name in settings}
    options = train_options(settings)
    made = _new(classifier, options)
    documents = _documents(options, as_data(corpus, texts, labels), options.known_taxonomy())
    tested = None if test is None else _documents(options, test, options.known_taxonomy())
    how: dict[str, Any] = {"seconds": seconds, "by": by, "fixed": fixed, "holdout": holdout, "seed": seed}
    return tune_classifier(made, documents, tested, refit=refit, more=more, **how, **further)


@overload
def update(
    classifier: TextClassifier,
    taxonomy: Taxonomy | str | Path | None = ...,
    texts: Any = ...,
    labels: Any = ...,
    **settings: Any,
) -> UpdateResult: ...


@overload
def update(
    classifier: str | Path, taxonomy: Taxonomy | str | Path | None = ..., texts: Any = ..., labels: Any = ..., **settings: Any
) -> UpdateResult | PartialFitResult: ...


def update(
    classifier: Model,
    taxonomy: Taxonomy | str | Path | None = None,
    texts: Any = None,
    labels: Any = None,
    *,
    data: Data | None = None,
    reassignments: Any = None,
    to: str | Path | None = None,
    overwrite: bool = True,
    **settings: Any,
) -> UpdateResult | PartialFitResult:
    """A classifier for a changed taxonomy, or for more documents; only what changed is trained again.

    classifier: a classifier, which is not changed; or the directory of a model, which is replaced by the new one unless another
    place is given with `to`. taxonomy: the new one, or its file (default: the current one). texts, labels or data: more
    documents, as for :func:`ramify.train`. reassignments: where documents of old nodes go: a file, or what
    :func:`~ramify.taxonomy.read_reassignments` gives. overwrite: whether a model at `to` is replaced. settings: ``rounds`` and
    ``select_rounds`` of a saved boosted model, and fields of :class:`~ramify.workflows.ReadOptions`.

    >>> import ramify
    >>> texts, labels = ["red apple", "ripe pear", "black tea"], ["food/apple", "food/pear", "drink/tea"]
    >>> before = ramify.TextClassifier("svm", keep_training_data=True).fit(texts, labels)
    >>> ramify.update(before, ramify.Taxonomy.from_paths(["food/fruit/apple", "food/fruit/pear", "drink/tea"]))
    <UpdateResult: 3 documents, 2 relabelled; 2 moved, 1 added>
    """
    check_flag(overwrite, "overwrite")
    documents = None if data is None and texts is None and labels is None else as_data(data, texts, labels)
    boosting = {name: settings.pop(name) for name in ("rounds", "select_rounds", "n_jobs") if name in settings}
    reading = train_options(settings).read
    if not isinstance(classifier, TextClassifier):
        if to is not None:
            refuse_existing(as_path(to, "to"), overwrite)
        table = None if reassignments is None else as_path(reassignments, "reassignments")
        return update_model(classifier, UpdateOptions(documents, taxonomy, table, read=reading, **boosting), to)
    if to is not None or boosting:
        raise InputError(f"{'to' if to is not None else next(iter(boosting))} is for a saved model; give its directory.")
    check_fitted(classifier)
    old, new = classifier.taxonomy_, None if taxonomy is None else as_taxonomy(taxonomy)
    if isinstance(reassignments, (str, Path)):
        reassignments = read_reassignments(reassignments, old, new or old)
    if documents is None:
        return update_classifier(classifier, new, reassignments=reassignments)
    columns = classifier.figures_.get("columns") or None
    corpus = reading.read(documents, lambda label: label in old or (new is not None and label in new), like=columns)
    return update_classifier(classifier, new, corpus.documents, corpus.labels, reassignments=reassignments)


def explain(
    classifier: Model, text: str, label: str | None = None, *, true: str | Sequence[str] | None = None, rule: Any = None
) -> ExplainResult:
    """Explain the labels of a text, node by node and word by word, or why it does not get another label.

    classifier: also the directory of a model. label: explain this node. true: the true labels, to mark the errors. rule:
    another decision rule, also as on the command line: "isotonic:penalty=5".

    >>> import ramify
    >>> clf = ramify.TextClassifier("nb").fit(["red apple", "black tea"], ["food/fruit", "drink/tea"])
    >>> ramify.explain(clf, "an apple")
    <ExplainResult: 'an apple' is food > fruit (67%), because of apple>
    """
    made, decision = as_classifier(classifier), as_rule(rule)
    made = made if decision is None else made.redecided(decision)
    return explain_text(made, text, label, [true] if isinstance(true, str) else true)


def predict(
    classifier: Model,
    data: Data | Iterable[str],
    *,
    text: str | Sequence[str] | None = None,
    encoding: str | None = None,
    rule: Any = None,
    options: PredictOptions | None = None,
    **settings: Any,
) -> PredictResult:
    """Predict the labels of documents, and hold them in memory.

    classifier: also the directory of a model. data: a list of texts, a file, a corpus, or a data frame. text, encoding: of a
    table. rule: another decision rule. options: :class:`~ramify.workflows.PredictOptions`; or give its fields by name, such as
    ``top=3``.

    >>> import ramify
    >>> clf = ramify.TextClassifier("nb").fit(["red apple", "black tea"], ["food/fruit", "drink/tea"])
    >>> ramify.predict(clf, ["green tea", "an apple"]).labels
    [['drink/tea'], ['food/fruit']]
    """
    wanted = predict_options(settings, options)
    made, decision = as_classifier(classifier), as_rule(rule)
    made = made if decision is None else made.redecided(decision)
    return predict_documents(made, data, wanted, text, encoding)
