"""Made-up corpora in published layouts and in ours, from which something can be learnt: a document tells its classes."""

from __future__ import annotations

import json

import numpy as np
from paper_files.made_up import story, write_imclef, write_reuters

from experiments.readers import rcv1

TOPICS = ["earn", "acq", "wheat", "corn", "crude", "yen", "trade"]
HIERARCHY = {"CCAT": "Root", "C15": "CCAT", "C151": "C15", "C152": "C15", "GCAT": "Root", "GSPO": "GCAT", "MCAT": "Root"}
TREE = {"up": None, "up.one": "up", "up.two": "up", "down": None, "down.one": "down", "down.two": "down"}
WORDS = ["the", "market", "said", "that", "prices", "of", "many", "goods", "rose", "while", "others", "fell", "and", "news"]


def say(rng, name, n_words=12):
    """A text about something: its own words among common ones."""
    own = [f"{name.split('.')[-1]}{letter}" for letter in "abc"]
    return " ".join(rng.choice([*own, *WORDS], n_words))


def write_stories(folder, rng, n_train=60, n_test=30):
    """Reuters-21578: seven topics, and every fifth story has two."""
    stories = []
    for k in range(n_train + n_test):
        topics = (TOPICS[k % len(TOPICS)], *((TOPICS[(k + 1) % len(TOPICS)],) if k % 5 == 0 else ()))
        body = " ".join(say(rng, topic) for topic in topics)
        side = "TRAIN" if k < n_train else "TEST"
        stories.append(story(k, side, topics, f"<TITLE>story {k}</TITLE><BODY>{body}</BODY>"))
    return write_reuters(folder, stories)


def write_images(folder, rng, n_train=60, n_test=30):
    """ImCLEF07A: three classes, one of which is an inner node."""
    centres = {"1/2/3": (3, 0), "4/5": (-3, 0), "1/2": (0, 3)}
    names = list(centres)

    def rows(n):
        drawn = ((names[k % 3], centres[names[k % 3]] + rng.normal(size=2)) for k in range(n))
        return "".join(f"{x:.3f},{y:.3f},{name}\n" for name, (x, y) in drawn)

    return write_imclef(folder, rows(n_train), rows(n_test))


def write_topics(folder, rng, n_train=80, n_test=40):
    """RCV1-v2: some stories stop at an inner topic, and some have two."""
    folder.mkdir(parents=True)
    names = list(HIERARCHY)
    edges = ["parent: None child: Root child-description: Root"]
    edges += [f"parent: {parent} child: {child} child-description: {child}" for child, parent in HIERARCHY.items()]
    (folder / rcv1.HIERARCHY).write_text("\n".join(edges) + "\n")
    topics, stories = [], []
    for number in range(n_train + n_test):
        ends = [names[number % len(names)], *([names[(number + 2) % len(names)]] if number % 4 == 0 else [])]
        held = {topic for end in ends for topic in _with_ancestors(end)}
        topics += [f"{topic} {number} 1" for topic in sorted(held)]
        features = sorted({3 * names.index(topic) + 1 + int(rng.integers(3)) for topic in held} | {int(rng.integers(22, 40))})
        stories.append(f"{number}  " + " ".join(f"{feature}:0.5" for feature in features))
    (folder / rcv1.TOPICS).write_text("\n".join(topics) + "\n")
    (folder / rcv1.TRAIN).write_text("\n".join(stories[:n_train]) + "\n")
    for name, part in zip(rcv1.TEST, np.array_split(stories[n_train:], len(rcv1.TEST)), strict=True):
        (folder / name).write_text("\n".join(part) + "\n")


def _with_ancestors(topic):
    while topic != "Root":
        yield topic
        topic = HIERARCHY[topic]


def write_texts(folder, rng, edges, n_train=40, n_test=20):
    """train.jsonl, test.jsonl and taxonomy.tsv, one label a document."""
    folder.mkdir(parents=True)
    leaves = sorted(set(edges) - set(edges.values()))
    _write_tree(folder, edges)
    for part, n in (("train", n_train), ("test", n_test)):
        rows = [{"text": say(rng, leaves[k % len(leaves)]), "labels": [leaves[k % len(leaves)]]} for k in range(n)]
        (folder / f"{part}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_vectors(folder, rng, edges, n_train=24, n_test=24):
    """train.svm, test.svm and taxonomy.tsv; every third document has two labels."""
    folder.mkdir(parents=True)
    leaves = sorted(set(edges) - set(edges.values()))
    _write_tree(folder, edges)
    for part, n in (("train", n_train), ("test", n_test)):
        rows = []
        for k in range(n):
            given = [k % len(leaves), *([(k + 1) % len(leaves)] if k % 3 == 0 else [])]
            features = sorted({2 * leaf + 1 + int(rng.integers(2)) for leaf in given} | {int(rng.integers(20, 30))})
            rows.append(",".join(leaves[leaf] for leaf in given) + "".join(f" {feature}:1" for feature in features))
        (folder / f"{part}.svm").write_text("\n".join(rows) + "\n")


def _write_tree(folder, edges):
    (folder / "taxonomy.tsv").write_text("".join(f"{child}\t{parent or 'ROOT'}\n" for child, parent in edges.items()))
