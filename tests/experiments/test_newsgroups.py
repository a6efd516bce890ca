import json
import os
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.newsgroups import add_hybrids, newsgroups_taxonomy, read_newsgroups, strip_headers
from ramify import Taxonomy
from ramify.errors import DataError, InputError, LabelError

CORPORA = Path(os.environ.get("RAMIFY_CORPORA", "no folder"))
needs_the_corpus = pytest.mark.skipif(
    not (CORPORA / "20news_bydate").is_dir(), reason="RAMIFY_CORPORA names no folder that holds 20news_bydate"
)
POST = "From: ann@example.org (Ann)\nSubject: tyres\nOrganization: none\nLines: 2\n\nWhich ones?\n\nLines: of mine\n"
STRIPPED = "From: ann@example.org (Ann)\nSubject: tyres\n\nWhich ones?\n\nLines: of mine\n"


def n_distinct(text):
    return len(set(re.findall(r"\w+", text.lower())))


def n_words(text):
    return len(text.split())


def ratio(count, some, others):
    return np.mean([count(text) for text in some]) / np.mean([count(text) for text in others])


def write_posts(path, posts):
    rows = ({"id": str(i), "text": text, "labels": [label]} for i, (text, label) in enumerate(posts))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


# ---- taxonomy -------------------------------------------------------------------------------------------------------------


def test_the_tree_has_31_nodes_with_the_20_groups_as_leaves_and_one_root():
    tree = newsgroups_taxonomy()
    leaves = [name for name, is_leaf in zip(tree.names, tree.is_leaf, strict=True) if is_leaf]
    assert tree.is_tree
    assert (len(tree), len(leaves), len(tree.roots)) == (31, 20, 1)
    assert sorted(Counter(name.split(".")[0] for name in leaves).items()) == [
        ("alt", 1), ("comp", 5), ("misc", 1), ("rec", 4), ("sci", 4), ("soc", 1), ("talk", 4),
    ]  # fmt: skip
    assert all(len(tree.children_of(node)) >= 2 for node in np.flatnonzero(~tree.is_leaf))


@pytest.mark.parametrize("prefix", ["comp", "rec", "sci", "comp.sys", "rec.sport", "talk.politics"])
def test_a_node_with_a_star_is_above_just_the_groups_that_begin_like_it(prefix):
    tree = newsgroups_taxonomy()
    below = {tree.names[node] for node in tree.descendants_of(tree.index(f"{prefix}.*")) if tree.is_leaf[node]}
    assert below == {name for name in tree.names if name.startswith(f"{prefix}.") and tree.is_leaf[tree.index(name)]}


# ---- headers --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (POST, STRIPPED),
        (STRIPPED, STRIPPED),
        (
            " left!over!path\nsubject: tyres\n again\nKeywords: a,\n b\nFROM: ann\n\nHi",
            "subject: tyres\n again\nFROM: ann\n\nHi",
        ),
        ("Article-I.D.: 5\nFrom: ann\nan odd line\n \nLines: 2\n\nHi", "From: ann\n\nHi"),
        ("From: ann\r\nLines: 1\r\n\r\nHi\r\n", "From: ann\r\n\r\nHi\r\n"),
        ("From: ann\n\n", "From: ann\n\n"),
        ("Dear all,\n\nFrom: here on", "Dear all,\n\nFrom: here on"),
        ("From here\nLines: 1\n\nHi", "From here\nLines: 1\n\nHi"),
        ("From: a text without a blank line", "From: a text without a blank line"),
        ("", ""),
    ],
)
def test_only_from_and_subject_stay_of_the_headers(text, expected):
    assert strip_headers(text) == expected


def test_other_headers_are_kept_when_asked_for():
    assert strip_headers(POST, keep=["lines"]).startswith("Lines: 2\n\nWhich")


@given(st.text(alphabet="From: Subjectx\n\r ", max_size=80))
def test_stripping_twice_is_stripping_once(text):
    assert strip_headers(strip_headers(text)) == strip_headers(text)


# ---- reading --------------------------------------------------------------------------------------------------------------


def test_both_parts_are_read_with_headers_stripped_and_groups_as_labels(tmp_path):
    write_posts(tmp_path / "train.jsonl", [(POST, "rec.autos"), (POST, "sci.med")])
    write_posts(tmp_path / "test.jsonl", [("From: bob\nLines: 1\n\nNo.", "alt.atheism")])
    corpus = read_newsgroups(tmp_path)
    assert corpus.documents == [STRIPPED, STRIPPED, "From: bob\n\nNo."]
    assert corpus.labels == [["rec.autos"], ["sci.med"], ["alt.atheism"]]
    assert corpus.location_of(2).endswith("document 3")


def test_a_folder_without_a_part_is_refused(tmp_path):
    write_posts(tmp_path / "train.jsonl", [(POST, "rec.autos"), (POST, "sci.med")])
    with pytest.raises(DataError, match=r"holds no file named test\.\*; give a folder with one file train\.\* and one"):
        read_newsgroups(tmp_path)


def test_two_files_for_one_part_are_refused(tmp_path):
    for name in ("train.jsonl", "train.json"):
        write_posts(tmp_path / name, [(POST, "rec.autos")])
    with pytest.raises(DataError, match=r"holds 2 files named train"):
        read_newsgroups(tmp_path)


@pytest.mark.parametrize(("label", "hint"), [("rec.auto", "Did you mean 'rec.autos'"), ("rec.*", "one of the 20 newsgroups")])
def test_labels_that_are_no_newsgroup_are_refused_with_their_place(tmp_path, label, hint):
    write_posts(tmp_path / "train.jsonl", [(POST, "rec.autos"), (POST, label)])
    write_posts(tmp_path / "test.jsonl", [(POST, "sci.med")])
    with pytest.raises(DataError, match=re.escape(label)) as error:
        read_newsgroups(tmp_path)
    assert "line 2" in str(error.value)
    assert hint in str(error.value)


