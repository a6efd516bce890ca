"""Ramify from texts: its default, a system as ``system=svm``, or the command ``ramify train --auto`` as ``minutes=5``."""

import json
import subprocess
import sys
import warnings
from pathlib import Path

from peers.texts import TextPeer, run
from ramify import TextClassifier, load  # here, since imports are not counted in any row
from ramify.taxonomy import Taxonomy, most_specific


class RamifyOnTexts(TextPeer):
    """Probabilities are calibrated, as they are by default."""

    package = "ramify"

    def prepare(self):
        """Labels have names, here the numbers of nodes; the command reads files."""
        edges = [(str(v), str(p)) for v, above in enumerate(self.problem.parents) for p in above]
        roots = [(str(v), None) for v, above in enumerate(self.problem.parents) if not above]
        self.taxonomy = Taxonomy.from_edges([*roots, *edges])
        self.labels = [[str(node) for node in nodes] for nodes in self.problem.labels]
        if "minutes" in self.options:
            rows = ({"text": t, "labels": n} for t, n in zip(self.problem.train, self.labels, strict=True))
            (self.scratch / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
            lines = (f"{child}\t{parent or 'ROOT'}\n" for child, parent in [*roots, *edges])
            (self.scratch / "taxonomy.tsv").write_text("".join(lines))

    def train(self):
        """The class, or the command."""
        if "minutes" in self.options:
            self.model = self._train_by_command()
            return
        system = {"system": self.options["system"]} if "system" in self.options else {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # classes with few documents are no news here
            model = TextClassifier(taxonomy=self.taxonomy, n_jobs=self.threads, **system)
            self.model = model.fit(self.problem.train, self.labels)

    def predict(self):
        """By the rule of the model."""
        own = most_specific(self.model.predict_matrix(self.problem.test), self.model.taxonomy_)
        names = [int(name) for name in self.model.taxonomy_.names]
        return [[names[v] for v in own.indices[a:b]] for a, b in zip(own.indptr[:-1], own.indptr[1:], strict=True)]

    def facts(self):
        """What was chosen."""
        return {"system": self.model.system, "selected": self.model.learner_.selected_params()}

    def _train_by_command(self):
        files = [self.scratch / "train.jsonl", "--taxonomy", self.scratch / "taxonomy.tsv", "--model", self.scratch / "model"]
        limits = ["--minutes", self.options["minutes"], "--threads", self.threads, "--holdout", 0, "--force"]
        command = [Path(sys.executable).with_name("ramify"), "train", *files, "--auto", *limits]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(done.stderr.strip().splitlines()[-1])
        return load(self.scratch / "model")


if __name__ == "__main__":
    run(RamifyOnTexts)
