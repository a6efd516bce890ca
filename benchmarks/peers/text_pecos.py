"""PECOS XR-Linear from texts: scikit-learn's tf-idf of words, a label tree by hierarchical k-means, squared-hinge machines."""

import numpy as np
from pecos.xmc import Indexer, LabelEmbeddingFactory
from pecos.xmc.xlinear.model import XLinearModel
from scipy.sparse import csr_matrix

from peers.text_sklearn import words
from peers.texts import TextPeer, above_or_best, run

THRESHOLD = 0.5  # of its scores, which are between 0 and 1


class PecosOnTexts(TextPeer):
    """The defaults of its Python interface: 16 branches, 100 labels a leaf, beam of 20."""

    package = "libpecos"

    def train(self):
        """Label embeddings and the tree are part of training."""
        self.features = words()
        X, Y = self._matrix(self.features.fit_transform(self.problem.train)), self._label_matrix()
        embedded = LabelEmbeddingFactory.create(Y, X, method="pifa")
        tree = Indexer.gen(embedded, indexer_type="hierarchicalkmeans", threads=self.threads)
        self.model = XLinearModel.train(X, Y, C=tree, threads=self.threads)

    def predict(self):
        """The best label; with several labels, those above one half, at least the best one."""
        X = self._matrix(self.features.transform(self.problem.test))
        several = self.problem.gives_several
        found = self.model.predict(X, only_topk=20 if several else 1, threads=self.threads)
        return above_or_best(found.toarray(), self.problem.classes, several, THRESHOLD)

    def _label_matrix(self):
        sizes = [len(nodes) for nodes in self.problem.labels]
        columns = np.searchsorted(self.problem.classes, np.concatenate(self.problem.labels))
        ones, ends = np.ones(len(columns), dtype=np.float32), np.concatenate([[0], np.cumsum(sizes)])
        Y = csr_matrix((ones, columns, ends), shape=(len(sizes), len(self.problem.classes)))
        Y.sort_indices()
        return Y

    def _matrix(self, X):
        X = csr_matrix(X, dtype=np.float32)
        X.sort_indices()
        return X


if __name__ == "__main__":
    run(PecosOnTexts)
