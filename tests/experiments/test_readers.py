"""Corpora in their published layouts, and files that are broken."""

import gzip
import re
from pathlib import Path

import numpy as np
import pytest
from paper_files.made_up import story, write_imclef, write_newsgroups, write_rcv1, write_reuters

from experiments.data import CORPORA, Datasets
from experiments.readers import fetched
from ramify.errors import DataError, InputError


def read(name, folder):
    return Datasets(folder).read(name)


# ---- 20 newsgroups ------------------------------------------------------------------------------------------------------


def test_newsgroups_are_read_as_they_are(tmp_path):
    found = read("20newsgroups", write_newsgroups(tmp_path))
    assert (len(found.train), len(found.test)) == (12, 12)
    assert found.train.documents[0].endswith("words of misc.forsale café train\r\n")
    assert found.train.labels[0] == ["misc.forsale"]
    tree = found.taxonomy
    assert tree.show(tree.index("rec.sport.hockey")) == "rec > rec.sport > rec.sport.hockey"


def test_newsgroups_without_posts_are_refused(tmp_path):
    (tmp_path / "20news-bydate-train").mkdir()
    (tmp_path / "20news-bydate-test").mkdir()
    write_newsgroups(tmp_path / "whole")
    for post in (tmp_path / "whole" / "20news-bydate-train").glob("*/*"):
        post.unlink()
    with pytest.raises(DataError, match="20news-bydate-train holds no posts"):
        read("20newsgroups", tmp_path / "whole")


# ---- Reuters-21578 ------------------------------------------------------------------------------------------------------


def test_reuters_is_split_after_apte(tmp_path):
    found = read("reuters21578", write_reuters(tmp_path))
    assert found.train.labels == [["wheat"], ["wheat"], ["yen", "earn"]]  # "only-here" is on one side alone
    assert found.test.labels == [["wheat"], ["yen", "earn"]]
    assert found.train.documents[0] == "wheat <rise>\n\nPrices of wheat.\n Reuter"
    assert found.taxonomy.show(found.taxonomy.index("wheat")) == "group:commodity > wheat"


def test_a_story_without_title_and_body_is_all_of_its_text(tmp_path):
    stories = [
        story(k, side, ("gold",), "&#2; GOLD &amp; silver <DATELINE>x</DATELINE>") for k, side in enumerate(["TRAIN", "TEST"])
    ]
    found = read("reuters21578", write_reuters(tmp_path, stories))
    assert re.sub(r"\s+", " ", found.train.documents[0]) == "GOLD & silver x"


def test_missing_files_of_reuters_are_named(tmp_path):
    write_reuters(tmp_path)
    (tmp_path / "reut2-007.sgm").unlink()
    with pytest.raises(DataError, match=r"lacks reut2-007.sgm; give all of reut2-000.sgm to reut2-021.sgm"):
        read("reuters21578", tmp_path)


def test_files_of_reuters_without_a_story_are_refused(tmp_path):
    with pytest.raises(
        DataError, match="no category of .* has stories to train on and to test on; give the files as published"
    ):
        read("reuters21578", write_reuters(tmp_path, []))


# ---- ImCLEF07A ----------------------------------------------------------------------------------------------------------


def test_imclef_is_read_with_most_specific_labels(tmp_path):
    found = read("imclef07a", write_imclef(tmp_path))
    assert set(found.taxonomy.names) == {"1", "1/2", "1/2/3", "4", "4/5"}
    assert found.train.labels == [["1/2/3"], ["4/5"]]
    assert found.test.labels == [["1/2"]]
    assert np.array_equal(found.train.documents.toarray(), [[0, 0.5, 1], [0, 0, 2]])  # features count from 1; "?" is 0


@pytest.mark.parametrize(
    ("train", "match"),
    [
        ("0.5,1,1\nx,1,1\n", r"Train.arff, line 9: a value is no number"),
        ("0.5,1,1\n0.5,1\n", r"Train.arff, line 9: 1 values where the first row has 2"),
        ("", "no rows"),
        ("0.5,1,1\n0.5,1,9/9\n", r"Train.arff, line 9: class '9/9' is not among those of the attribute"),
        ("0.5,nan,1\n", r"Train.arff, line 8: a value is no number"),
        ("0.5,1,1\n0.5,inf,1\n", r"Train.arff, line 9: a value is no number"),
    ],
)
def test_broken_rows_of_imclef_are_named(tmp_path, train, match):
    with pytest.raises(ValueError, match=match) as raised:
        read("imclef07a", write_imclef(tmp_path, train=train))
    assert "\n" not in str(raised.value)


