"""A learner of Ramify: ``learner=OneVsRestSVM``, and its parameters as further options (``mode=fast``, ``C=1``).

``search=5`` predicts by ``search`` with that width instead of scoring every class.
"""

import sys

import numpy as np
from scipy.sparse import csr_array, eye_array

from peers.skeleton import Peer, run
from ramify import learners
from ramify.persistence import StoredModel, write_model
from ramify.taxonomy import Taxonomy, most_specific

ONE_VS_REST = {"OneVsRestSVM"}  # each class's weights stand alone, so that their objective can be compared
BLOCK = 4096


class Ramify(Peer):
    """Runs in the environment from which the benchmarks are started."""

    package = "ramify"

    def train(self):
        """The taxonomy is built from the parent array within the time."""
        name = self.options["learner"]
        if not hasattr(learners, name):
            sys.exit(f"ramify.learners has no {name}")
        parameters = {key: value for key, value in self.options.items() if key not in ("learner", "search")}
        self.learner = getattr(learners, name)(_taxonomy(self.problem.parent), n_jobs=self.threads, **parameters)
        self.learner.fit(csr_array(self.problem.X_train), _label_matrix(self.problem.y_train, len(self.problem.parent)))

    def save(self):
        """As a model directory."""
        values, arrays = self.learner.state()
        write_model(self.folder / "model", StoredModel(values, {}, arrays))

    def predict(self):
        """The most specific node of each predicted label set, or the best node that a search finds."""
        if "search" in self.options:
            nodes, _ = self.learner.search(csr_array(self.problem.X_test), k=1, width=int(self.options["search"]))
            return nodes[:, 0]
        predicted = self.learner.predict(csr_array(self.problem.X_test))
        return most_specific(predicted, self.learner.taxonomy_).indices

    def weights(self):
        """Read off the scores: those of nothing are the biases, those of single features the weights and biases."""
        if self.options["learner"] not in ONE_VS_REST:
            return None
        classes, single = self.problem.classes, eye_array(self.problem.X_train.shape[1], dtype=np.float32, format="csr")
        bias = self.learner.scores(csr_array((1, single.shape[0]), dtype=np.float32))[:, classes]
        blocks = [self.learner.scores(single[at : at + BLOCK])[:, classes] - bias for at in range(0, single.shape[0], BLOCK)]
        return np.concatenate([*blocks, bias]).T

    def facts(self):
        """The learner's C and relative duality gap, where it has them."""
        gap = getattr(self.learner, "gap_", None)
        return {"C": getattr(self.learner, "C", None), "gap": None if gap is None else float(np.max(gap))}


def _taxonomy(parent):
    return Taxonomy.from_edges((str(v), None if p < 0 else str(p)) for v, p in enumerate(parent.tolist()))


def _label_matrix(nodes, n_nodes):
    ones, ends = np.ones(len(nodes), dtype=bool), np.arange(len(nodes) + 1)
    return csr_array((ones, nodes, ends), shape=(len(nodes), n_nodes))


if __name__ == "__main__":
    run(Ramify)
