"""scikit-learn's LinearSVC: one hinge-loss machine a class, by dual coordinate descent (its own copy of liblinear)."""

import joblib
import numpy as np
from sklearn.svm import LinearSVC

from peers.skeleton import Peer, run


class Sklearn(Peer):
    """Uses one thread: LinearSVC has no other way."""

    package = "scikit-learn"
    C = 1.0

    def train(self):
        """tol=0.1 is liblinear's own default for this loss; scikit-learn's, 1e-4, would take longer."""
        self.model = LinearSVC(loss="hinge", C=self.C, tol=0.1).fit(self.problem.X_train, self.problem.y_train)

    def save(self):
        """As its documentation says: with joblib."""
        joblib.dump(self.model, self.folder / "model.joblib")

    def predict(self):
        """The class with the largest decision value."""
        return self.model.predict(self.problem.X_test)

    def weights(self):
        """The bias is a constant feature of 1, regularized like the others."""
        return np.column_stack([self.model.coef_, self.model.intercept_])


if __name__ == "__main__":
    run(Sklearn)