# ---- RCV1 ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zipped", [True, False])
def test_rcv1_is_read_gzipped_or_not(tmp_path, zipped):
    found = read("rcv1", write_rcv1(tmp_path, zipped=zipped))
    assert (len(found.train), len(found.test)) == (18, 54)  # every tenth has no topic
    assert found.train.labels[:2] == [["GSPO"], ["C151"]]
    assert found.taxonomy.show(found.taxonomy.index("C151")) == "CCAT > C15 > C151"
    assert np.allclose(found.train.documents[[0]].toarray()[0, [1, 2, 3]], [0.8, 0, 0.6])


def test_the_first_stories_come_in_the_order_of_the_files(tmp_path):
    found = read("rcv1", write_rcv1(tmp_path))
    for first in (5, 18, 30, 1000):
        pooled = found.pooled(first)
        assert len(pooled) == min(first, 72) == pooled.documents.shape[0]
        assert pooled.labels == [*found.train.labels, *found.test.labels][:first]


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("lyrl2004_vectors_train.dat", "100  1:x\n", "vectors_train.dat, line 1: not of the form 'docid  feature:value …'"),
        (
            "lyrl2004_vectors_train.dat",
            "100  1:1\n100  -3:1\n",
            "vectors_train.dat, line 2: a feature or a value is out of range",
        ),
        ("lyrl2004_vectors_train.dat", "100  99999999999:1\n", "line 1: a feature or a value is out of range"),
        ("lyrl2004_vectors_train.dat", "100  1:nan\n", "line 1: a feature or a value is out of range"),
        ("lyrl2004_vectors_train.dat", "7  1:1\n", "no story of .* has a topic"),
        ("rcv1-v2.topics.qrels", "C15 100\n", "topics.qrels, line 1: not of the form 'topic docid 1'"),
        ("rcv1.topics.hier.orig", "nothing\n", "has no line 'parent: … child: …'"),
    ],
)
def test_broken_files_of_rcv1_are_named(tmp_path, name, content, match):
    write_rcv1(tmp_path, zipped=False)
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=match):
        read("rcv1", tmp_path)


def test_missing_files_of_rcv1_are_named(tmp_path):
    write_rcv1(tmp_path)
    (tmp_path / "rcv1-v2.topics.qrels.gz").unlink()
    with pytest.raises(DataError, match=r"lacks rcv1-v2.topics.qrels; give all files"):
        read("rcv1", tmp_path)


def test_a_gzipped_file_that_breaks_off_is_named(tmp_path):
    write_rcv1(tmp_path)
    path = tmp_path / "lyrl2004_vectors_test_pt1.dat.gz"
    path.write_bytes(gzip.compress(b"120  1:0.5\n" * 10_000)[:60])
    with pytest.raises(DataError, match="test_pt1.dat.gz cannot be read"):
        read("rcv1", tmp_path)


# ---- the datasets ----------------------------------------------------------------------------------------------------------


def write_house(folder, name):
    place = folder / name
    place.mkdir(parents=True)
    (place / "taxonomy.tsv").write_text("fruit\t\napple\tfruit\npear\tfruit\n")
    for part in ("train", "test"):
        (place / f"{part}.jsonl").write_text(
            '{"text": "red apple", "labels": ["apple"]}\n{"text": "green pear", "labels": ["pear"]}\n'
        )
    return folder


def test_corpora_in_our_own_layout_are_found_by_their_folder(tmp_path):
    datasets = Datasets(write_house(tmp_path, "medical_cmc2007"))
    assert datasets.is_available("medical")
    assert datasets.read("medical").train.labels == [["apple"], ["pear"]]


def test_corpora_are_found_in_folders_of_folders(tmp_path):
    write_rcv1(tmp_path / "news" / "rcv1v2")
    write_imclef(tmp_path / "images")
    write_newsgroups(tmp_path)
    datasets = Datasets(tmp_path)
    assert {name for name in CORPORA if datasets.is_available(name)} == {"20newsgroups", "imclef07a", "rcv1"}


