"""Text in, label paths out: features, a learner and a decision rule over one taxonomy, as one scikit-learn estimator."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse, vstack

from ramify.arguments import check_flag, check_text
from ramify.classifier import fitting
from ramify.classifier.class_columns import (
    check_classes,
    check_top,
    class_nodes,
    finite_scores,
    label_probabilities,
    top_labels,
)
from ramify.classifier.estimator import ScikitClassifier
from ramify.classifier.explanation import Explanation, explain
from ramify.classifier.guarantees import WITHOUT_RISK, Guarantee, branches_without_guarantee, predictor_of
from ramify.classifier.inputs import read_documents, refuse_other_kind, vectorizer_for
from ramify.classifier.parameters import given_params
from ramify.classifier.partial_fit import partial_fit
from ramify.classifier.saving import to_stored
from ramify.classifier.tables import as_table, is_text_table, read_text_table, read_training_table
from ramify.decisions import DecisionRule, FittableRule, Sign, TopDown, fit_conformal
from ramify.errors import InputError
from ramify.features import FeatureUnion, Vectorizer
from ramify.features.base import BaseVectorizer, check_fitted
from ramify.learners.base import Learner
from ramify.metrics import accuracy
from ramify.metrics.flat import exact_matches
from ramify.persistence import refuse_existing, write_model
from ramify.systems import DEFAULT_SYSTEM, System, find_system
from ramify.taxonomy import Taxonomy, as_taxonomy, most_specific, read_labels

TEXTS = 1 << 14  # texts whose vectors are made at a time
Result = TypeVar("Result")
Decided = tuple[csr_array, NDArray[np.float32]]  # labels and probabilities, documents × nodes


class TextClassifier(ScikitClassifier):
    """Classify texts, or vectors, into a taxonomy.

    system: a row of ``ramify systems``; it provides every part that is not given.
    taxonomy: a taxonomy or the path of its file (default: read from the labels: paths, or a flat list of classes).
    features: a vectorizer to use instead of the system's, or a list of them as blocks side by side, such as
    ``[Words(), Characters()]``. learner, decision: parts to use instead of the system's.
    selector: a :class:`~ramify.features.TermSelector` (default: all terms are used).
    separator: joins the parts of a label path (default: detected).
    calibrate: whether to calibrate probabilities on out-of-fold scores. This takes up to four times as much training with few
    documents, and about as much again with many.
    keep_back: fraction of the documents that is not used in training, for a proven guarantee (see :meth:`predict`); without
    it, the guarantee is estimated by cross-validation.
    keep_training_data: keep the documents, as vectors, with the model, so that it can be updated for a changed taxonomy.
    n_jobs: threads, as in scikit-learn.
    params: parameters of the system's parts by name, such as ``{"C": 0.3, "features__ngram_range": (1, 2)}``; `set_params` and
    searches set them one by one, as ``C`` or ``learner__C``.
    classes: what ``classes_`` holds and the columns of scores and probabilities stand for: all "nodes" of the taxonomy, or only
    the "labels" of training documents, in sorted order, as scikit-learn's tools need.

    Documents are texts in a list, an array, or a column of pandas, polars or pyarrow; or rows of numbers: a sparse matrix, a
    2-D array, or a data frame. Labels may have any form that ``ramify.taxonomy.read_labels`` lists.

    ``sizes_``: training documents at or below each node. ``report_``: the evaluation, as plain values, or None.
    ``calibration_``: turns scores into probabilities. ``guarantee_``: the conformal predictor of :meth:`predict`, or None.
    ``training_data_``: the documents, where they are kept.

    >>> clf = TextClassifier(system="nb")
    >>> clf.fit(["sweet red apple", "rye bread crust"], ["food/fruit", "food/bread"]).predict(["a red apple"])
    array(['food/fruit'], dtype='<U10')
    """

    sizes_: NDArray[np.int64] | None
    report_: dict[str, Any] | None
    learner_: Learner
    decision_: DecisionRule
    calibration_: Any = None
    guarantee_: Guarantee | None = None
    training_data_: fitting.TrainingData | None = None
    _used_features: tuple[Any, Any, Any] = (None, None, None)  # vectorizer, learner, and vectorizer of its features

    def __init__(
        self,
        system: str = DEFAULT_SYSTEM,
        taxonomy: Taxonomy | str | Path | None = None,
        *,
        features: Any = None,
        learner: Any = None,
        decision: Any = None,
        selector: Any = None,
        separator: str | None = None,
        calibrate: bool = True,
        keep_back: float = 0.0,
        keep_training_data: bool = False,
        n_jobs: int | None = None,
        params: dict[str, Any] | None = None,
        classes: str = "nodes",
    ) -> None:
        self.system, self.taxonomy, self.separator = system, taxonomy, separator
        self.features, self.learner, self.decision, self.selector = features, learner, decision, selector
        self.calibrate, self.keep_back, self.keep_training_data = calibrate, keep_back, keep_training_data
        self.n_jobs, self.params, self.classes = n_jobs, params, classes

    # ---- training ---------------------------------------------------------------------------------------------------

    def fit(self, texts: Any, labels: Any, sample_weight: Any = None) -> Self:
        """Train on texts or vectors and, for each, one label or a list of labels: names, or paths.

        texts: also a data frame or another table with a column of texts; `labels` may then be the name of its label column.
        sample_weight: how much each text counts for the learner; with weight 0 it is left out. Calibration, thresholds and the
        guarantee count every other text once.
        """
        if labels is None:
            raise InputError("fitting requires y to be passed, but the target y is None.")
        check_text(self.separator, "separator")
        check_flag(self.calibrate, "calibrate")
        check_flag(self.keep_training_data, "keep_training_data")
        check_classes(self.classes)
        system, params, found = find_system(self.system), given_params(self), None
        if is_text_table(texts):
            texts, labels, found = read_training_table(texts, labels)
        given = read_labels(labels, None if self.taxonomy is None else as_taxonomy(self.taxonomy), self.separator)
        data, kept = fitting.training_sets(read_documents(texts), given.rows, sample_weight, self.keep_back)
        Y = fitting.encode_labels(given, data.rows)
        taxonomy = given.taxonomy.with_main_parents(np.bincount(Y.indices, minlength=len(given.taxonomy)))
        decision = fitting.choose_rule(self.decision, system, fitting.multi_label_fraction(Y, taxonomy), params["decision"])
        fitting.refuse_misfit(decision, taxonomy)
        vectorizer, learner = self.new_parts(system, taxonomy, data.documents)
        if self.keep_training_data:
            fitting.refuse_weights(learner, data.weights)
            learner.keeps_warm_start = True
        X = fitting.fit_features(vectorizer, data.documents, fitting.selector_for(self.selector, learner), Y)
        learner.keeps_held_out = self.calibrate or (isinstance(decision, FittableRule) and not decision.is_fitted)
        learner.block_ends = vectorizer.block_ends if isinstance(vectorizer, FeatureUnion) else None
        learner.fit(X, Y, data.weights)
        if isinstance(decision, FittableRule) and not decision.is_fitted:
            decision = fitting.fit_rule(decision, learner, X, Y, data.weights)
            fitting.refuse_misfit(decision, taxonomy)
        calibration = guarantee = None
        if self.calibrate:
            calibration, guarantee = fitting.calibrate_learner(learner, X, Y, kept is None, data.weights)
        learner.held_out_, learner.keeps_held_out = None, False  # no longer needed
        # only now, so that a fit that fails leaves an earlier one whole
        self.taxonomy_, self.form_ = taxonomy, given.form
        self.vectorizer_, self.learner_, self.decision_ = vectorizer, learner, decision
        self.calibration_, self.guarantee_ = calibration, guarantee
        self.training_data_ = fitting.TrainingData(X, most_specific(Y, taxonomy)) if self.keep_training_data else None
        self.figures_: dict[str, Any] = {"documents": int(X.shape[0]), "features": int(X.shape[1])}
        self.figures_["taxonomy_from_labels"] = self.taxonomy is None
        if found is not None:
            self.figures_["columns"] = found
        self.sizes_, self.report_ = np.bincount(Y.indices, minlength=len(taxonomy)), None
        if kept is not None:
            self._fit_guarantee(kept.documents, taxonomy.encode(kept.rows), fitting.is_single_label(Y, taxonomy))
        return self

    def new_parts(self, system: System, taxonomy: Taxonomy, documents: Any = None) -> tuple[Any, Any]:
        """An unfitted vectorizer and learner: those that were given, or the system's. documents: that shall be vectorized."""
        params = given_params(self)
        vectorizer = system.vectorizer() if self.features is None else fitting.new_vectorizer(self.features, params["features"])
        if self.features is None:
            vectorizer.set_params(**params["features"])
        if documents is not None:
            vectorizer = vectorizer_for(documents, vectorizer, self.features is not None, params["features"])
        if "n_jobs" in vectorizer.get_params():
            vectorizer.set_params(n_jobs=self.n_jobs)
        given = self.learner
        learner = (
            system.learner().set_params(**params["learner"]) if given is None else fitting.new_learner(given, params["learner"])
        )
        return vectorizer, learner.set_params(taxonomy=taxonomy, n_jobs=self.n_jobs)

    def fit_guarantee(self, texts: Sequence[str], labels: Sequence[Any]) -> Self:
        """Fit the guarantee of :meth:`predict` on texts not used in training; it then holds for texts of the same source."""
        check_fitted(self)
        rows = [] if labels is None else read_labels(labels, self.taxonomy_).rows
        if not rows:
            raise InputError("there are no labelled texts to fit a guarantee on; give some that were not used in training.")
        Y = self.taxonomy_.encode(rows)
        self._fit_guarantee(texts, Y, fitting.is_single_label(Y, self.taxonomy_))
        return self

    def _fit_guarantee(self, texts: Any, Y: csr_array, is_single: bool) -> None:
        predictor = fit_conformal(self.decide_with_probabilities(texts)[1], Y, self.taxonomy_, not is_single)
        self.guarantee_ = Guarantee(predictor, Y.shape[0], is_proven=True)

    def partial_fit(
        self, texts: Any, labels: Any, taxonomy: Taxonomy | str | Path | None = None, *, classes: Any = None
    ) -> Self:
        """Train further on more texts; new words are added.

        nb, shrinkage-nb and pachinko-nb add up counts. taxonomy: the current one with nodes added, where labels need them;
        without it, new label paths add nodes if the taxonomy was read from labels. adaboost-mh and treeboost-mh add rounds on
        these texts, with the same classes; with the texts of the first fit this equals one longer training.
        classes: not needed, and taken for scikit-learn's sake; new ones are added when they come.
        """
        if self.__sklearn_is_fitted__():
            partial_fit(self, texts, labels, taxonomy)
            return self
        if taxonomy is not None:
            self.taxonomy = taxonomy
        return self.fit(texts, labels)

    # ---- predicting -------------------------------------------------------------------------------------------------

    def predict(self, texts: Any, risk: float | None = None, *, nodes: int = 1, by_branch: bool = False, top: int = 1) -> Any:
        """The most specific labels of each text, in the form in which labels were given.

        risk: back off to the deepest node that the true path passes through, except for a fraction `risk` of the texts; for
        multi-label documents, as many labels as keep the mean fraction of wrong ones within `risk`. A text may get no label,
        which counts as correct.
        texts: also a table, as in training; predictions are then a table with the column ``predicted`` and the same index.
        nodes: up to 2, 3, 5 or 10 nodes, one of which the true path passes through; texts then get lists of labels.
        by_branch: the guarantee also holds within every top-level branch; texts of branches with too few held-out documents
        get no label.
        top: more than 1 gives each text a list of so many labels: what it gets otherwise, then the most probable other labels
        that training documents have, all without a guarantee.
        """
        check_fitted(self)
        check_top(top, risk)
        if risk is None and (nodes != 1 or by_branch):
            raise InputError(WITHOUT_RISK)
        if by_branch and risk is not None and (problem := branches_without_guarantee(self, risk)):
            warnings.warn(problem, stacklevel=2)
        if is_text_table(texts):
            documents = read_text_table(texts, self.figures_.get("columns"))[0]
            return as_table(texts, self.predict(documents, risk, nodes=nodes, by_branch=by_branch, top=top))
        if top > 1:
            ranked = top_labels(*self.decide_with_probabilities(texts), self, top)
            return [self.form_.write_values(self.taxonomy_, row) for row in ranked]
        Y = self.predict_matrix(texts) if risk is None else self.decide_with_guarantee(texts, risk, nodes, by_branch)[0]
        is_one = risk is None or (nodes == 1 and predictor_of(self).kind == "coverage")
        form = self.form_ if is_one else replace(self.form_, multi_label=True)
        return form.predictions(Y, self.taxonomy_)

    def predict_matrix(self, texts: Sequence[str]) -> csr_array:
        """The labels of each text over all nodes: boolean CSR, closed upward."""
        check_fitted(self)
        return _stacked([Y for _, X in self._transformed(texts) for Y in self._decided(X)], len(self.taxonomy_))

    def _decided(self, X: Any) -> Iterator[csr_array]:
        """The labels of some vectors, block by block."""
        learner = self._parts()[1]
        by_sign = isinstance(self.decision_, (Sign, TopDown)) and self.decision_.threshold == 0
        sets: csr_array | None = learner.predict_sets(X) if by_sign else None
        if sets is not None:
            yield sets
            return
        mapped = learner.map_candidate_scores if self.scores_candidates_only else learner.map_scores
        yield from (Y for _, Y in mapped(X, self.decide))

    def _transformed(self, texts: Any) -> Iterator[tuple[int, Any]]:
        """The vectors of some texts at a time, with the number of the first: those of all texts may take gigabytes."""
        if is_text_table(texts):
            texts = read_text_table(texts, self.figures_.get("columns"))[0]
        texts = read_documents(texts)
        refuse_other_kind(texts, self.vectorizer_)
        vectorizer, has_slices = self._parts()[0], isinstance(texts, (list, tuple, np.ndarray))
        if not has_slices or len(texts) <= TEXTS:
            yield 0, vectorizer.transform(texts)
            return
        for start in range(0, len(texts), TEXTS):
            yield start, vectorizer.transform(texts[start : start + TEXTS])

    def decide(self, scores: NDArray[np.float32]) -> csr_array:
        """The labels that the decision rule gives for scores of the learner, documents × nodes."""
        return self.decision_.decide(fitting.values_for(self.decision_, self.learner_, scores), self.taxonomy_)

    def redecided(self, decision: DecisionRule) -> Self:
        """The same classifier with another decision rule; nothing is trained again."""
        check_fitted(self)
        if isinstance(decision, FittableRule) and not decision.is_fitted:
            advice = "give its parameters as numbers, fit it on held-out scores, or train the model with it"
            raise InputError(f"rule {decision.kind!r} is not fitted; {advice}.")
        fitting.refuse_misfit(decision, self.taxonomy_)
        made = copy(self)
        made.decision = made.decision_ = decision
        if self.calibration_ is None:  # probabilities are then the new rule's, and the guarantee is on others
            made.guarantee_ = None
        return made

    def predict_proba(self, texts: Any) -> NDArray[np.float32]:
        """Probabilities of each text over ``classes_``.

        Over all nodes, in taxonomy order, a parent's is never below a child's. With ``classes="labels"`` they are those of the
        labels themselves, and sum to one where documents have one label each.
        """
        P = self.decide_with_probabilities(texts)[1]
        if self.classes == "nodes":
            return P
        return label_probabilities(P, self.taxonomy_, class_nodes(self), not self.form_.multi_label)

    def decision_function(self, texts: Any) -> NDArray[np.float32]:
        """How well each of ``classes_`` fits as the label; the lowest number where a node has no classifier or no document.

        With two classes, one score per text, of the second against the first, as in scikit-learn.
        """
        check_fitted(self)
        columns = class_nodes(self)
        found = [finite_scores(part) for _, part in self.map_scores(texts, self.learner_.label_scores)]
        S = np.concatenate(found)[:, columns] if found else np.empty((0, len(columns)), dtype=np.float32)
        return S[:, 1] - S[:, 0] if len(columns) == 2 else S

    def decide_with_probabilities(self, texts: Sequence[str], labels_only: bool = False) -> Decided:
        """Labels and probabilities. labels_only: nodes that the rule rules out need no score, and may have probability 0."""
        return self._decide(texts, self.decide_both, labels_only)

    def decide_with_guarantee(self, texts: Sequence[str], risk: float, nodes: int = 1, by_branch: bool = False) -> Decided:
        """Labels within a risk, as in :meth:`predict`, and probabilities over all nodes."""
        check_fitted(self)
        predictor = predictor_of(self)

        def decide(scores: NDArray[np.float32]) -> Decided:
            P = self.decide_both(scores)[1]
            return predictor.decide(P, self.taxonomy_, risk, nodes, by_branch), P

        return self._decide(texts, decide, labels_only=False)

    def _decide(self, texts: Sequence[str], decide: Callable[[NDArray[np.float32]], Decided], labels_only: bool) -> Decided:
        pairs, width = [pair for _, pair in self.map_scores(texts, decide, labels_only)], len(self.taxonomy_)
        P = np.concatenate([p for _, p in pairs]) if pairs else np.empty((0, width), dtype=np.float32)
        return _stacked([Y for Y, _ in pairs], width), P

    @property
    def scores_candidates_only(self) -> bool:
        """Whether only a few nodes of each text are scored: the model is in shards, and its rule takes sparse scores."""
        check_fitted(self)
        return self.learner_.scores_candidates_only and self.decision_.takes_sparse

    def decide_sparse(self, texts: Sequence[str]) -> tuple[csr_array, csr_array]:
        """Labels and probabilities of a classifier that scores candidates only, both sparse: other nodes have probability 0."""
        mapped = self.learner_.map_candidate_scores
        pairs = [pair for _, X in self._transformed(texts) for _, pair in mapped(X, self.decide_both)]
        return _stacked([Y for Y, _ in pairs], len(self.taxonomy_)), _stacked([P for _, P in pairs], len(self.taxonomy_))

    def among(self, is_allowed: NDArray[np.bool_]) -> Self:
        """The same classifier, which scores only allowed nodes. is_allowed: one per node."""
        made = copy(self)
        made.learner_ = self.learner_.among(is_allowed)
        return made

    def decide_both(self, scores: NDArray[np.float32]) -> Decided:
        """Labels and probabilities; without a calibration, these are the refined ones of a rule that refines them."""
        values = fitting.values_for(self.decision_, self.learner_, scores)
        Y, refined = fitting.decide_by(self.decision_, values, self.taxonomy_)
        return Y, self.probabilities_of(scores, refined)

    @property
    def uses_main_parents(self) -> bool:
        """Whether the taxonomy is a DAG, and learner or rule work over its main-parent tree, ``taxonomy_.tree``."""
        check_fitted(self)
        return not self.taxonomy_.is_tree and (self.learner_.uses_main_parents or self.decision_.uses_main_parents)

    def uncalibrated(self) -> Self:
        """The same classifier with uncalibrated probabilities."""
        made = copy(self)
        made.calibration_ = made.guarantee_ = None
        return made

    def probabilities_of(self, scores: Any, refined: NDArray[np.floating[Any]] | None = None) -> Any:
        """Calibrated probabilities from scores; without a calibration, those of the rule or the learner."""
        if self.calibration_ is not None and not issparse(scores):
            values = self.learner_.convert_scores(scores, self.calibration_.takes)
            return self.calibration_.apply(values, self.taxonomy_).astype(np.float32)
        if refined is None:
            return self.learner_.to_probabilities(scores)
        return np.nan_to_num(refined, nan=0.0, neginf=0.0).astype(np.float32)

    def map_scores(
        self, texts: Sequence[str], work: Callable[[Any], Result], labels_only: bool = False
    ) -> Iterator[tuple[slice, Result]]:
        """Apply `work` to the scores of some texts at a time, documents × nodes."""
        check_fitted(self)
        learner = self._parts()[1]
        # top-down ignores everything below a node with a negative margin; a calibration needs the scores of all nodes
        from_top = isinstance(self.decision_, TopDown) and self.decision_.threshold >= 0
        positive_only = labels_only and from_top and self.calibration_ is None
        mapped = learner.map_positive_scores if positive_only else learner.map_scores
        for start, X in self._transformed(texts):
            for rows, found in mapped(X, work):
                yield slice(start + rows.start, start + rows.stop), found

    def score(self, texts: Any, labels: Any, sample_weight: Any = None) -> float:
        """Accuracy: the fraction of texts whose label set is exactly correct, weighted if weights are given."""
        check_fitted(self)
        T, Y = self.taxonomy_.encode(read_labels(labels, self.taxonomy_).rows), self.predict_matrix(texts)
        if sample_weight is None:
            return accuracy(T, Y, self.taxonomy_)
        weights = fitting.check_weights(sample_weight, T.shape[0])
        return float(np.average(exact_matches(T, Y, self.taxonomy_), weights=weights))

    def explain(self, text: Any, label: Any = None) -> Explanation:
        """Why a text gets its label, or does not get another one: words and reasons, node by node, against its rivals."""
        check_fitted(self)
        return explain(self, text, label)

    def summary(self) -> str:
        """The parts in use, and what training selected, in one sentence.

        >>> clf = TextClassifier("nb").fit(["sweet red apple", "rye bread crust"], ["food/fruit", "food/bread"])
        >>> clf.summary()
        'nb on single words (6 features); rule best; probabilities are not calibrated.'
        """
        check_fitted(self)
        vectorizer, selected = self.vectorizer_, self.learner_.selected_params()
        of = f" on {vectorizer.summary()}" if isinstance(vectorizer, (FeatureUnion, Vectorizer)) else ""
        parts = [f"{self.system}{of} ({self.learner_.n_features_in_:,} features)"]
        parts += [", ".join(f"{name} = {value:g}" for name, value in selected.items())] if selected else []
        calibrated = "calibrated probabilities" if self.calibration_ is not None else "probabilities are not calibrated"
        return "; ".join([*parts, f"rule {self.decision_.kind}", calibrated]) + "."

    def use_threads(self, n_jobs: int | None) -> None:
        """Set the number of threads, as in scikit-learn."""
        check_fitted(self)
        self.n_jobs = self.learner_.n_jobs = n_jobs
        if "n_jobs" in self.vectorizer_.get_params():
            self.vectorizer_.n_jobs = n_jobs

    def with_threads(self, n_jobs: int | None) -> Self:
        """A copy that uses so many threads."""
        made = copy(self)
        made.learner_, made.vectorizer_ = copy(self.learner_), copy(self.vectorizer_)
        made.__dict__.pop("_used_features", None)
        made.use_threads(n_jobs)
        return made

    # ---- saving -----------------------------------------------------------------------------------------------------

    def save(self, path: str | Path, shards: int | None = None, *, overwrite: bool = True) -> None:
        """Write a model directory; an older model at the same place is replaced in one step, unless overwrite is False.

        shards: split the weights of a large svm, lr, hr-svm or hr-lr into so many files, at most one per class. They stay on
        disk when loaded, and only the most probable classes of a text are scored. A model loaded from shards stays in shards.
        """
        check_fitted(self)
        refuse_existing(path, overwrite)
        write_model(path, to_stored(self, shards))

    def _parts(self) -> tuple[Any, Learner]:
        """Vectorizer and learner, both over the features that the learner uses; they give the same scores."""
        vectorizer = self.vectorizer_
        found = self.learner_.with_used_features() if isinstance(vectorizer, BaseVectorizer) else None
        if found is None or not len(found[0]):
            return vectorizer, self.learner_
        columns, learner = found
        of_vectorizer, of_learner, narrow = self._used_features  # read once, since other threads may write it
        if of_vectorizer is not vectorizer or of_learner is not learner:
            narrow = copy(vectorizer)
            narrow.select_columns(columns)
            self._used_features = vectorizer, learner, narrow
        if "n_jobs" in vectorizer.get_params():
            narrow.n_jobs = vectorizer.n_jobs
        return narrow, learner


def _stacked(blocks: list[csr_array], n_nodes: int) -> csr_array:
    if len(blocks) == 1:
        return blocks[0]
    return csr_array(vstack(blocks, format="csr")) if blocks else csr_array((0, n_nodes), dtype=bool)
