"""PECOS XR-Linear: a label tree from hierarchical k-means over PIFA embeddings, squared-hinge machines in it, beam search."""

from pecos.xmc import Indexer, LabelEmbeddingFactory
from pecos.xmc.xlinear.model import XLinearModel

from peers.skeleton import Peer, run


class Pecos(Peer):
    """The defaults of its Python interface: 16 branches, 100 labels a leaf, beam of 20."""

    package = "libpecos"

    def train(self):
        """Label embeddings and the tree are part of training."""
        X, Y = self.problem.X_train, self.problem.one_hot()
        X.sort_indices()
        embedded = LabelEmbeddingFactory.create(Y, X, method="pifa")
        tree = Indexer.gen(embedded, indexer_type="hierarchicalkmeans", threads=self.threads)
        self.model = XLinearModel.train(X, Y, C=tree, threads=self.threads)

    def save(self):
        """Its predict-only form, loaded from the disk, is its fast one."""
        self.model.save(str(self.folder))
        self.model = XLinearModel.load(str(self.folder), is_predict_only=True)

    def predict(self):
        """Only the best label is asked for."""
        X = self.problem.X_test
        X.sort_indices()
        best = self.model.predict(X, only_topk=1, threads=self.threads)
        return self.problem.classes[best.indices]


if __name__ == "__main__":
    run(Pecos)
