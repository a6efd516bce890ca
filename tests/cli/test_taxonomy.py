"""``ramify taxonomy learn`` and ``ramify evaluate --hierarchy``."""

import json
import random

import pytest

from ramify import read_taxonomy
from ramify.cli.main import TAXONOMY, main

TOPICS = {
    "apple": "fruit sweet tree orchard",
    "pear": "fruit sweet tree juicy",
    "bus": "wheel road engine station",
    "car": "wheel road engine garage",
}


def ramify(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture
def news(tmp_path):
    """Sixteen documents of four flat categories, two and two alike; bus has most."""
    rng = random.Random(0)
    lines = ["text,label"]
    for label, words in TOPICS.items():
        lines += [f"{' '.join(rng.sample(words.split(), 3))} the of,{label}" for _ in range(4)]
    lines += ["road wheel station the,bus"]
    path = tmp_path / "news.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def learn(capsys, news, *options):
    return ramify(capsys, "taxonomy", "learn", news, "--groups", 2, *options)


def test_groups_are_written_as_a_taxonomy_and_shown(capsys, news, tmp_path):
    code, out, err = learn(capsys, news, "--out", tmp_path / "t.tsv", "--stop-words", "english")
    assert code == 0, err
    assert (tmp_path / "t.tsv").read_text() == (
        "group-1\tROOT\nbus\tgroup-1\ncar\tgroup-1\ngroup-2\tROOT\napple\tgroup-2\npear\tgroup-2\n"
    )
    head, first, second = out.splitlines()
    assert head.split() == ["group", "categories", "documents", "top", "terms", "largest", "categories"]
    assert first.split()[:3] == ["group-1", "2", "9"]
    assert "bus, car" in first
    assert {"wheel,", "road,"} <= set(first.split())
    assert second.split()[:3] == ["group-2", "2", "8"]
    assert f"ramify train {news} --taxonomy {tmp_path / 't.tsv'}" in err


def test_the_written_taxonomy_trains(capsys, news, tmp_path):
    learn(capsys, news, "--out", tmp_path / "t.tsv")
    code, _, err = ramify(capsys, "train", news, "--taxonomy", tmp_path / "t.tsv", "--model", tmp_path / "out")
    assert code == 0, err


def test_learning_speaks_json_and_writes_json(capsys, news, tmp_path):
    code, out, _ = learn(capsys, news, "--out", tmp_path / "t.json", "--json")
    facts = json.loads(out)
    assert code == 0
    assert facts["categories"] == 4
    assert [(group["name"], group["level"], group["documents"]) for group in facts["groups"]] == [
        ("group-1", 0, 9),
        ("group-2", 0, 8),
    ]
    assert facts["groups"][0]["categories"] == ["bus", "car"]
    assert "wheel" in facts["groups"][0]["terms"]
    assert len(read_taxonomy(tmp_path / "t.json")) == 6


def test_levels_are_given_with_commas(capsys, news, tmp_path):
    code, out, _ = ramify(capsys, "taxonomy", "learn", news, "--groups", "2, 3", "--out", tmp_path / "t.tsv")
    assert code == 0
    assert read_taxonomy(tmp_path / "t.tsv").n_levels == 3
    assert [line.split()[0] for line in out.splitlines()[1:]].count("group-1") == 1
    assert any(line.startswith("  group-1.1 ") for line in out.splitlines())


def test_options_reach_the_parts(capsys, news, tmp_path):
    news.write_text(news.read_text() + "zebra zebra zebra engines,car\n")

    def terms(*options):
        _, out, _ = learn(capsys, news, "--out", tmp_path / "t.tsv", "--force", "--json", *options)
        return {term for group in json.loads(out)["groups"] for term in group["terms"]}

    assert "zebra" in terms()
    assert "zebra" not in terms("--min-df", 2)
    assert "engin" in terms("--stem", "english")
    assert "road" not in terms("--stop-words", _file(tmp_path, "road\nthe\n"))


def test_linkage_sample_and_seed_reach_the_clustering(capsys, news, tmp_path):
    def partition(*options):
        _, out, _ = ramify(
            capsys, "taxonomy", "learn", news, "--groups", 3, "--out", tmp_path / "t.tsv", "--force", "--json", *options
        )
        return {frozenset(group["categories"]) for group in json.loads(out)["groups"]}

    drawn = [partition("--sample", 1, "--seed", seed, "--linkage", "single") for seed in range(8)]
    assert drawn[5] == partition("--sample", 1, "--seed", 5, "--linkage", "single")
    assert any(groups != drawn[0] for groups in drawn)


def _file(folder, words):
    (folder / "words.txt").write_text(words)
    return folder / "words.txt"


def test_documents_without_a_label_are_left_out(capsys, news, tmp_path):
    news.write_text(news.read_text() + "nothing at all,\n")
    code, out, err = learn(capsys, news, "--out", tmp_path / "t.tsv")
    assert code == 0
    assert "1 document without a label, left out" in err
    assert "nothing" not in out


def test_vectors_are_grouped_too(capsys, tmp_path):
    (tmp_path / "v.svm").write_text("a 1:1\nb 1:1 2:0.1\nc 3:1\nd 3:1 2:0.1\n")
    code, out, err = learn(capsys, tmp_path / "v.svm", "--out", tmp_path / "t.tsv")
    assert code == 0, err
    assert "feature 1" in out
    assert read_taxonomy(tmp_path / "t.tsv").names == ("group-1", "a", "b", "group-2", "c", "d")


def test_paths_are_refused_unless_taken_as_plain_names(capsys, tmp_path):
    (tmp_path / "p.csv").write_text("text,label\nred fox,a/b\nblue sky,a/c\nred car,a/d\n")
    code, _, err = learn(capsys, tmp_path / "p.csv", "--out", tmp_path / "t.tsv")
    assert code == 2
    assert "they already form a tree" in err
    assert not (tmp_path / "t.tsv").exists()
    assert learn(capsys, tmp_path / "p.csv", "--out", tmp_path / "t.tsv", "--flat")[0] == 0
    assert read_taxonomy(tmp_path / "t.tsv").names == ("group-1", "a/b", "a/d", "group-2", "a/c")


BAD = {
    "groups in words": (["--groups", "four"], "--groups is 'four'; give a number"),
    "one group": (["--groups", "1"], "the number of groups is 1; give 2 or more"),
    "too many groups": (["--groups", "9"], "9 groups are more than the 4 categories"),
    "falling levels": (["--groups", "3,2"], "each level needs more than the one above"),
    "unknown linkage": (["--linkage", "wart"], "linkage is 'wart'"),
    "no sample": (["--sample", "0"], "sample is 0"),
    "negative seed": (["--seed", "-1"], "seed is -1"),
    "another ending": (["--out", "t.csv"], "give a name that ends in .tsv or .json"),
    "nowhere to write": (["--out", "/nowhere/t.tsv"], "cannot write /nowhere/t.tsv"),
    "unknown stop words": (["--stop-words", "klingon"], "--stop-words is 'klingon'"),
    "unknown column": (["--label", "kind"], "no column 'kind'"),
    "no words left": (["--min-df", "99"], "leave no term"),
}


@pytest.mark.parametrize(("options", "message"), BAD.values(), ids=BAD)
def test_errors_are_reported_in_one_sentence_and_leave_files_unchanged(capsys, news, tmp_path, options, message):
    (tmp_path / "t.tsv").write_text("as it was")
    before = sorted(tmp_path.iterdir())
    code, out, err = ramify(capsys, "taxonomy", "learn", news, "--out", tmp_path / "t.tsv", "--force", *options)
    assert code == 2
    assert out == ""
    assert message in err
    assert "Traceback" not in err
    assert (tmp_path / "t.tsv").read_text() == "as it was"
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("rows", "message"), [("x y,a\nz w,a\n", "there is 1 category"), ("x y,\nz w,\n", "no document has a label")]
)
def test_a_table_without_two_categories_is_refused(capsys, tmp_path, rows, message):
    (tmp_path / "d.csv").write_text("text,label\n" + rows)
    code, _, err = learn(capsys, tmp_path / "d.csv", "--out", tmp_path / "t.tsv")
    assert code == 2
    assert message in err


