"""Learning from many files gives the model of one file with the same rows, bit by bit, wherever the files are read."""

import json

import numpy as np
import polars
import pytest
from apart import ApartExecutor
from hypothesis import given, settings
from hypothesis import strategies as st

from ramify.classifier import TextClassifier, load
from ramify.classifier.fitting import fit_features
from ramify.cli.main import main
from ramify.data import read_corpus
from ramify.errors import DataError, LabelError
from ramify.features import TermSelector, Vectorizer
from ramify.parallel import running_on
from ramify.workflows import evaluate, many_files, read_sharded, reading, train_classifier
from ramify.workflows.reading import needs_shards

WORDS = [
    "parcel",
    "late",
    "courier",
    "wrong",
    "item",
    "box",
    "screen",
    "dark",
    "picture",
    "sound",
    "speaker",
    "crackle",
    "refund",
    "invoice",
    "card",
    "paid",
    "twice",
]
LABELS = ["Orders > Late", "Orders > Wrong", "TV > Picture", "TV > Sound", "TV", "Billing > Refund"]


def make_rows(n, seed=0, several=0.1):
    """Rows with words that tell a little, some without a label, some with two, some twice."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        k = int(rng.integers(len(LABELS)))
        words = [*rng.choice(WORDS, 5), WORDS[2 * k], WORDS[2 * k + 1], f"n{i % 17}"]
        label = LABELS[k] + (f"|{LABELS[k - 1]}" if rng.random() < several else "")
        rows.append((" ".join(words), "" if rng.random() < 0.03 else label))
    return [*rows, *rows[: n // 20]]


def write_csv(path, rows):
    path.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in rows))


def write_parts(folder, rows, n_parts, ending="csv"):
    """Rows over files of uneven sizes, some of them empty."""
    folder.mkdir(exist_ok=True)
    edges = sorted(np.random.default_rng(n_parts).integers(0, len(rows) + 1, n_parts - 1).tolist())
    for k, (a, b) in enumerate(zip([0, *edges], [*edges, len(rows)], strict=True)):
        if ending == "jsonl":
            lines = [json.dumps({"text": text, "label": label}) + "\n" for text, label in rows[a:b]]
            (folder / f"part-{k}.jsonl").write_text("".join(lines))
        else:
            write_csv(folder / f"part-{k}.csv", rows[a:b])


def same_files(one, other):
    names = sorted(path.name for path in one.iterdir())
    assert names == sorted(path.name for path in other.iterdir())
    for name in names:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


@pytest.fixture(scope="module")
def rows():
    return make_rows(400)


@pytest.fixture
def whole(rows, tmp_path):
    write_csv(tmp_path / "whole.csv", rows)
    return tmp_path / "whole.csv"


@pytest.mark.parametrize("system", ["nb", "svm", "hr-svm"])
@pytest.mark.parametrize("executor", [None, ApartExecutor(), ApartExecutor(1, 1)], ids=["threads", "apart", "two apart"])
@pytest.mark.parametrize("n_parts", [1, 7, 50])
def test_the_saved_model_is_that_of_one_file(system, executor, n_parts, rows, whole, tmp_path):
    write_parts(tmp_path / "parts", rows, n_parts)
    clf = TextClassifier(system, n_jobs=2)
    with running_on(executor):  # groups of more than one worker may work in another order, so both train there
        once = train_classifier(clf, read_corpus(whole).labelled())
        corpus = read_sharded(tmp_path / "parts", Vectorizer(), scratch=tmp_path, n_jobs=2).labelled()
        again = train_classifier(TextClassifier(system, features=None, n_jobs=2), corpus)
    assert again.report.as_dict() == once.report.as_dict()
    assert (again.trained_on, again.tested_on, again.test_duplicates) == (once.trained_on, once.tested_on, once.test_duplicates)
    once.classifier.save(tmp_path / "once")
    again.classifier.save(tmp_path / "again")
    same_files(tmp_path / "once", tmp_path / "again")


@pytest.mark.parametrize(
    "settings",
    [
        {"min_df": 3, "max_features": 20},
        {"hashing": 1 << 8},
        {"stemmer": "english", "stop_words": "english", "ngram_range": (1, 2)},
    ],
    ids=str,
)
@pytest.mark.parametrize("select", [None, 10])
def test_features_and_selection_are_those_of_one_file(settings, select, rows, whole, tmp_path):
    write_parts(tmp_path / "parts", rows, 5)
    vectorizer = Vectorizer("counts", **settings)
    selector = None if select is None else TermSelector(select)
    corpora = [read_corpus(whole), read_sharded(tmp_path / "parts", vectorizer, scratch=tmp_path)]
    for name, corpus in zip(("once", "again"), corpora, strict=True):
        clf = TextClassifier("nb", features=vectorizer, selector=selector)
        train_classifier(clf, corpus.labelled()).classifier.save(tmp_path / name)
    same_files(tmp_path / "once", tmp_path / "again")


def test_added_and_test_documents(rows, whole, tmp_path):
    write_parts(tmp_path / "parts", rows, 6)
    write_parts(tmp_path / "tests", make_rows(60, seed=3), 3)
    write_csv(tmp_path / "tests.csv", make_rows(60, seed=3))
    write_csv(tmp_path / "more.csv", [(rows[5][0], "TV > Sound"), ("entirely new words", "New > Label")])
    more, clf = read_corpus(tmp_path / "more.csv"), TextClassifier("nb")
    corpora = read_corpus(whole).labelled(), read_sharded(tmp_path / "parts", Vectorizer(), scratch=tmp_path).labelled()
    tests = read_corpus(tmp_path / "tests.csv").labelled(), read_sharded(tmp_path / "tests", Vectorizer()).labelled()
    once, *others = [train_classifier(clf, corpus, test, more=more) for corpus in corpora for test in (*tests, None)]
    assert once.test_duplicates == others[2].test_duplicates
    for number, trained in enumerate((once, *others)):
        trained.classifier.save(tmp_path / f"{number}")
    same_files(tmp_path / "0", tmp_path / "1")
    same_files(tmp_path / "0", tmp_path / "3")
    same_files(tmp_path / "0", tmp_path / "4")
    same_files(tmp_path / "2", tmp_path / "5")


def test_texts_are_not_read_again_where_counts_were_left(rows, tmp_path):
    write_parts(tmp_path / "parts", rows, 4)
    (tmp_path / "scratch").mkdir()
    corpus = read_sharded(tmp_path / "parts", Vectorizer(), scratch=tmp_path / "scratch")
    for path in (tmp_path / "parts").iterdir():
        path.unlink()
    trained = train_classifier(TextClassifier("svm"), corpus.labelled())
    assert trained.report is not None


def test_evaluating_on_many_files(rows, whole, tmp_path):
    write_parts(tmp_path / "parts", rows, 5, "jsonl")
    clf = train_classifier(TextClassifier("nb"), read_corpus(whole).labelled()).classifier
    clf.save(tmp_path / "model")
    clf = load(tmp_path / "model")
    with running_on(ApartExecutor()):
        again = evaluate(clf, read_sharded(tmp_path / "parts", clf.vectorizer_).labelled())
    assert again.as_dict() == evaluate(clf, read_corpus(whole).labelled()).as_dict()


@settings(max_examples=30)
@given(st.data())
def test_any_split_into_files_gives_the_same_matrix_and_labels(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("any")
    words = st.text("ab é|\"';,\n", max_size=12)
    rows = data.draw(
        st.lists(st.fixed_dictionaries({"text": words, "label": st.one_of(words, st.lists(words, max_size=2))}), min_size=1)
    )
    rows.append({"text": "some words", "label": "Some"})
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    (folder / "whole.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for k, (a, b) in enumerate(zip([0, *cuts], [*cuts, len(rows)], strict=True)):
        (folder / f"part{k}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[a:b]))
    try:
        once = read_corpus(folder / "whole.jsonl")
    except DataError as error:  # too many bad rows
        with pytest.raises(DataError) as again:
            read_sharded(folder / "part*", Vectorizer())
        assert str(error).split(" The first")[0] == str(again.value).split(" The first")[0]
        return
    with running_on(data.draw(st.sampled_from([None, ApartExecutor()]))):
        scratch = data.draw(st.sampled_from([None, folder]))
        shards = read_sharded(folder / "part*", Vectorizer(), scratch=scratch)
        assert shards.labels == once.labels
        assert shards.found == once.found
        assert [bad.reason for bad in shards.bad_rows] == [bad.reason for bad in once.bad_rows]
        assert list(shards.documents) == once.documents
        one, other = Vectorizer(), Vectorizer()
        X, expected = other.fit_transform(shards.documents), one.fit_transform(once.documents)
    assert X.indptr.tolist() == expected.indptr.tolist()
    assert X.indices.tolist() == expected.indices.tolist()
    assert X.data.tolist() == expected.data.tolist()


@pytest.mark.parametrize("executor", [None, ApartExecutor()])
def test_rows_of_a_parquet_file_are_shards(rows, whole, tmp_path, monkeypatch, executor):
    monkeypatch.setattr(many_files, "ROWS", 64)
    frame = polars.DataFrame({"text": [text for text, _ in rows], "label": [label for _, label in rows]})
    (tmp_path / "parts").mkdir()
    frame.write_parquet(tmp_path / "whole.parquet", row_group_size=50)
    frame[:64].write_parquet(tmp_path / "parts" / "0.parquet")
    frame[64:].write_parquet(tmp_path / "parts" / "1.parquet")
    train_classifier(TextClassifier("nb"), read_corpus(whole).labelled()).classifier.save(tmp_path / "once")
    for source, n_shards in (("whole.parquet", 7), ("parts", 7)):
        with running_on(executor):
            corpus = read_sharded(tmp_path / source, Vectorizer(), scratch=tmp_path)
            assert len(corpus.documents.shards) == n_shards
            train_classifier(TextClassifier("nb"), corpus.labelled()).classifier.save(tmp_path / "again")
        same_files(tmp_path / "once", tmp_path / "again")
    assert corpus.location_of(64 + 70) == f"{tmp_path}/parts/1.parquet, line 71"


def test_one_large_parquet_file_is_read_in_shards(rows, tmp_path, monkeypatch):
    frame = polars.DataFrame({"text": [text for text, _ in rows], "label": [label for _, label in rows]})
    frame.write_parquet(tmp_path / "whole.parquet")
    assert not needs_shards(tmp_path / "whole.parquet")
    assert not needs_shards(tmp_path / "none.parquet")
    monkeypatch.setattr(reading, "LARGE", 1000)
    assert needs_shards(tmp_path / "whole.parquet")
    code = main(["train", str(tmp_path / "whole.parquet"), "--model", str(tmp_path / "model"), "--holdout", "0"])
    assert (code, load(tmp_path / "model").figures_["documents"]) == (0, len([label for _, label in rows if label]))


def test_places_name_file_and_line(rows, tmp_path):
    write_parts(tmp_path / "parts", rows, 3)
    write_csv(tmp_path / "parts" / "part-9.csv", [("some words", "Orders > Late"), ("", "TV"), ("more words", "No > Such")])
    corpus = read_sharded(tmp_path / "parts", Vectorizer())
    assert str(corpus.bad_rows[0]) == f"{tmp_path}/parts/part-9.csv, line 3: the text is empty"
    clf = TextClassifier("nb", read_taxonomy_of(rows))
    with pytest.raises(LabelError, match=r"parts/part-9.csv, line 4: label 'No > Such' is not in the taxonomy"):
        train_classifier(clf, corpus.labelled())
    with pytest.raises(DataError, match=r"1 of 4\d\d rows are bad, and --strict allows none.*part-9.csv, line 3"):
        read_sharded(tmp_path / "parts", Vectorizer(), strict=True)


def read_taxonomy_of(rows):
    from ramify.taxonomy import taxonomy_of_labels

    return taxonomy_of_labels([label.split("|") for _, label in rows if label], None)


def test_another_vectorizer_reads_the_texts_themselves(rows, whole, tmp_path):
    from sklearn.feature_extraction.text import CountVectorizer

    write_parts(tmp_path / "parts", rows, 3)
    corpora = [read_corpus(whole), read_sharded(tmp_path / "parts", CountVectorizer())]
    taxonomy = read_taxonomy_of(rows)
    X, again = (
        fit_features(CountVectorizer(), corpus.documents, None, taxonomy.encode(list(corpus.labels))) for corpus in corpora
    )
    assert (again != X).nnz == 0
