"""What Ramify writes, as scenarios: what is there before, the steps that write, and how to tell what is there.

A step that returns is acknowledged: from then on its effect must survive whatever fails. Inputs lie outside of the folder whose
calls fail, so that only what is written there can go wrong.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

import ramify
from ramify.cli.main import main
from ramify.errors import InputError, ModelError
from ramify.persistence import read_model

WORDS = {"food/fruit/apple": "red apple core", "food/fruit/pear": "ripe pear stalk", "food/bread": "rye bread crust"}
WORDS |= {"drink/tea": "black tea leaf", "drink/coffee": "ground coffee bean"}
TEXTS = ["red apple", "rye bread and a pear", "tea leaf", "bean", "nothing that is known"]


@dataclass
class Place:
    """Where a scenario takes place. work: the folder whose calls fail. inputs: what it is given, outside of it."""

    root: Path
    refuses_swaps: bool = False
    told: int = -1

    @property
    def work(self) -> Path:
        return self.root / "work"

    @property
    def inputs(self) -> Path:
        return self.root / "inputs"

    def acknowledge(self, line: str) -> None:
        """Say outside of the folder what is done."""
        os.write(self.told, f"{line}\n".encode())


class Ended(NamedTuple):
    """How a child ended. code: its exit code, negative for a signal, None if it had to be stopped. trace: the counted calls."""

    code: int | None
    stderr: str
    acknowledged: list[str]
    trace: list[list[str]]
    answer: Any = None

    @property
    def failing(self) -> list[str] | None:
        """The first call that was made to fail."""
        return next((line for line in self.trace if line[-1] == "fails"), None)

    @property
    def n_acknowledged(self) -> int:
        return int(self.acknowledged[-1]) if self.acknowledged else 0


Step = Callable[[Place], None]


@dataclass(frozen=True)
class Scenario:
    """Something that writes. outcome: what is there, as a list of parts; every part is as before a step, or as after it.

    again: what a user does after the fault, if it is not the same. may_leave: leftovers are allowed until the next run.
    """

    name: str
    prepare: Step
    steps: Sequence[Step]
    outcome: Callable[[Place], list[Any]]
    again: Sequence[Step] = ()
    refuses_swaps: bool = False
    may_leave: bool = False
    goes_on: ClassVar[bool] = False  # whether steps follow one that was refused

    def judge(self, outcomes: list[Any], found: list[Any], ended: Ended) -> list[str]:
        """What is wrong with what is there: it is as after the last step that was acknowledged, or as after the next one."""
        last = len(outcomes) - 1 if ended.code == 0 else ended.n_acknowledged
        problems = []
        for k, part in enumerate(found):
            allowed = [outcome[k] for outcome in outcomes[last : last + 2]]
            if part not in allowed:
                problems.append(f"part {k} is {part}, which is none of {allowed}")
            elif part != allowed[0] and self.says_unchanged(k, ended.stderr):
                problems.append(f"part {k} has changed, but the message is {ended.stderr.splitlines()[-1]!r}")
        return problems

    def says_unchanged(self, part: int, message: str) -> bool:
        """Whether a message says that a part is unchanged."""
        is_meant = not isinstance(self.outcome, Parts) or f"/{self.outcome.names[part]}: " in message
        return "unchanged" in message and is_meant


@dataclass(frozen=True)
class ServerScenario(Scenario):
    """Steps that are requests of their own; the outcome is a list of sets, to which every step adds."""

    goes_on: ClassVar[bool] = True
    may_leave: bool = True  # the log, until a writer closes the file

    def judge(self, outcomes: list[Any], found: list[Any], ended: Ended) -> list[str]:
        """Whatever was acknowledged is there, and nothing that nobody sent."""
        problems = []
        for k in range(len(found)):
            for step in map(int, ended.acknowledged):
                if lost := set(outcomes[step][k]) - set(outcomes[step - 1][k]) - set(found[k]):
                    problems.append(f"lost after it was acknowledged: {sorted(lost)}")
            if more := set(found[k]) - set(outcomes[-1][k]):
                problems.append(f"there is {sorted(more)}, which nobody sent")
            if len(set(found[k])) < len(found[k]):
                problems.append(f"something is there twice: {found[k]}")
        return problems


# ---- inputs, and what is there ------------------------------------------------------------------------------------------


def documents(n: int, odd: str = "") -> tuple[list[str], list[str]]:
    """Texts and labels: n of each leaf."""
    rows = [(f"{words} {odd} more{7 * k % 23} rare{label[-3:]}{k}", label) for k in range(n) for label, words in WORDS.items()]
    return [text for text, _ in rows], [label for _, label in rows]


def write_table(path: Path, n: int, odd: str = "") -> None:
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *zip(*documents(n, odd), strict=True)])


def fitted(system: str = "nb", odd: str = "", **settings: Any) -> ramify.TextClassifier:
    return ramify.TextClassifier(system, n_jobs=1, **settings).fit(*documents(6, odd))


def command(*arguments: str) -> Step:
    """A command line; {inputs} and {work} are the folders."""

    def step(place: Place) -> None:
        given = [argument.format(inputs=place.inputs, work=place.work) for argument in arguments]
        if code := main(given):
            raise SystemExit(code)

    return step


def model_at(path: Path) -> str:
    """What identifies a model: its answers and the hashes of its files; "none" where there is nothing."""
    try:
        classifier = ramify.load(path)  # also where it stands aside
    except ModelError as error:
        if "no such directory" in str(error):
            return "none"
        raise
    answers = np.asarray(classifier.predict_proba(TEXTS))
    stored = read_model(path)
    arrays = [f"{name}: {hashlib.sha256(array.tobytes()).hexdigest()}" for name, array in sorted(stored.arrays.items())]
    shards = [shard.sha256 for shard in stored.shards]
    told = json.dumps([classifier.predict(TEXTS).tolist(), stored.documents, arrays, shards])
    return hashlib.sha256(answers.tobytes() + told.encode()).hexdigest()[:12]


def file_at(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12] if path.exists() else "none"


class Parts(NamedTuple):
    """The outcome that consists of the model and of files."""

    names: tuple[str, ...]

    def __call__(self, place: Place) -> list[Any]:
        return [model_at(place.work / name) if name == "model" else file_at(place.work / name) for name in self.names]


def parts(*names: str) -> Parts:
    return Parts(names)


# ---- models -------------------------------------------------------------------------------------------------------------


def with_two_models(place: Place) -> None:
    fitted().save(place.work / "model")
    fitted(odd="other").save(place.inputs / "new")


def with_one_model(place: Place) -> None:
    fitted(odd="other").save(place.inputs / "new")


def save(place: Place) -> None:
    ramify.load(place.inputs / "new").save(place.work / "model")


def with_shards(place: Place) -> None:
    fitted("svm").save(place.work / "model", shards=2)
    fitted("svm", odd="other").save(place.inputs / "new", shards=2)


def with_titles(place: Place) -> None:
    classifier = fitted("svm")
    classifier.save(place.work / "model", shards=2)
    names = classifier.taxonomy_.names
    rows = [(name, name.rpartition("/")[0], name.rpartition("/")[2].upper()) for name in names]
    lines = ["id\tparent\ttitle", *("\t".join(row) for row in rows)]
    (place.inputs / "newer.tsv").write_text("\n".join(lines) + "\n")


def with_updates(place: Place) -> None:
    fitted(keep_training_data=True, system="svm").save(place.work / "model")
    paths = [name.replace("food/bread", "food/baked/bread") for name in WORDS]
    (place.inputs / "newer.txt").write_text("\n".join(paths) + "\n")


def with_more(place: Place) -> None:
    fitted().save(place.work / "model")
    write_table(place.inputs / "more.csv", 2, "newer")


def add_documents(place: Place) -> None:
    command(*UPDATE, "--data", "{inputs}/more.csv")(place)


def add_documents_once(place: Place) -> None:
    """As a user does it who was not told whether it is done, and looks; either way the model is saved again."""
    model = ramify.load(place.work / "model")
    if "newer" in model.vectorizer_.get_feature_names_out():
        model.save(place.work / "model")
        (place.work / ".model.lock").unlink(missing_ok=True)  # stays until the next update
    else:
        add_documents(place)


UPDATE = ("update", "{work}/model", "--threads", "1")
MODELS = (
    Scenario("save", with_two_models, [save], parts("model")),
    Scenario("save the first", with_one_model, [save], parts("model")),
    Scenario("save by moving aside", with_two_models, [save], parts("model"), refuses_swaps=True),
    Scenario("save shards", with_shards, [save], parts("model")),
    Scenario("update by documents", with_more, [add_documents], parts("model"), [add_documents_once]),
    Scenario("update by a taxonomy", with_updates, [command(*UPDATE, "--taxonomy", "{inputs}/newer.txt")], parts("model")),
    Scenario("update titles", with_titles, [command(*UPDATE, "--taxonomy", "{inputs}/newer.tsv")], parts("model")),
)


# ---- training -----------------------------------------------------------------------------------------------------------


def with_tickets(place: Place) -> None:
    fitted().save(place.work / "model")
    write_table(place.inputs / "tickets.csv", 10)
    (place.inputs / "parts").mkdir()
    for k in range(2):
        write_table(place.inputs / "parts" / f"{k}.csv", 4, f"part{k}")


def saving_every_round() -> None:
    from ramify import parallel

    if not isinstance(parallel.Checkpoints, partial):
        parallel.Checkpoints = partial(parallel.Checkpoints, work_per_save=0)  # type: ignore[misc, assignment]


def train_with_checkpoints(system: str, place: Place, resume: bool = False) -> None:
    saving_every_round()
    kept = place.work / "checkpoints"
    more = ["--resume"] if resume and kept.exists() else []
    arguments = ["train", "{inputs}/tickets.csv", "--model", "{work}/model", "--force", "--system", system, "--threads", "1"]
    command(*arguments, "--holdout", "0", "--checkpoints", str(kept), *more)(place)
    with suppress(OSError):
        kept.rmdir()  # an empty one may stay, since somebody may have made it


def resuming(system: str, resume: bool) -> Scenario:
    name = f"checkpoints of {system}, {'resumed' if resume else 'begun anew'}"
    steps, again = [partial(train_with_checkpoints, system)], [partial(train_with_checkpoints, system, resume=resume)]
    return Scenario(name, with_tickets, steps, parts("model"), again, may_leave=True)


TRAIN = ("train", "{inputs}/tickets.csv", "--model", "{work}/model", "--force", "--threads", "1")
TRAINING = (
    Scenario("train", with_tickets, [command(*TRAIN, "--report", "{work}/page.html")], parts("model", "page.html")),
    Scenario(
        "train on many files",
        with_tickets,
        [command("train", "{inputs}/parts", "--model", "{work}/model", "--force", "--system", "nb", "--threads", "1")],
        parts("model"),
    ),
    *(resuming(system, resume) for system in ("hr-lr", "shrinkage-nb") for resume in (True, False)),
)


# ---- files --------------------------------------------------------------------------------------------------------------


def with_predictions(place: Place) -> None:
    with_tickets(place)
    (place.work / "model").rename(place.inputs / "model")
    (place.work / "out.csv").write_text("old\n")
    (place.work / "private.txt").write_text("old\n")
    (place.work / "private.txt").chmod(0o600)


def write_private(place: Place) -> None:
    from ramify.persistence import write_text_atomically

    write_text_atomically(place.work / "private.txt", "new\n" * 5000)


def write_arrays(place: Place) -> None:
    from ramify.persistence import write_array_file

    write_array_file(place.work / "out.csv", {"numbers": np.arange(50_000)})


def predict_again(place: Place) -> None:
    there = (place.work / "predictions" / "ramify-predictions.json").exists()
    command(*PREDICT_MANY, *(["--resume"] if there else []))(place)


def with_old_predictions(place: Place) -> None:
    with_predictions(place)
    for name in ("out.csv", "private.txt"):
        (place.work / name).unlink()
    command(*PREDICT_MANY, "--top", "2")(place)


PREDICT_MANY = ("predict", "{inputs}/model", "{inputs}/parts", "--out", "{work}/predictions", "--force", "--threads", "1")
PREDICTED = ("predictions/0.csv", "predictions/1.csv")


@dataclass(frozen=True)
class Predictions(Scenario):
    """Files of predictions are removed before they are written anew; a file that is there is complete."""

    may_leave: bool = True  # a lock, which nobody holds

    def judge(self, outcomes: list[Any], found: list[Any], ended: Ended) -> list[str]:
        """Whatever is there is complete."""
        if ended.code == 0:
            return super().judge(outcomes, found, ended)
        known = [{"none", *(outcome[k] for outcome in outcomes)} for k in range(len(found))]
        return [f"{PREDICTED[k]} is neither the old nor the new one" for k in range(len(found)) if found[k] not in known[k]]


FILES = (
    Scenario(
        "predict",
        with_predictions,
        [command("predict", "{inputs}/model", "{inputs}/tickets.csv", "--out", "{work}/out.csv", "--force", "--threads", "1")],
        parts("out.csv"),
    ),
    Predictions("predict many files", with_predictions, [command(*PREDICT_MANY)], parts(*PREDICTED), [predict_again]),
    Predictions("predict many files anew", with_old_predictions, [command(*PREDICT_MANY)], parts(*PREDICTED)),
    Scenario("write a private file", with_predictions, [write_private], parts("private.txt")),
    Scenario("write arrays", with_predictions, [write_arrays], parts("out.csv")),
    Scenario(
        "report",
        with_predictions,
        [command("evaluate", "{inputs}/model", "{inputs}/tickets.csv", "--report", "{work}/out.csv", "--threads", "1")],
        parts("out.csv"),
    ),
)


# ---- the server ---------------------------------------------------------------------------------------------------------


def with_issues(place: Place) -> None:
    for name in ("first", "second"):
        label = {"label": "drink/tea", "path": ["drink", "tea"], "probabilities": [0.9, 0.9], "probability": 0.9}
        rows = [{"text": f"{name} {k}", "given": None, "proposed": [label], "place": "x", "labels": []} for k in range(3)]
        (place.inputs / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def reviews_at(place: Place) -> list[Any]:
    """The texts that are queued, and the decisions."""
    from ramify.server.reviews import ReviewStore

    path = place.work / "reviews.db"
    if not path.exists() or not path.stat().st_size:
        return [[], []]
    copy = place.root / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(place.work, copy)
    store = ReviewStore(copy / "reviews.db")
    sound = store._base.execute("PRAGMA integrity_check").fetchone()[0]
    if sound != "ok":
        raise ValueError(f"the file of reviews is damaged: {sound}")
    rows = list(store.all()) if store._base.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] else []
    store.close()
    decided = [f"{row.text}: {each.reviewer} {each.action} {each.labels}" for row in rows for each in row.decisions]
    return [sorted(row.text for row in rows), sorted(decided)]


@dataclass
class Server:
    """A store that stays open from request to request, as in a server."""

    store: Any = field(default=None)

    def opened(self, place: Place) -> Any:
        from ramify.server.reviews import ReviewStore

        if self.store is None:
            self.store = ReviewStore(place.work / "reviews.db")
        return self.store

    def queue(self, name: str, place: Place) -> None:
        label = [{"label": "drink/tea", "probability": 0.9}]
        self.opened(place).queue("model", [(f"{name} {k}", label, [], 0.9, None) for k in range(2)], by="ann")

    def decide(self, text: str, reviewer: str, place: Place) -> None:
        found = [row for row in self.opened(place).all() if row.text == text]
        if not found:
            raise InputError(f"the document {text!r} was not queued, so there is nothing to decide.")
        if not any(each.reviewer == reviewer for each in found[0].decisions):
            self.opened(place).decide(found[0].id, reviewer, "accept", ["drink/tea"])

    def close(self, place: Place) -> None:
        self.opened(place).close()
        self.store = None


def requests() -> list[Step]:
    server = Server()
    made: list[Step] = [partial(server.queue, "red"), partial(server.decide, "red 0", "ann"), partial(server.queue, "green")]
    made += [partial(server.decide, "green 1", "ben"), partial(server.decide, "red 0", "ben"), server.close]
    return made


def with_reviews(place: Place) -> None:
    server = Server()
    server.queue("old", place)
    server.decide("old 0", "ann", place)
    server.close(place)


def with_exports(place: Place) -> None:
    with_reviews(place)
    (place.work / "out.csv").write_text("old\n")


def keys_at(place: Place) -> list[Any]:
    from ramify.server.keys import read_keys

    path = place.work / "keys.json"
    return [sorted(key.name for key in read_keys(path))] if path.exists() else [[]]


def add_key(name: str, place: Place) -> None:
    """As a user does it who may have done it before, and did not see the key."""
    if name in keys_at(place)[0]:
        command("keys", "remove", "{work}/keys.json", name)(place)
    command("keys", "add", "{work}/keys.json", name, "--role", "review")(place)


def remove_key(place: Place) -> None:
    command("keys", "remove", "{work}/keys.json", "ann")(place)


def add_reviews(name: str) -> Step:
    return command("reviews", "add", "{work}/reviews.db", "{inputs}/" + name, "--model", "model")


def nothing(place: Place) -> None:
    """What is there before the first step."""


SERVER = (
    ServerScenario("requests of reviewers", with_reviews, requests(), reviews_at, requests()),
    ServerScenario("requests of the first reviewers", nothing, requests(), reviews_at, requests()),
    Scenario("add reviews", with_issues, [add_reviews("first.jsonl"), add_reviews("second.jsonl")], reviews_at, may_leave=True),
    Scenario(
        "export reviews",
        with_exports,
        [command("reviews", "export", "{work}/reviews.db", "--out", "{work}/out.csv", "--force")],
        parts("out.csv", "reviews.db"),
    ),
    Scenario("the first key", nothing, [partial(add_key, "eve")], keys_at, may_leave=True),
    Scenario(
        "keys", partial(add_key, "eve"), [partial(add_key, "ann"), partial(add_key, "ben"), remove_key], keys_at, may_leave=True
    ),
)

SCENARIOS: tuple[Scenario, ...] = (*MODELS, *TRAINING, *FILES, *SERVER)
