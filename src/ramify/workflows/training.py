"""From files and options to a trained, evaluated and saved classifier: what ``ramify train`` and Python users call."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sklearn.base import clone

from ramify.classifier.fitting import check_fraction, selector_for
from ramify.classifier.saving import refuse_shards
from ramify.classifier.text_classifier import TextClassifier
from ramify.data import Corpus, comparable_keys, hold_out
from ramify.data.frames import Frame
from ramify.decisions import DecisionRule
from ramify.errors import InputError, LabelError, ModelError, suggest
from ramify.features import Cells, Column, FeatureUnion, TermSelector, Vectorizer, Vectors, Words
from ramify.formatting import counted
from ramify.metrics import Report
from ramify.parallel import count_workers, is_distributed, note, writing_shards_to
from ramify.persistence import model_metadata, refuse_foreign_target, scratch_directory, try_beside
from ramify.results import Result
from ramify.systems import DEFAULT_SYSTEM, System, find_system
from ramify.taxonomy import LearnedTaxonomy, Taxonomy, as_taxonomy, learn_groups, read_taxonomy, taxonomy_of_labels
from ramify.taxonomy.learning import check_number, refuse_paths
from ramify.type_hints import check_fields, checks_types
from ramify.workflows.evaluation import check_labels, evaluate_with_errors
from ramify.workflows.option_values import parse_characters, parse_system, read_stop_words
from ramify.workflows.reading import ReadOptions, needs_shards, note_levels, read_added

if TYPE_CHECKING:
    from ramify.workflows.tuning import TuningResult

CELL_WEIGHT = 0.5  # of a column of numbers or categories beside texts

Data = str | Path | Corpus | Frame


@dataclass(frozen=True, slots=True)
class FeatureOptions:
    """How texts become features.

    ngrams: longest word n-grams. stop_words: "english", "english-long", or a file with one word per line. stem: language of a
    stemmer. min_df: least number of documents with a word. max_features: keep only the most frequent words. hashing: number of
    columns of feature hashing. characters: n-grams of characters beside words, such as "3-4" or, with a weight, "3-4:0.5", or
    "none" (default: as the system has it). select, select_by, select_join, select_scope: see
    :class:`~ramify.features.TermSelector`.
    """

    ngrams: int = 1
    stop_words: str | Path | None = None
    stem: str | None = None
    min_df: int = 1
    max_features: int | None = None
    hashing: int | None = None
    select: int | None = None
    select_by: str = "information-gain"
    select_join: str = "max"
    select_scope: str = "flat"
    characters: str | None = None

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def params(self) -> dict[str, Any]:
        """Parameters of a :class:`~ramify.features.Vectorizer`."""
        words = {"ngram_range": (1, self.ngrams), "stop_words": read_stop_words(self.stop_words), "stemmer": self.stem}
        return words | {"min_df": self.min_df, "max_features": self.max_features, "hashing": self.hashing}

    @property
    def changed(self) -> dict[str, Any]:
        """The parameters of a vectorizer that differ from their defaults."""
        defaults = Vectorizer().get_params()
        return {name: value for name, value in self.params.items() if value != defaults[name]}

    def new_selector(self) -> TermSelector | None:
        """The term selector, if any, with checked parameters."""
        if self.select is None:
            return None
        selector = TermSelector(self.select, measure=self.select_by, join=self.select_join, scope=self.select_scope)
        clone(selector).set_params(taxonomy=Taxonomy.flat(["x"])).check_settings()
        return selector


@dataclass(frozen=True, slots=True)
class TuneOptions:
    """Choose features, system, C, rule and thresholds by cross-validation.

    minutes: for everything, counted from `started_at` (monotonic time; default: now). by: the measure to choose by.
    """

    minutes: float = 5.0
    by: str = "micro_f1"
    started_at: float | None = None

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True)
class TrainOptions:
    """What to train, and on what.

    system: a row of ``ramify systems``, with parameters of its learner if need be: "svm" or "lr:C=10" (default: path-svm).
    params: parameters of the learner. taxonomy: a taxonomy or its file (default: read from label paths).
    taxonomy_language: of the titles in a SKOS file (default: English).
    path_separator: what joins the parts of a label path (default: detected). rule: decision rule (default: the system's).
    test: test documents (default: hold out a fraction `holdout`; 0 for no test). add: more documents for training only, such as
    exported reviews. refit: train again on all documents after the test. seed: of the hold-out.
    calibrate, keep_back, keep_training_data: see :class:`~ramify.TextClassifier`. shards: save the weights in so many files.
    tune: choose what is not given by cross-validation. n_jobs: threads, as in scikit-learn.
    """

    system: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    taxonomy: Taxonomy | str | Path | None = None
    taxonomy_format: str | None = None
    path_separator: str | None = None
    rule: DecisionRule | None = None
    features: FeatureOptions = field(default_factory=FeatureOptions)
    read: ReadOptions = field(default_factory=ReadOptions)
    test: Data | None = None
    holdout: float = 0.2
    seed: int = 0
    refit: bool = True
    add: Sequence[Data] = ()
    calibrate: bool = True
    keep_back: float = 0.0
    keep_training_data: bool = False
    shards: int | None = None
    tune: TuneOptions | None = None
    n_jobs: int | None = -1
    taxonomy_language: str | None = None

    def __post_init__(self) -> None:
        check_fields(self)

    def new_classifier(self, checks_selector: bool = True) -> TextClassifier:
        """An unfitted classifier; options that do not fit together are refused before any document is read.

        checks_selector: whether a term selector that the learner cannot use is refused now, or not before training.
        """
        name, params = parse_system(self.system or DEFAULT_SYSTEM)
        system, selector = find_system(name), self.features.new_selector()
        learner = new_learner(system, {**params, **self.params})
        if checks_selector:
            selector_for(selector, learner)
        count_workers(self.n_jobs)
        if self.shards is not None:
            if check_fraction(self.keep_back) > 0:
                raise InputError("a model in shards scores few nodes and has no guarantee; leave out --keep-back or --shards.")
            refuse_shards(learner, name)
        taxonomy, vectorizer = self.known_taxonomy(), new_vectorizer(system, self.features.changed, self.features.characters)
        vectorizer.check_settings()
        parts = {"features": vectorizer, "learner": learner, "decision": self.rule, "selector": selector}
        settings: dict[str, Any] = {"separator": self.path_separator, "calibrate": self.calibrate, "n_jobs": self.n_jobs}
        settings |= {"keep_back": check_fraction(self.keep_back), "keep_training_data": self.keep_training_data}
        return TextClassifier(name, taxonomy, **parts, **settings)

    def known_taxonomy(self) -> Taxonomy | None:
        """The given taxonomy, read from its file if need be."""
        if self.taxonomy is None or isinstance(self.taxonomy, Taxonomy):
            return self.taxonomy
        return read_taxonomy(self.taxonomy, self.taxonomy_format, self.taxonomy_language)


def refuse_target(path: Path) -> None:
    """Refuse to save a model over something else, or where nothing can be written; called before long work starts."""
    place = path.absolute()
    if place == place.parent or os.path.ismount(place):
        raise ModelError(f"{path} is where a disk begins and cannot be replaced; give a directory below it for the model.")
    refuse_foreign_target(path)
    above = next(parent for parent in place.parents if parent.exists())
    try:
        try_beside(above / place.name)
    except OSError as error:
        raise ModelError(f"cannot save a model at {path}: {error.strerror}; choose another path.") from None


@checks_types
def train(data: Data, options: TrainOptions | None = None, model: str | Path | None = None) -> TrainResult:
    """Train a classifier on documents, evaluate it, and save it.

    data: a file, directory or pattern in any form that :func:`~ramify.data.read_corpus` reads, or a corpus.
    model: directory to save the model to.

    >>> from ramify.data import load_electronics
    >>> shop = load_electronics()
    >>> result = train(shop.train, TrainOptions(system="nb", taxonomy=shop.taxonomy, test=shop.test))
    >>> result.tested_on, round(result.report.figures["hierarchical_f1"], 1)
    (1053, 0.5)
    """
    options = options or TrainOptions()
    if model is not None:
        refuse_target(Path(model))
    if options.tune is not None and options.params and options.system is None:
        raise InputError("--auto and --param were given; name the system of the parameter with --system, or leave --param out.")
    if options.tune is not None and (options.read.columns or options.read.separate):
        raise InputError("tuning does not support further columns yet; leave out columns and separate, or tune.")
    classifier: Any = options.new_classifier()
    if model is not None and options.tune is None:
        _note_replacement(Path(model), classifier.system)
    with _scratch(data, options, model) as scratch:
        sharding = {"vectorizer": classifier.features, "scratch": scratch, "n_jobs": options.n_jobs}
        taxonomy: Taxonomy | None = classifier.taxonomy
        is_label = None if taxonomy is None else taxonomy.__contains__
        reading: dict[str, Any] = {"is_label": is_label, "sharding": None if options.tune is not None else sharding}
        corpus = options.read.read(data, **reading)
        test = None if options.test is None else options.read.read(options.test, **reading)
        more = read_added(options.add, corpus, taxonomy, options.read)
        split: dict[str, Any] = {"holdout": options.holdout, "seed": options.seed, "more": more}
        if options.tune is None:
            _warn_about_multi_label(classifier, corpus)
            parts = split_train_test(classifier, corpus, test, **split)
            result = train_on_part(parts)
            result = train_on_all(parts, result) if options.refit else result
        else:
            result = _tune(classifier, corpus, test, options, {**split, "refit": options.refit})
            if model is not None:
                _note_replacement(Path(model), result.classifier.system)
        if model is not None:
            result.classifier.save(model, options.shards)
    return result


def _tune(
    classifier: TextClassifier, corpus: Corpus, test: Corpus | None, options: TrainOptions, testing: dict[str, Any]
) -> TrainResult:
    """Choose everything that was not given."""
    from ramify.workflows.tuning import Fixed, tune

    assert options.tune is not None
    name, params = (None, {}) if options.system is None else parse_system(options.system)
    features = options.features.changed
    if options.features.characters is not None:
        features["characters"] = options.features.characters
    fixed = Fixed(name, {**params, **options.params}, features, options.rule)
    limits: dict[str, Any] = {"seconds": 60 * options.tune.minutes, "started": options.tune.started_at}
    trained, tuning = tune(classifier, corpus, test, by=options.tune.by, fixed=fixed, **limits, **testing)
    return replace(trained, tuning=tuning)


@contextmanager
def _scratch(data: Data, options: TrainOptions, model: str | Path | None) -> Iterator[Path | None]:
    """A scratch directory beside the model, where word counts of many files or the state of a cluster need one."""
    many = any(not isinstance(each, Corpus) and needs_shards(each) for each in (data, options.test))
    if model is None or not (is_distributed() or (many and options.tune is None)):
        yield None
        return
    with scratch_directory(Path(model)) as scratch, writing_shards_to(scratch if is_distributed() else None):
        yield scratch


def _note_replacement(model: Path, system: str) -> None:
    old = model_metadata(model).get("system")
    if old is not None and old != system:
        note(f"{model} holds a model of system {old!r}; it will be replaced by one of {system!r}. Keep it with --system {old}.")


def _warn_about_multi_label(classifier: TextClassifier, corpus: Corpus) -> None:
    """Warn where documents have multiple labels, and the system trains on all of them but predicts one."""
    system, count = find_system(classifier.system), sum(len(labels) > 1 for labels in corpus.labels)
    if count and classifier.decision is None and not system.is_multi_label and classifier.learner.supports_multi_label:
        note(f"  {counted(count, 'document')} with multiple labels; {system.name} trains on all of them, and predicts one")


def learn_taxonomy(
    corpus: Corpus, vectorizer: Vectorizer, levels: tuple[int, ...], flat: bool = False, **settings: Any
) -> tuple[LearnedTaxonomy, Any]:
    """Group the labels of a corpus by the words of their documents; also returns the names of the terms.

    levels: number of groups per level. flat: treat labels that look like paths as plain names.
    """
    names = sorted({label for labels in corpus.labels for label in labels})
    if not names:
        raise LabelError(f"{corpus.source}: no document has a label; grouping needs at least two labels.")
    check_number(len(names), levels)
    if not flat:
        refuse_paths(names)
    features = Vectors() if corpus.has_vectors else vectorizer
    X, Y = features.fit_transform(corpus.documents), Taxonomy.flat(names).encode(corpus.labels)
    return learn_groups(X, Y, names, levels, **settings), features.get_feature_names_out()


def new_vectorizer(system: System, words: Mapping[str, Any], characters: str | None = None) -> Any:
    """The vectorizer of a system with other settings for words, which leave its characters as they are.

    characters: as for ``--characters``.
    """
    vectorizer = system.vectorizer()
    if isinstance(vectorizer, FeatureUnion):
        if characters is None:
            return vectorizer.set_params(words=dict(words) or None)
        vectorizer = Words(**words)
    else:
        vectorizer.set_params(**words)
    lengths, weight = parse_characters(characters or "none")
    if lengths is None:
        return vectorizer
    no_words = {"stop_words": None, "stemmer": None, "max_features": None}
    beside = clone(vectorizer).set_params(analyzer="char_wb", ngram_range=lengths, **no_words)
    return FeatureUnion([vectorizer, beside], [1.0, weight])


def new_learner(system: System, params: Mapping[str, Any], option: str = "--param") -> Any:
    """The learner of a system, with some of its parameters set."""
    learner = system.learner()
    allowed = sorted(set(learner.get_params()) - {"taxonomy", "n_jobs"})
    for name in params:
        if name not in allowed:
            has = f"it has {', '.join(allowed)}.{suggest(name, allowed)}"
            raise InputError(f"{option} {name} is not a parameter of {system.name}; {has}")
    return learner.set_params(**params)


# ---- training and evaluating --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class TrainResult(Result):
    """A classifier, and its evaluation on documents that were not used in training.

    report: of a classifier trained on `trained_on` documents and tested on `tested_on` others; None without a test.
    refitted: whether the classifier was trained again, on all documents, after that.
    test_duplicates: test documents with the same text as a training document. tuning: how `--auto` chose the classifier.
    """

    classifier: TextClassifier
    report: Report | None
    trained_on: int
    tested_on: int = 0
    refitted: bool = False
    test_duplicates: int = 0
    tuning: TuningResult | None = None

    def as_dict(self) -> dict[str, Any]:
        """What was trained and how good it is, as JSON-ready values."""
        counts = {name: getattr(self, name) for name in ("trained_on", "tested_on", "refitted", "test_duplicates")}
        report = None if self.report is None else self.report.as_dict()
        facts = {**counts, "summary": self.classifier.summary(), "report": report}
        return facts if self.tuning is None else facts | {"tuning": self.tuning.as_dict()}


@dataclass(frozen=True, slots=True)
class TrainTestSplit:
    """Training and test documents.

    classifier: not fitted; its taxonomy covers all labels. from_labels: whether the taxonomy was read from the labels.
    full: all documents. train, test: the documents of the evaluation; without a test, `train` is `full` and `test` None.
    is_held_out: whether the test documents were taken from the same corpus.
    """

    classifier: TextClassifier
    taxonomy: Taxonomy
    from_labels: bool
    full: Corpus
    train: Corpus
    test: Corpus | None
    is_held_out: bool


@checks_types
def train_classifier(
    classifier: TextClassifier,
    corpus: Corpus,
    test: Corpus | None = None,
    *,
    holdout: float = 0.2,
    seed: int = 0,
    refit: bool = True,
    more: Corpus | None = None,
) -> TrainResult:
    """Train a classifier, evaluate it on a test corpus or a hold-out, and store the figures in it.

    holdout: fraction of the documents to hold out when there is no test corpus; 0 for no test.
    refit: after the test on a hold-out, train again on everything.
    more: documents for training only, such as reviewed ones; each replaces a document of the corpus with the same text.
    """
    parts = split_train_test(classifier, corpus, test, holdout=holdout, seed=seed, more=more)
    trained = train_on_part(parts)
    return train_on_all(parts, trained) if refit else trained


def split_train_test(
    classifier: TextClassifier, corpus: Corpus, test: Corpus | None, *, holdout: float, seed: int, more: Corpus | None
) -> TrainTestSplit:
    """The training and test documents of :func:`train_classifier`; refuses unknown labels."""
    from_labels = classifier.taxonomy is None
    if more is not None:
        if corpus.has_vectors or more.has_vectors:
            problem = "documents can only be added to texts, and one of the files holds vectors"
            raise InputError(f"{problem}; put them into one file.")
        corpus = corpus.without_texts_of(more)
    full = corpus if more is None else corpus.joined(more)
    classifier, taxonomy = prepared(classifier, full)
    if from_labels:
        note_levels(taxonomy, full)
    for part in (corpus, more):
        if part is not None:
            check_labels(part, taxonomy)
    is_held_out, train = test is None and holdout != 0, corpus
    if is_held_out:
        keys = None if corpus.has_vectors else corpus.keys
        train, test = (corpus.take(rows) for rows in hold_out(corpus.labels, holdout, seed, keys))
    if test is None or len(test) == 0:
        return TrainTestSplit(classifier, taxonomy, from_labels, full, full, None, False)
    check_labels(test, taxonomy)
    train = train if more is None else train.joined(more)
    return TrainTestSplit(classifier, taxonomy, from_labels, full, train, test, is_held_out)


def prepared(classifier: TextClassifier, corpus: Corpus) -> tuple[TextClassifier, Taxonomy]:
    """A copy whose taxonomy covers all labels, and which reads vectors where documents are vectors."""
    made: TextClassifier = clone(classifier)
    given = made.taxonomy
    made.taxonomy = taxonomy_of_labels(corpus.labels, made.separator) if given is None else as_taxonomy(given)
    if corpus.has_vectors:
        made.features = Vectors()
    elif corpus.found.get("columns") or corpus.found.get("separate"):
        made.features = column_features(made, corpus.found)
    return made, made.taxonomy


def column_features(classifier: TextClassifier, found: Mapping[str, Any]) -> FeatureUnion:
    """The features of a classifier for texts, a block for each text column if they are separate, beside those of other columns.

    found: the columns of a corpus.
    """
    of_texts = classifier.features if classifier.features is not None else find_system(classifier.system).vectorizer()
    texts = found["text"] if found.get("separate") else [None]
    others = found.get("columns", [])
    columns = [Column(number, clone(of_texts), name) for number, name in enumerate(texts)]
    columns += [Column(len(texts) + number, Cells(name)) for number, name in enumerate(others)]
    weight = CELL_WEIGHT if getattr(of_texts, "weighting", "tf-idf") == "tf-idf" else 1.0
    return FeatureUnion(columns, [1.0] * len(texts) + [weight] * len(others))


def train_on_part(parts: TrainTestSplit) -> TrainResult:
    """Train on the training documents, and evaluate on the test documents."""
    train, test = parts.train, parts.test
    fitted = clone(parts.classifier).fit(train.documents, train.labels)
    trained_on = int(fitted.figures_["documents"])
    report = None if test is None else evaluate_with_errors(fitted, test, most_errors=0)[0]
    _note(fitted, train, parts, report)
    if test is None:
        return TrainResult(fitted, None, trained_on)
    return TrainResult(fitted, report, trained_on, len(test), False, count_duplicates(train, test))


def count_duplicates(train: Corpus, test: Corpus) -> int:
    """The number of test documents with the same text as a training document; 0 for vectors."""
    if train.has_vectors or test.has_vectors:
        return 0
    train_keys, test_keys = comparable_keys(train, test)
    known = set(train_keys)
    return sum(key in known for key in test_keys)


def train_on_all(parts: TrainTestSplit, trained: TrainResult) -> TrainResult:
    """Train the same classifier again on all documents, if some were held out; the report stays that of the tested one.

    What was selected for the tested one is reused: parameters, rule, calibration and guarantee; the latter two unless documents
    are kept back.
    """
    if not parts.is_held_out or trained.report is None:
        return trained
    tested, classifier = trained.classifier, clone(parts.classifier)
    is_reused = tested.calibration_ is not None and not classifier.keep_back > 0
    learner = clone(tested.learner_).set_params(taxonomy=None, **tested.learner_.selected_params())
    classifier.set_params(calibrate=classifier.calibrate and not is_reused, learner=learner, decision=tested.decision_)
    classifier.set_params(taxonomy=tested.taxonomy_)  # rule and calibration go with the main parents of a DAG
    fitted = classifier.fit(parts.full.documents, parts.full.labels)
    fitted.set_params(decision=parts.classifier.decision)
    _note(fitted, parts.full, parts, trained.report)
    if is_reused:
        fitted.calibrate, fitted.calibration_, fitted.guarantee_ = True, tested.calibration_, tested.guarantee_
    return replace(trained, classifier=fitted, refitted=True)


def _note(fitted: TextClassifier, corpus: Corpus, parts: TrainTestSplit, report: Report | None) -> None:
    """Store the form of the documents and the figures of the test in a classifier."""
    fitted.form_ = replace(fitted.form_, multi_label=any(len(labels) != 1 for labels in corpus.labels))
    fitted.figures_ |= {"columns": corpus.found, "taxonomy_from_labels": parts.from_labels}
    if parts.test is not None and report is not None:
        fitted.figures_ |= {"tested_on": len(parts.test), "held_out": parts.is_held_out, "evaluation": report.figures}
        fitted.report_ = report.as_dict()
