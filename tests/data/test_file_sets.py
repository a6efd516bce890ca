"""A table in several files is the table of all their rows, in the order of their names."""

import gzip
import json

import polars
import pytest
from apart import ApartExecutor
from hypothesis import given
from hypothesis import strategies as st

from ramify.data import find_files, is_file_set, open_file_set, read_corpus
from ramify.data.file_sets import natural_order
from ramify.errors import DataError
from ramify.parallel import Checkpoints, checkpointing, choose_executor, running_on

ROWS = [(f"parcel number {i} is late", "Orders > Late" if i % 3 else "Orders > Wrong|TV") for i in range(30)] + [("tv", "TV")]


def write(path, rows):
    """Rows as a file of the kind that its name says."""
    kind = path.name.removesuffix(".gz").rpartition(".")[2]
    if kind == "parquet":
        polars.DataFrame({"text": [t for t, _ in rows], "label": [c for _, c in rows]}).write_parquet(path)
        return
    if kind == "jsonl":
        text = "".join(json.dumps({"text": t, "label": c}) + "\n" for t, c in rows)
    else:
        mark = "\t" if kind == "tsv" else ","
        text = "".join(f"{t}{mark}{c}\n" for t, c in [("text", "label"), *rows])
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "parts").mkdir()
    return tmp_path / "parts"


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet", "csv.gz", "jsonl.gz"])
@pytest.mark.parametrize("executor", [None, ApartExecutor()])
def test_parts_are_read_as_one_file(folder, tmp_path, ending, executor):
    write(tmp_path / f"whole.{ending}", ROWS)
    for k, start in enumerate(range(0, 31, 3)):  # part-10 comes after part-9
        write(folder / f"part-{k}.{ending}", ROWS[start : start + 3])
    (folder / "_SUCCESS").write_text("")
    (folder / ".part-0.crc").write_bytes(b"\x00\x01")
    whole = read_corpus(tmp_path / f"whole.{ending}")
    with running_on(executor):
        for path in (folder, str(folder) + "/", folder / f"part-*.{ending}"):
            parts = read_corpus(path)
            assert parts.documents == whole.documents
            assert parts.labels == whole.labels
            assert parts.found == whole.found
            assert parts.source == str(path).rstrip("/")


@given(st.lists(st.integers(0, 10**30), unique=True), st.sampled_from(["part-%d", "%d", "a%db", "٣%d"]))
def test_numbers_in_names_are_in_order(numbers, form):
    names = [form % number for number in numbers]
    assert sorted(names, key=natural_order) == [form % number for number in sorted(numbers)]


@given(st.lists(st.text("ab01² -", max_size=6)), st.randoms())
def test_any_names_can_be_ordered_and_the_order_is_the_same_each_time(names, random):
    shuffled = random.sample(names, len(names))
    assert sorted(names, key=natural_order) == sorted(shuffled, key=natural_order)


def test_files_in_directories_below_are_taken_by_a_pattern(folder):
    for name in ("b", "a"):
        (folder / name).mkdir()
        write(folder / name / "x.csv", [(f"some {name}", "L")])
    assert read_corpus(folder / "**" / "*.csv").documents == ["some a", "some b"]
    with pytest.raises(DataError, match=r"parts/a is a directory; give files only"):
        read_corpus(folder)


def test_a_file_with_a_pattern_for_a_name_is_that_file(tmp_path):
    write(tmp_path / "a[1].csv", ROWS)
    assert not is_file_set(tmp_path / "a[1].csv")
    assert len(read_corpus(tmp_path / "a[1].csv")) == 31


def test_empty_files_are_parts_without_rows(folder):
    for name, content in (("a.csv", b""), ("b.csv", b"text,label\n"), ("d.csv", b"\n \n"), ("e.csv.gz", gzip.compress(b""))):
        (folder / name).write_bytes(content)
    write(folder / "c.csv", ROWS)
    corpus = read_corpus(folder)
    assert len(corpus) == 31
    assert corpus.location_of(2) == f"{folder / 'c.csv'}, line 4"


def test_a_part_of_bad_rows_only_is_left_out_row_by_row(folder):
    write(folder / "a.jsonl", ROWS)
    (folder / "b.jsonl").write_text("nonsense\n[1]\n")
    corpus = read_corpus(folder)
    assert [str(bad) for bad in corpus.bad_rows] == [
        f"{folder / 'b.jsonl'}, line 1: not valid JSON",
        f"{folder / 'b.jsonl'}, line 2: not a JSON object",
    ]