def test_names_that_a_table_would_not_give_back_are_refused(capsys, tmp_path):
    (tmp_path / "d.csv").write_text("text,label\nred fox,ROOT\nblue sky,x > y\nred car,c\n")
    code, _, err = learn(capsys, tmp_path / "d.csv", "--flat", "--out", tmp_path / "t.tsv")
    assert code == 2
    assert "would not read back from .tsv; write .json" in err
    assert not (tmp_path / "t.tsv").exists()
    assert learn(capsys, tmp_path / "d.csv", "--flat", "--out", tmp_path / "t.json")[0] == 0
    assert {"ROOT", "x > y", "c"} <= set(read_taxonomy(tmp_path / "t.json").names)


def test_the_data_are_not_overwritten(capsys, tmp_path):
    (tmp_path / "d.tsv").write_text("text\tlabel\nred fox\ta\nblue sky\tb\n")
    code, _, err = learn(capsys, tmp_path / "d.tsv", "--out", tmp_path / "d.tsv")
    assert code == 2
    assert "would be overwritten" in err


@pytest.mark.parametrize("command", [None, *TAXONOMY.commands])
def test_every_command_of_the_group_has_help_with_an_example(capsys, command):
    code, out, _ = ramify(capsys, "taxonomy", *([] if command is None else [command]), "--help")
    assert code == 0
    assert f"ramify taxonomy {command or 'learn'}" in out.split("Example")[1]


