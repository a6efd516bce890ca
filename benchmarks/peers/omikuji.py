"""Omikuji with its defaults, which are Parabel's: three balanced binary label trees, hinge loss, beam search of 10."""

import os

import omikuji

from peers.skeleton import Peer, run


class Omikuji(Peer):
    """Reads training data from a file only; writing it is not counted, reading it is."""

    package = "omikuji"

    def prepare(self):
        """The format of the extreme classification repository: a head line, then ``label feature:value …``."""
        X, columns = self.problem.X_train, self.problem.columns.tolist()
        self.file = self.scratch / "train.txt"
        with self.file.open("w") as file:
            file.write(f"{X.shape[0]} {X.shape[1]} {len(self.problem.classes)}\n")
            for row, column in enumerate(columns):
                file.write(f"{column} {' '.join(f'{feature}:{value:.7g}' for feature, value in _pairs(X, row))}\n")

    def train(self):
        """Three trees, as Parabel has them."""
        self.model = omikuji.Model.train_on_data(str(self.file), n_threads=self.threads)

    def save(self):
        """Weights made dense where more than one in ten is not 0: its default for faster prediction."""
        self.model.save(str(self.folder))
        self.model = omikuji.Model.load(str(self.folder))
        self.model.init_prediction_thread_pool(self.threads)
        self.model.densify_weights(0.1, n_threads=self.threads)

    def predict(self):
        """Its interface takes one document at a time, as (feature, value) pairs."""
        X = self.problem.X_test
        best = [self.model.predict(_pairs(X, row), top_k=1) for row in range(X.shape[0])]
        return [self.problem.classes[found[0][0]] if found else -1 for found in best]


def _pairs(X, row):
    inside = slice(X.indptr[row], X.indptr[row + 1])
    return list(zip(X.indices[inside].tolist(), X.data[inside].tolist(), strict=True))


if __name__ == "__main__":
    os.environ.setdefault("RUST_LOG", "error")
    run(Omikuji)