def test_every_corpus_that_is_not_there_says_what_to_do():
    datasets = Datasets()
    for name, kind in CORPORA.items():
        assert not datasets.obtain(name)
        assert datasets.why_not(name).startswith(f"needs {kind.title}: give --data DIR with ")
        assert ("--fetch" in datasets.why_not(name)) == (kind.fetch is not None)
        with pytest.raises(DataError, match="give --data DIR"):
            datasets.read(name)


def test_a_fingerprint_follows_names_sizes_and_contents(tmp_path):
    folder = write_newsgroups(tmp_path / "a")
    first = Datasets(folder).fingerprint("20newsgroups")
    assert Datasets(write_newsgroups(tmp_path / "b")).fingerprint("20newsgroups") == first  # wherever it lies
    post = folder / "20news-bydate-test" / "sci.space" / "0"
    post.write_bytes(post.read_bytes().replace(b"words", b"sword"))
    assert Datasets(folder).fingerprint("20newsgroups") != first
    post.rename(post.with_name("renamed"))
    assert len({first, Datasets(folder).fingerprint("20newsgroups")}) == 2


def test_a_fingerprint_follows_the_end_of_a_long_file(tmp_path):
    path = write_imclef(tmp_path, train="0.5,1,1\n" * 300_000) / "ImCLEF07A_Train.arff"
    first = Datasets(tmp_path).fingerprint("imclef07a")
    path.write_text(path.read_text()[:-2] + "4\n")
    assert Datasets(tmp_path).fingerprint("imclef07a") != first


def test_folders_that_may_not_be_looked_into_and_files_that_are_gone_stop_nothing(tmp_path, monkeypatch):
    (tmp_path / "closed").mkdir()
    write_imclef(tmp_path / "open")
    look_into = Path.iterdir

    def iterdir(folder):
        if folder.name == "closed":
            raise PermissionError(13, "Permission denied")
        return look_into(folder)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    datasets = Datasets(tmp_path)
    (tmp_path / "open" / "ImCLEF07A_Test.arff").unlink()
    assert len(datasets.fingerprint("imclef07a")) == 8


def test_a_folder_that_is_none_or_holds_nothing_known_is_refused(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        Datasets(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is not a folder"):
        Datasets(tmp_path / "file")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no corpus is recognized in .*; 'python -m experiments --list' says what it may hold"):
        Datasets(tmp_path / "empty")


# ---- downloads ----------------------------------------------------------------------------------------------------------


class Bunch:
    def __init__(self, **facts):
        self.__dict__.update(facts)


def test_a_download_that_fails_is_a_reason_and_is_tried_once(monkeypatch):
    tried = []

    def fail(**_):
        tried.append(1)
        raise OSError("no route to host")

    monkeypatch.setattr(fetched, "fetch_20newsgroups", fail)
    datasets = Datasets(fetch=True)
    assert datasets.is_available("20newsgroups")
    assert not datasets.obtain("20newsgroups")
    assert not datasets.obtain("20newsgroups")
    assert len(tried) == 1
    assert "could not be downloaded: no route to host" in datasets.why_not("20newsgroups")
    assert "--fetch" not in datasets.why_not("20newsgroups")


def test_downloaded_newsgroups_have_the_tree_of_their_names(monkeypatch):
    names = ["rec.autos", "rec.sport.hockey", "rec.sport.baseball"]
    give = lambda subset, shuffle: Bunch(data=[f"{subset} a", f"{subset} b"], target=np.array([2, 0]), target_names=names)  # noqa: E731
    monkeypatch.setattr(fetched, "fetch_20newsgroups", give)
    found = Datasets(fetch=True).read("20newsgroups")
    assert found.test.documents == ["test a", "test b"]
    assert found.train.labels == [["rec.sport.baseball"], ["rec.autos"]]
    assert "rec.sport" in found.taxonomy


def test_downloaded_stories_have_most_specific_topics(monkeypatch):
    from scipy.sparse import csr_matrix

    names = np.array(["C15", "C151", "CCAT", "GCAT"])
    Y = csr_matrix(np.array([[1, 1, 1, 0], [0, 0, 1, 1]]))
    give = lambda subset: Bunch(data=csr_matrix(np.eye(2)), target=Y, target_names=names)  # noqa: E731
    monkeypatch.setattr(fetched, "sklearn_rcv1", give)
    found = Datasets(fetch=True).read("rcv1")
    assert [sorted(labels) for labels in found.train.labels] == [["C151"], ["CCAT", "GCAT"]]