@pytest.fixture
def model(capsys, tickets, tmp_path):
    assert ramify(capsys, "train", tickets, "--model", tmp_path / "out")[0] == 0
    return tmp_path / "out"


def test_evaluating_on_the_modified_hierarchy_adds_a_table(capsys, model, tmp_path):
    (tmp_path / "test.csv").write_text("body,category\nparcel late courier,Orders > Late\nwrong item,Orders\n")
    usual = ramify(capsys, "evaluate", model, tmp_path / "test.csv")[1]
    code, out, _ = ramify(capsys, "evaluate", model, tmp_path / "test.csv", "--hierarchy", "modified")
    assert code == 0
    added = [line for line in out.splitlines() if line not in usual.splitlines()]
    assert added[0].strip() == "Modified hierarchy"
    assert [line.split()[0] for line in added[2:]] == ["all", "original", "dummy"]
    assert added[4].split()[2:] == ["1", "1", "1", "0.000", "0.000", "0.000"]
    page = tmp_path / "r.html"
    _, out, _ = ramify(capsys, "evaluate", model, tmp_path / "test.csv", "--hierarchy", "modified", "--json", "--report", page)
    assert [row["over"] for row in json.loads(out)["modified"]] == ["all", "leaves", "dummies"]
    assert "dummy leaves" in page.read_text()


def test_the_original_hierarchy_is_what_evaluating_shows_otherwise(capsys, model, tickets):
    plain, named = (
        ramify(capsys, "evaluate", model, tickets, "--json", *more)[1] for more in ([], ["--hierarchy", "original"])
    )
    assert plain == named
    assert "modified" not in json.loads(plain)


def test_an_unknown_hierarchy_is_refused(capsys, model, tickets):
    code, out, err = ramify(capsys, "evaluate", model, tickets, "--hierarchy", "modifed")
    assert (code, out) == (2, "")
    assert err == "ramify: hierarchy is 'modifed'; give 'original' or 'modified'. Did you mean 'modified'?\n"
