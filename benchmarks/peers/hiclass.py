"""HiClass: a LinearSVC at each parent of the taxonomy, descending from the root."""

import joblib
import numpy as np
from hiclass import LocalClassifierPerParentNode
from sklearn.svm import LinearSVC

from peers.skeleton import Peer, run


class HiClass(Peer):
    """The local classifiers are set as in the scikit-learn row, so that only the hierarchy differs."""

    package = "hiclass"

    def train(self):
        """Threads rather than processes: LinearSVC lets go of the interpreter, and nothing has to be copied."""
        local = LinearSVC(loss="hinge", tol=0.1)
        self.model = LocalClassifierPerParentNode(local_classifier=local, n_jobs=self.threads)
        with joblib.parallel_config(backend="threading"):
            self.model.fit(self.problem.X_train, paths_of(self.problem.y_train, self.problem.parent))

    def save(self):
        """With joblib, as for any scikit-learn estimator."""
        joblib.dump(self.model, self.folder / "model.joblib")

    def predict(self):
        """The last node of each predicted path."""
        paths = np.atleast_2d(self.model.predict(self.problem.X_test))
        deepest = (paths != "").sum(axis=1) - 1
        return paths[np.arange(len(paths)), deepest].astype(np.int64)


def paths_of(nodes, parent):
    """Documents × levels, as HiClass wants labels: node numbers as text from the top down, empty below the last one.

    A single root above everything decides nothing and is left out.
    """
    top = -1 if (parent == -1).sum() > 1 else int(np.flatnonzero(parent == -1)[0])
    path_of = {node: _path_to_top(node, parent, top) for node in np.unique(nodes).tolist()}
    n_levels = max(map(len, path_of.values()))
    padded = {node: path + [""] * (n_levels - len(path)) for node, path in path_of.items()}
    return np.array([padded[node] for node in nodes.tolist()])


def _path_to_top(node, parent, top):
    path = []
    while node != top:
        path.insert(0, str(node))
        node = int(parent[node])
    return path


if __name__ == "__main__":
    run(HiClass)