def test_keys_of_json_objects_may_come_late_and_labels_in_some_files_only(folder):
    (folder / "a.jsonl").write_text('{"id": 1, "text": "red fox"}\n{"id": 2, "text": "no label"}\n')
    (folder / "b.jsonl").write_text('{"text": "blue cat", "label": ["Cat", "Pet"], "id": 3}\n')
    parts = open_file_set(folder, "utf-8")
    assert parts.names == ("id", "text", "label")
    assert read_corpus(folder).labels == [[], [], ["Cat", "Pet"]]


def test_columns_may_stand_in_another_order(folder):
    (folder / "a.csv").write_text("text,label\nred fox,Fox\n")
    (folder / "b.csv").write_text("label;text\nCat;blue cat\n")
    corpus = read_corpus(folder)
    assert (corpus.documents, corpus.labels) == (["red fox", "blue cat"], [["Fox"], ["Cat"]])


def spoilt(folder, how):
    write(folder / "a.csv", ROWS)
    if how == "other columns":
        (folder / "b.csv").write_text("text,category\nx y,z\n")
        return (
            r"parts/b.csv has the columns 'text', 'category', but .*parts/a.csv has 'text', 'label'; give files with the same"
        )
    if how == "other kind":
        write(folder / "b.parquet", ROWS)
        return r"parts/b.parquet is Parquet, but .*parts/a.csv is CSV or TSV; give files of one kind"
    if how == "vectors":
        (folder / "b.svm").write_text("a 1:2\n")
        return r"parts/b.svm holds vectors \(svmlight\), which are read from one file only"
    if how == "binary":
        (folder / "b.csv").write_bytes(b"\x00\x01\x02")
        return r"parts/b.csv is a binary file"
    if how == "half a gz":
        (folder / "b.csv.gz").write_bytes(gzip.compress(b"text,label\n" + bytes(range(256)) * 64)[:60])
        return r"parts/b.csv.gz cannot be read"
    if how == "broken Parquet":
        (folder / "a.csv").unlink()
        (folder / "b.parquet").write_bytes(b"PAR1 and then nonsense")
        return r"parts/b.parquet cannot be read as Parquet"
    if how == "broken link":
        (folder / "b.csv").symlink_to(folder / "nowhere")
        return r"parts/b.csv cannot be read: No such file"
    (folder / "a.csv").unlink()
    if how == "nothing but empty files":
        (folder / "b.csv").write_bytes(b"")
        return r"parts: all 1 files are empty"
    if how == "headers only":
        (folder / "b.csv").write_bytes(b"text,label\n")
        return r"parts has column names but no rows"
    if how == "a model":
        (folder / "manifest.json").write_text("{}")
        return r"parts is a model directory; give documents"
    return r"parts holds no file; give a directory or a pattern"


ERRORS = ["other columns", "other kind", "vectors", "binary", "half a gz", "broken Parquet", "broken link"]
ERRORS += ["nothing but empty files", "headers only", "a model", "nothing"]


@pytest.mark.parametrize("how", ERRORS)
@pytest.mark.parametrize("executor", [None, ApartExecutor()])
def test_errors_name_the_file(folder, how, executor):
    with running_on(executor), pytest.raises(DataError, match=spoilt(folder, how)):
        read_corpus(folder)


def test_a_pattern_without_files(tmp_path):
    with pytest.raises(DataError, match=r"\*.csv is a pattern that no file matches"):
        find_files(tmp_path / "*.csv")


def test_names_in_any_script(folder):
    for name in ("日本.csv", "été 2.csv", "été 10.csv"):
        write(folder / name, [(name, "L")])
    assert read_corpus(folder).documents == ["été 2.csv", "été 10.csv", "日本.csv"]


def test_reading_files_does_not_fix_the_number_of_threads_of_workers(folder, tmp_path):
    write(folder / "a.csv", ROWS)
    with checkpointing(Checkpoints(tmp_path / "kept")):
        read_corpus(folder)
        assert choose_executor(8).worker_threads == (8,)
    with checkpointing(Checkpoints(tmp_path / "kept", resume=True)):
        read_corpus(folder)
        assert choose_executor(2).worker_threads == (8,)
