"""napkinXC's probabilistic label tree with its defaults: balanced 2-means tree, logistic loss by liblinear with C = 10."""

import numpy as np
from napkinxc.models import PLT

from peers.skeleton import Peer, run


class NapkinXC(Peer):
    """Writes its model while it trains; that cannot be kept out of the training time."""

    package = "napkinxc"

    def train(self):
        """Takes arrays; labels as a list of one a document."""
        self.model = PLT(str(self.folder), threads=self.threads, seed=0)
        self.model.fit(self.problem.X_train, [[column] for column in self.problem.columns.tolist()])

    def save(self):
        """It is saved; load it before the first prediction does so."""
        self.model.load()

    def predict(self):
        """The most probable label, by exact search."""
        best = self.model.predict(self.problem.X_test, top_k=1)
        return self.problem.classes[np.asarray(best).ravel()]


if __name__ == "__main__":
    run(NapkinXC)
