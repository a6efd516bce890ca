"""LIBLINEAR's own Python interface, ``-s 3``: one L1-loss machine a class, dual coordinate descent.

With ``multicore=true`` the package must be liblinear-multicore, which works on one class with several threads.
"""

import numpy as np
from liblinear.liblinearutil import predict, problem, save_model, train

from peers.skeleton import Peer, run


class Liblinear(Peer):
    """The default stopping tolerance, 0.1, and a bias feature of 1."""

    C = 1.0

    @property
    def package(self):
        """Two distributions provide the same module."""
        return "liblinear-multicore" if self.options.get("multicore") else "liblinear-official"

    def train(self):
        """Turning the arrays into LIBLINEAR's nodes is part of the time."""
        threads = f" -m {self.threads}" if self.options.get("multicore") else ""
        data = problem(self.problem.y_train.astype(float), self.problem.X_train, 1)
        self.model = train(data, f"-s 3 -c {self.C} -B 1 -q{threads}")

    def save(self):
        """Its text format."""
        save_model(str(self.folder / "model"), self.model)

    def predict(self):
        """Decision values come along; its interface cannot leave them out."""
        labels, _, _ = predict([], self.problem.X_test, self.model, "-q")
        return labels

    def weights(self):
        """Its weights lie feature by feature, classes in the order in which it met them."""
        n_features, n_classes = self.problem.X_train.shape[1] + 1, self.model.nr_class
        by_feature = np.ctypeslib.as_array(self.model.w, shape=(n_features * n_classes,)).reshape(n_features, n_classes)
        return by_feature.T[np.argsort(self.model.get_labels())]


if __name__ == "__main__":
    run(Liblinear)
