"""fastText from texts: lower-case words, 25 epochs as its tutorial recommends, learning rate 1.

It takes texts in the order of its file, so they are shuffled, as in its examples: sorted by class it would forget the first.
With several labels a text, as its tutorial says: one-vs-all loss, learning rate 0.5, labels above one half, at least the best.
"""

import random
import re

import fasttext

from peers.fasttext import MANY_CLASSES
from peers.texts import TextPeer, run

WORD = re.compile(r"\b\w\w+\b")
PREFIX = "__label__"


class FastTextOnTexts(TextPeer):
    """Trains with several threads; predicts with one, its only way."""

    package = "fasttext-wheel"

    def train(self):
        """It reads a file, whose writing counts."""
        problem, file = self.problem, self.scratch / "train.txt"
        pairs = list(zip(problem.train, problem.labels, strict=True))
        random.Random(0).shuffle(pairs)
        with file.open("w", encoding="utf-8") as lines:
            for text, nodes in pairs:
                # without a loss of its own for each label, it would draw one of several at random
                named = " ".join(f"{PREFIX}{node}" for node in (nodes if problem.gives_several else nodes[:1]))
                lines.write(f"{named} {_words(text)}\n")
        single = "softmax" if len(problem.classes) <= MANY_CLASSES else "hs"
        loss, rate = ("ova", 0.5) if problem.gives_several else (single, 1.0)
        self.model = fasttext.train_supervised(str(file), lr=rate, epoch=25, loss=loss, thread=self.threads, verbose=0)

    def predict(self):
        """All texts in one call."""
        k = -1 if self.problem.gives_several else 1
        found = self.model.predict([_words(text) for text in self.problem.test], k=k)
        return [_taken(labels, chances) for labels, chances in zip(*found, strict=True)]


def _taken(labels, chances):
    """Labels come best first."""
    is_taken = (rank == 0 or chance > 0.5 for rank, chance in enumerate(chances))
    return [int(label.removeprefix(PREFIX)) for label, taken in zip(labels, is_taken, strict=True) if taken]


def _words(text):
    return " ".join(WORD.findall(text.lower()))


if __name__ == "__main__":
    run(FastTextOnTexts)
