"""HiClass from texts: tf-idf of words, and a LinearSVC at each parent of the taxonomy, descending from the root.

It learns one label a text, the first, and answers with one. Of several parents of a node the first counts.
"""

import joblib
import numpy as np
from hiclass import LocalClassifierPerParentNode
from sklearn.svm import LinearSVC

from peers.hiclass import paths_of
from peers.text_sklearn import words
from peers.texts import TextPeer, run


class HiClassOnTexts(TextPeer):
    """Words and classifiers are those of the scikit-learn row, so that only the hierarchy differs."""

    package = "hiclass"

    def train(self):
        """Threads rather than processes, where there are several."""
        parent = np.array([above[0] if above else -1 for above in self.problem.parents])
        self.features = words()
        self.model = LocalClassifierPerParentNode(local_classifier=LinearSVC(C=1.0), n_jobs=self.threads)
        with joblib.parallel_config(backend="threading"):
            X = self.features.fit_transform(self.problem.train)
            self.model.fit(X, paths_of(self.problem.first_labels, parent))

    def predict(self):
        """The last node of each predicted path."""
        paths = np.atleast_2d(self.model.predict(self.features.transform(self.problem.test)))
        deepest = (paths != "").sum(axis=1) - 1
        return [[int(path[last])] for path, last in zip(paths, deepest, strict=True)]


if __name__ == "__main__":
    run(HiClassOnTexts)