# ---- hybrids --------------------------------------------------------------------------------------------------------------


def telltale_posts(tree, n_posts, seed=0):
    """Posts of every leaf: most words from a long-tailed language, a few that only the leaf has, its name in front."""
    rng = np.random.default_rng(seed)
    leaves = [name for name, is_leaf in zip(tree.names, tree.is_leaf, strict=True) if is_leaf]
    texts, labels = [], []
    for label in leaves:
        for _ in range(n_posts):
            ranks = np.minimum(rng.zipf(1.3, size=rng.integers(40, 400)), 5000)
            texts.append(" ".join(f"@{label}@w{rank}" for rank in ranks))
            labels.append(label)
    return texts, labels


def test_originals_come_first_and_every_inner_node_gets_its_share():
    tree = newsgroups_taxonomy()
    texts, labels = telltale_posts(tree, 3)
    more_texts, more_labels = add_hybrids(texts, labels, tree, per_node=5)
    assert more_texts[:60] == texts
    assert more_labels[:60] == labels
    assert len(more_texts) == len(more_labels) == 60 + 11 * 5
    inner = {name for name, is_leaf in zip(tree.names, tree.is_leaf, strict=True) if not is_leaf}
    assert Counter(more_labels[60:]) == dict.fromkeys(inner, 5)


def test_a_hybrid_combines_documents_below_two_or_more_children_of_its_node_and_no_others():
    tree = newsgroups_taxonomy()
    texts, labels = telltale_posts(tree, 3)
    hybrids = list(zip(*add_hybrids(texts, labels, tree, per_node=30), strict=True))[60:]
    counts = {}
    for text, label in hybrids:
        node = tree.index(label)
        origins = {tree.index(leaf) for leaf in re.findall("@(.*?)@", text)}
        assert origins <= set(tree.descendants_of(node).tolist())
        branches = [
            child for child in tree.children_of(node).tolist() if origins & {child, *tree.descendants_of(child).tolist()}
        ]
        assert len(branches) == len(origins) >= 2
        counts.setdefault(label, set()).add(len(branches))
    assert all(found == set(range(2, len(tree.children_of(tree.index(label))) + 1)) for label, found in counts.items())


def test_hybrids_are_as_long_as_documents_with_about_as_many_distinct_words():
    tree = newsgroups_taxonomy()
    texts, labels = telltale_posts(tree, 20)
    shared = [re.sub("@.*?@", "", text) for text in texts]
    hybrids = add_hybrids(shared, labels, tree, per_node=100)[0][len(texts) :]
    assert 0.97 < ratio(n_words, hybrids, shared) < 1.03  # 1.006
    assert 0.95 < ratio(n_distinct, hybrids, shared) < 1.1  # 1.02


def test_a_seed_fixes_the_hybrids():
    tree = newsgroups_taxonomy()
    texts, labels = telltale_posts(tree, 2)
    one, two, other = (add_hybrids(texts, labels, tree, per_node=2, seed=seed) for seed in (1, 1, 2))
    assert one == two
    assert one != other


def test_a_single_child_is_combined_with_nothing_and_empty_children_are_passed_over():
    chain = Taxonomy.from_edges([("top", None), ("only", "top"), ("left", "only"), ("right", "only")])
    texts, labels = add_hybrids(["one two three"], ["left"], chain, per_node=2)
    assert texts == ["one two three"] * 5
    assert labels == ["left", "top", "top", "only", "only"]


def test_no_hybrids_asked_for_changes_nothing():
    assert add_hybrids(["a"], ["sci.med"], newsgroups_taxonomy(), per_node=0) == (["a"], ["sci.med"])


def test_what_cannot_be_combined_is_refused(food):
    with pytest.raises(InputError, match="no document is labelled below 'food/fruit'; give some to combine"):
        add_hybrids(["a", "b"], ["food/bread", "drink"], food)
    with pytest.raises(InputError, match="there are 2 texts and 1 labels; give each text one label"):
        add_hybrids(["a", "b"], ["drink"], food)
    with pytest.raises(InputError, match="per_node is -1; give the number of hybrids"):
        add_hybrids(["a"], ["drink"], food, per_node=-1)
    with pytest.raises(LabelError, match="'drinks' is not in the taxonomy.*Did you mean 'drink'"):
        add_hybrids(["a"], ["drinks"], food)


# ---- the corpus itself ----------------------------------------------------------------------------------------------------


@needs_the_corpus
def test_the_real_posts_are_read_and_their_hybrids_resemble_them():
    corpus, tree = read_newsgroups(CORPORA / "20news_bydate"), newsgroups_taxonomy()
    assert len(corpus) == 18_846
    assert not corpus.bad_rows
    heads = [text.partition("\n\n")[0] for text in corpus.documents]
    assert all(head.lower().count("subject:") and head.lower().count("from:") for head in heads)
    assert not any(re.search("^(Organization|Lines):", head, re.MULTILINE) for head in heads)
    texts, labels = add_hybrids(corpus.documents, [labels[0] for labels in corpus.labels], tree, per_node=200)
    hybrids = texts[len(corpus) :]
    assert Counter(labels[len(corpus) :]) == dict.fromkeys((tree.names[node] for node in np.flatnonzero(~tree.is_leaf)), 200)
    assert 0.85 < ratio(n_words, hybrids, corpus.documents) < 1.15  # 1.00 with a thousand hybrids a node
    assert 0.95 < ratio(n_distinct, hybrids, corpus.documents) < 1.15  # 1.05
