"""Every example that ``--help`` shows runs, in a directory that has the files it names."""

import contextlib
import functools
import io
import json
import shlex
import shutil
from importlib import import_module

import polars as pl
import pytest

import ramify
from ramify.cli.main import RAMIFY, Command, Group, main

pytestmark = pytest.mark.slow

LABELS = {
    "tv/picture": "screen dark no picture on my tv", "tv/sound": "sound crackles speaker tv",
    "Returns & warranty/refund": "refund money back invoice returned", "food/fruit": "sweet red apple ripe pear",
}  # fmt: skip
NOT_RUN = {"serve": "runs until it is stopped", "--cluster": "needs a cluster of Ray", "--auto": "takes minutes"}


def every_help(group=RAMIFY, above=()):
    yield above
    for name, entry in group.commands.items():
        yield from every_help(entry, (*above, name)) if isinstance(entry, Group) else [(*above, name)]


def examples_of(command):
    """The lines below Example or Examples in the help of a command."""
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        assert main([*command, "--help"]) == 0
    after = told.getvalue().split("Example", 1)[1].splitlines()[1:]
    lines = [line.strip() for line in after]
    end = next((k for k, line in enumerate(lines) if k and not line.startswith("ramify ")), len(lines))
    return [line for line in lines[:end] if line]


EXAMPLES = sorted({example for command in every_help() for example in examples_of(command)})


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """All files that examples name."""
    folder = tmp_path_factory.mktemp("examples")
    rows = [(f"{words} {i}", label) for i in range(30) for label, words in LABELS.items()]
    table = "body,category\n" + "".join(f"{text},{label}\n" for text, label in rows)
    wrong = "".join(f"{text} again,tv/sound\n" for text, label in rows[3:12] if label == "food/fruit")
    for name in ("tickets", "test", "more", "validation", "catalogue", "reviews"):
        (folder / f"{name}.csv").write_text(table + (wrong if name == "tickets" else ""))
    (folder / "new.csv").write_text("body\nno picture on my tv\nmoney back\n")
    lines = "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows)
    for name in ("docs", "train", "test"):
        (folder / f"{name}.jsonl").write_text(lines)
    (folder / "annotated.json").write_text(json.dumps([{"text": text, "label": label} for text, label in rows[:8]]))
    concepts = "".join(f':{name} a skos:Concept ; skos:prefLabel "{name}"@de .\n' for name in ("Tee", "Brot"))
    prefixes = "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n@prefix : <http://example.org/> .\n"
    (folder / "thesaurus.ttl").write_text(prefixes + concepts)
    topics = [f"topic{k}" for k in range(14)]
    (folder / "news.jsonl").write_text(
        "".join(
            json.dumps({"text": f"{topic} word{k % 4} story", "label": topic}) + "\n"
            for _ in range(4)
            for k, topic in enumerate(topics)
        )
    )
    (folder / "flat.csv").write_text(
        "text,label\n" + "".join(f"{topic} word{k % 3},{topic}\n" for k, topic in enumerate(topics * 3))
    )
    frame = pl.DataFrame({"text": [text for text, _ in rows], "label": [label for _, label in rows]})
    (folder / "parts").mkdir()
    for name in ("titles", "parts/2024-1", "parts/2024-2", "parts/2025-1"):
        frame.write_parquet(folder / f"{name}.parquet")
    taxonomy = ramify.Taxonomy.from_paths(LABELS)
    ramify.write_taxonomy(taxonomy, folder / "taxonomy.tsv", "edges")
    larger = ramify.Taxonomy.from_edges([*((n, taxonomy.names[p] if (p := taxonomy.parent[i]) >= 0 else None)
                                           for i, n in enumerate(taxonomy.names)), ("tv/remote", "tv")])  # fmt: skip
    for name in ("newer", "larger"):
        ramify.write_taxonomy(larger, folder / f"{name}.tsv", "edges")
    (folder / "reassignments.tsv").write_text("old\tnew\ntv/sound\ttv/sound\ntv/sound\ttv/remote\n")
    (folder / "costs.csv").write_text("node,cost\ntv,2\ntv/sound,0.5\n")
    made = {"out": "svm", "out2": "nb", "one": "nb", "other": "svm", "boosted": "adaboost-mh"}
    for name, system in made.items():
        more = {"params": {"n_rounds": 5}} if name == "boosted" else {}
        ramify.train(
            folder / "tickets.csv", system=system, taxonomy=taxonomy, model=folder / name, keep_training_data=True, **more
        )
    with contextlib.chdir(folder):
        for command in (
            "score out new.csv --out scores.csv", "audit tickets.csv --system nb --out issues.jsonl",
            "score out tickets.csv --out held.csv", "reviews add ramify-reviews.db issues.jsonl --model out",
            "keys add keys.json ann --role review", "sign --new-key ann.key",
        ):  # fmt: skip
            assert main(command.split()) == 0
    held = pl.read_csv(folder / "held.csv").rename({"category": "label"})
    held.write_csv(folder / "held-out-scores.csv")
    held.drop("label").with_columns(pl.selectors.numeric() * 0 + 0.4).write_csv(folder / "other.csv")
    return folder


BEFORE = {"ramify train news.jsonl": "taxonomy learn news.jsonl --groups 4,12 --out taxonomy.tsv --force"}
MADE = {"ramify keys add": "keys.json", "ramify sign --new-key": "ann.key.pub"}  # by an earlier run of the example


def words_of(example):
    """The words of an example, without the file that the shell would write."""
    words = shlex.split(example)[1:]
    return words[: words.index(">")] if ">" in words else words


def outputs_of(words):
    """What the example writes, which is not there when a user first types it."""
    options = ("--model", "--to", "--out", "--report", "--new-key")
    is_read = words[0] in ("compare", "decide", "reviews") and "--out" not in words
    return [] if is_read else [words[k + 1] for k, word in enumerate(words[:-1]) if word in options]


def test_every_command_has_examples_that_begin_with_its_name():
    for command in every_help():
        listed = examples_of(command)
        assert listed, command
        assert any(each.startswith(" ".join(("ramify", *command))) for each in listed), command
    assert len(EXAMPLES) > 60


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_run(example, files, tmp_path, monkeypatch, capsys):
    place, words = tmp_path / "here", words_of(example)
    shutil.copytree(files, place)
    monkeypatch.chdir(place)
    for output in outputs_of(words) if "--force" not in words else ():
        is_needed = words[0] in ("reviews", "decide", "compare") and output == "out"
        if not is_needed:
            shutil.rmtree(output, ignore_errors=True) if (place / output).is_dir() else (place / output).unlink(missing_ok=True)
    for first, made in MADE.items():
        if example.startswith(first):
            (place / made).unlink()
    for first, command in BEFORE.items():
        if example.startswith(first):
            assert main(command.split()) == 0
    if (words[0] == "sign" and "--key" in words) or "--trust" in words:
        pytest.importorskip("cryptography")
    called = []
    is_long = words[0] == "compare" and len(words) > 2 and {"--system", "--model"}.isdisjoint(words)  # every system, once more
    is_only_parsed = is_long or not NOT_RUN.keys().isdisjoint(words)
    if is_only_parsed:
        entry = RAMIFY.commands[words[0]]
        assert isinstance(entry, Command)
        module = import_module(f"ramify.cli.{entry.module}")
        original = getattr(module, entry.function)
        monkeypatch.setattr(module, entry.function, functools.wraps(original)(lambda **given: called.append(given)))
    code = main(words)
    assert code == 0, capsys.readouterr().err
    assert bool(called) == is_only_parsed
