"""fastText, supervised: learning rate 1 and 25 epochs as its tutorial recommends.

It reads words, not weights: each feature of a document that is not 0 becomes one word ``f123``. Term weights and word order are
lost to it, so word n-grams mean nothing here.
"""

import fasttext
import numpy as np

from peers.skeleton import Peer, run

MANY_CLASSES = 1000


class FastText(Peer):
    """Trains with several threads; predicts with one, its only way."""

    package = "fasttext-wheel"

    def prepare(self):
        """Texts are made beforehand, for training and for prediction."""
        labels, words = self.problem.y_train.tolist(), _texts(self.problem.X_train)
        self.file = self.scratch / "train.txt"
        self.file.write_text("".join(f"__label__{label} {text}\n" for label, text in zip(labels, words, strict=True)))
        self.texts = _texts(self.problem.X_test)

    def train(self):
        """Softmax, or with many classes hierarchical softmax, as its tutorial says."""
        loss = "softmax" if len(self.problem.classes) <= MANY_CLASSES else "hs"
        self.model = fasttext.train_supervised(str(self.file), lr=1.0, epoch=25, loss=loss, thread=self.threads, verbose=0)

    def save(self):
        """Not quantized, which would cost accuracy."""
        self.model.save_model(str(self.folder / "model.bin"))

    def predict(self):
        """All texts in one call."""
        best, _ = self.model.predict(self.texts)
        return np.array([int(labels[0].removeprefix("__label__")) for labels in best])


def _texts(X):
    words = np.char.add("f", X.indices.astype(str)).tolist()
    return [" ".join(words[start:end]) for start, end in zip(X.indptr[:-1], X.indptr[1:], strict=True)]


if __name__ == "__main__":
    run(FastText)
