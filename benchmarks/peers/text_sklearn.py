"""tf-idf and LinearSVC of scikit-learn, C = 1, one-vs-rest, on texts; ``features=words`` or ``features=blocks``.

Words: ``TfidfVectorizer(sublinear_tf=True)``. Blocks: the words and characters that Ramify uses, in a FeatureUnion. Where a
training text has several labels, LinearSVC needs a OneVsRestClassifier around it.
"""

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion
from sklearn.preprocessing import MultiLabelBinarizer
from sklearn.svm import LinearSVC

from peers.texts import TextPeer, above_or_best, run


class SklearnOnTexts(TextPeer):
    """Uses one thread, its only way for this learner."""

    package = "scikit-learn"

    def train(self):
        """Defaults, apart from 1 + ln(count)."""
        problem = self.problem
        self.features = words() if self.options["features"] == "words" else _union(problem.blocks)
        X = self.features.fit_transform(problem.train)
        if all(len(nodes) == 1 for nodes in problem.labels):
            self.model = LinearSVC(C=1.0).fit(X, problem.first_labels)
            self.classes = self.model.classes_
        else:
            binarizer = MultiLabelBinarizer(sparse_output=True)
            self.model = OneVsRestClassifier(LinearSVC(C=1.0)).fit(X, binarizer.fit_transform(problem.labels))
            self.classes = binarizer.classes_
        self.n_features = X.shape[1]

    def predict(self):
        """The class with the largest score; with several labels, those with a score above 0, at least the best one."""
        scores = self.model.decision_function(self.features.transform(self.problem.test))
        if scores.ndim == 1:
            scores = np.column_stack([-scores, scores])
        return above_or_best(scores, self.classes, self.problem.gives_several)

    def facts(self):
        """How many terms there are."""
        return {"features": self.n_features}


def words():
    """Words as in all rows of peers."""
    return TfidfVectorizer(sublinear_tf=True)


def _union(blocks):
    parts, weights = [], {}
    for number, block in enumerate(blocks):
        settings = {key: tuple(value) if isinstance(value, list) else value for key, value in block.items() if key != "weight"}
        parts.append((str(number), TfidfVectorizer(sublinear_tf=True, **settings)))
        weights[str(number)] = block["weight"]
    return FeatureUnion(parts, transformer_weights=weights)


if __name__ == "__main__":
    run(SklearnOnTexts)
