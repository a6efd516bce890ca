"""Documents in many files: each becomes the file that it would become alone, wherever it is classified."""

import csv
import gzip
import io
import json

import polars
import pytest
from apart import ApartExecutor

from ramify.classifier import load, make_rule
from ramify.data import open_file_set, stream_rows
from ramify.errors import DataError, InputError, LabelError, ModelError
from ramify.parallel import reporting_to, running_on
from ramify.workflows import PredictOptions, predict_files, predict_rows
from ramify.workflows.file_predictions import MANIFEST, name_outputs
from ramify.workflows.predict_stream import WRITERS, predict_texts
from ramify.workflows.predictor import Predictor

EVERYWHERE = pytest.mark.parametrize("executor", [None, ApartExecutor()], ids=["here", "apart"])


@pytest.fixture(scope="module")
def model(classifier, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model"
    classifier.save(path)
    return path


@pytest.fixture
def folder(tmp_path, shop):
    """Eleven files of documents with numbers."""
    (tmp_path / "parts").mkdir()
    for k in range(11):
        write_csv(tmp_path / "parts" / f"part-{k}.csv", shop.test.documents[5 * k : 5 * k + 5])
    return tmp_path / "parts"


def write_csv(path, texts):
    with open(path, "w", newline="") as file:
        table = csv.writer(file)
        table.writerows([("id", "text"), *enumerate(texts)])


def alone(model, path, ending, columns, options=None):
    """What the file becomes by itself."""
    classifier = load(model)
    _, text, rows = stream_rows(path, "text")
    file = io.StringIO()
    write = WRITERS[ending](file, columns, (options or PredictOptions()).top)
    for prediction in predict_rows(classifier, rows, text, options):
        write(prediction)
    return file.getvalue()


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != MANIFEST and path.is_file()}


@EVERYWHERE
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_every_file_becomes_what_it_would_become_alone(model, folder, tmp_path, executor, n_jobs):
    options = PredictOptions(top=3, threshold=0.2)
    with running_on(executor):
        done = predict_files(model, folder, tmp_path / "predictions", options=options, n_jobs=n_jobs)
    assert (done.written, done.skipped, done.tally.documents, done.tally.problems) == (11, 0, 55, 0)
    found = contents(tmp_path / "predictions")
    assert set(found) == {f"part-{k}.csv" for k in range(11)}
    for name, content in found.items():
        assert content.decode() == alone(model, folder / name, ".csv", ["id", "text"], options)
    rows = [row for content in found.values() for row in csv.DictReader(content.decode().splitlines())]
    assert done.tally.labels == sum(len(row["predicted"].split(" | ")) for row in rows if row["predicted"])


def test_another_rule_and_json(model, folder, tmp_path):
    rule = make_rule("top-down", {})
    predict_files(model, folder / "part-[12].csv", tmp_path / "predictions", rule=rule, as_json=True)
    classifier = load(model).redecided(rule)
    for name in ("part-1", "part-2"):
        predictions = [json.loads(line) for line in (tmp_path / "predictions" / f"{name}.jsonl").read_text().splitlines()]
        _, text, rows = stream_rows(folder / f"{name}.csv", "text")
        expected = [prediction.labels for prediction in predict_rows(classifier, rows, text)]
        assert [[(a["label"], a["probability"]) for a in prediction["predicted"]] for prediction in predictions] == expected


@EVERYWHERE
def test_files_of_every_kind_and_odd_ones(model, tmp_path, executor):
    (tmp_path / "json").mkdir()
    (tmp_path / "json" / "a.jsonl.gz").write_bytes(gzip.compress(b'{"id": 1}\n{"id": 2, "text": "no picture"}\n'))
    (tmp_path / "json" / "nichts.json").write_text("")
    (tmp_path / "json" / "schlecht ü.ndjson").write_text("nonsense\n{}\n")
    (tmp_path / "parquet").mkdir()
    polars.DataFrame({"text": ["no picture", None]}).write_parquet(tmp_path / "parquet" / "p.parquet")
    polars.DataFrame({"text": []}, schema={"text": polars.String}).write_parquet(tmp_path / "parquet" / "leer.parquet")
    (tmp_path / "tsv").mkdir()
    (tmp_path / "tsv" / "x.tsv").write_text("text\tid\nno picture\t1\n")
    (tmp_path / "tsv" / "y.csv").write_text("id,text\n2,\n")
    (tmp_path / "tsv" / "z").write_text("id,text\n")
    (tmp_path / "tsv" / "null.csv").write_text("")
    found = {}
    with running_on(executor):
        for kind in ("json", "parquet", "tsv"):
            done = predict_files(model, tmp_path / kind, tmp_path / f"{kind} predictions")
            found |= {
                f"{kind}/{name}": content.decode() for name, content in contents(tmp_path / f"{kind} predictions").items()
            }
            assert done.tally.documents == sum(1 for _ in open_file_set(tmp_path / kind, "utf-8").rows())
    lines = {name: content.splitlines() for name, content in found.items()}
    assert sorted(lines) == [
        "json/a.jsonl", "json/nichts.jsonl", "json/schlecht ü.jsonl", "parquet/leer.csv", "parquet/p.csv",
        "tsv/null.csv", "tsv/x.tsv", "tsv/y.csv", "tsv/z.csv",
    ]  # fmt: skip
    first, second = map(json.loads, lines["json/a.jsonl"])
    assert first["problem"] == "there is no 'text'"
    assert second["predicted"]
    assert [json.loads(line)["problem"] for line in lines["json/schlecht ü.jsonl"]] == ["not valid JSON", "there is no 'text'"]
    assert lines["json/nichts.jsonl"] == []
    assert lines["parquet/leer.csv"] == ["text,predicted,probability,problem"]
    assert lines["parquet/p.csv"][2].endswith("the text is null")
    assert lines["tsv/null.csv"] == lines["tsv/z.csv"] == ["text,id,predicted,probability,problem"]
    assert lines["tsv/x.tsv"][0] == "text\tid\tpredicted\tprobability\tproblem"
    assert lines["tsv/y.csv"][1] == ",2,,,the text is empty"


def test_names_that_would_be_the_same_are_refused(model, folder, tmp_path):
    (folder / "part-1.csv.gz").write_bytes(gzip.compress((folder / "part-1.csv").read_bytes()))
    with pytest.raises(InputError, match=r"part-1.csv and for .*part-1.csv.gz would both be part-1.csv"):
        predict_files(model, folder, tmp_path / "predictions")
    assert not (tmp_path / "predictions").exists()


def test_names_of_predictions(tmp_path):
    for name in ("a.v2.csv", "B.CSV", "c.txt", "d.tab", "part-00000", "e.v2", "日本.csv"):
        (tmp_path / name).write_text("id,text\n1,x\n")
    parts = open_file_set(tmp_path, "utf-8")
    assert {path.name: name for name, path in name_outputs(parts, as_json=False).items()} == {
        "a.v2.csv": "a.v2.csv", "B.CSV": "B.csv", "c.txt": "c.csv", "d.tab": "d.tsv", "part-00000": "part-00000.csv",
        "e.v2": "e.v2.csv", "日本.csv": "日本.csv",
    }  # fmt: skip


# ---- resuming ----------------------------------------------------------------------------------------------------------


@EVERYWHERE
def test_resuming_gives_the_bytes_of_an_uninterrupted_run(model, folder, tmp_path, executor):
    predict_files(model, folder, tmp_path / "whole")
    with running_on(executor):
        predict_files(model, folder, tmp_path / "predictions")
        skipped = tmp_path / "predictions" / "part-3.csv"
        for k in (0, 5, 10):
            (tmp_path / "predictions" / f"part-{k}.csv").unlink()
        stamp = skipped.stat().st_mtime_ns
        done = predict_files(model, folder, tmp_path / "predictions", resume=True)
    assert (done.written, done.skipped, done.tally.documents) == (3, 8, 15)
    assert skipped.stat().st_mtime_ns == stamp
    assert contents(tmp_path / "predictions") == contents(tmp_path / "whole")


def test_new_files_are_classified_when_resuming(model, folder, tmp_path):
    predict_files(model, folder, tmp_path / "predictions")
    write_csv(folder / "part-11.csv", ["no picture"])
    assert predict_files(model, folder, tmp_path / "predictions", resume=True).written == 1
    assert predict_files(model, folder, tmp_path / "predictions", resume=True).written == 0


def test_a_file_that_could_not_be_read_may_be_fixed_before_resuming(model, folder, tmp_path):
    write_csv(folder / "part-6.csv", ["no picture", ""])
    with pytest.raises(DataError, match=r"part-6.csv, line 3: the text is empty; put it right, or drop --strict"):
        predict_files(model, folder, tmp_path / "predictions", strict=True)
    assert set(contents(tmp_path / "predictions")) == {f"part-{k}.csv" for k in range(6)}
    write_csv(folder / "part-6.csv", ["no picture", "dark screen"])
    assert predict_files(model, folder, tmp_path / "predictions", strict=True, resume=True).written == 5


@pytest.mark.parametrize("what", ["model", "option", "rule", "changed", "gone", "nothing there", "no manifest"])
def test_what_does_not_fit_is_not_resumed(model, folder, tmp_path, classifier, what):
    out = tmp_path / "predictions"
    if what == "nothing there":
        with pytest.raises(InputError, match=r"there are no predictions to resume in .*predictions; leave out --resume"):
            predict_files(model, folder, out, resume=True)
        assert not out.exists()
        return
    predict_files(model, folder, out)
    before = contents(out)
    asked, message = {}, ""
    if what == "model":
        classifier.redecided(make_rule("top-down", {})).save(tmp_path / "other")
        model, message = tmp_path / "other", "of another model"
    elif what == "option":
        asked, message = {"options": PredictOptions(top=2)}, "with another top"
    elif what == "rule":
        asked, message = {"rule": make_rule("top-down", {})}, "with another rule"
    elif what == "changed":
        write_csv(folder / "part-4.csv", ["other words"])
        message = "part-4.csv has changed since its predictions were written"
    elif what == "gone":
        (folder / "part-4.csv").unlink()
        message = "part-4.csv is of a file that is not among these"
    else:
        (out / MANIFEST).write_text("{}")
        message = "is not a manifest that this Ramify writes"
    with pytest.raises(InputError, match=message):
        predict_files(model, folder, out, resume=True, **asked)
    assert contents(out) == before


def test_predictions_of_an_earlier_run_are_removed_and_other_files_are_never_touched(model, folder, tmp_path):
    out = tmp_path / "predictions"
    predict_files(model, folder, out)
    (folder / "part-10.csv").unlink()
    (out / "mine.txt").write_text("precious")
    predict_files(model, folder, out, options=PredictOptions(top=2))
    assert set(contents(out)) == {"mine.txt", *(f"part-{k}.csv" for k in range(10))}
    write_csv(folder / "part-77.csv", ["no picture"])
    (out / "part-77.csv").write_text("precious")
    with pytest.raises(InputError, match="holds 'part-77.csv', which no earlier run wrote"):
        predict_files(model, folder, out)
    assert (out / "part-77.csv").read_text() == "precious"
    (out / MANIFEST).unlink()
    with pytest.raises(InputError, match="holds 'mine.txt', which no earlier run wrote"):
        predict_files(model, folder, out)


HOSTILE = (
    "../precious.csv",
    "/etc/precious.csv",
    "sub/x.csv",
    "a\0.csv",
    "\ud800.csv",
    "",
    ".",
    "..",
    ".hidden.csv",
    "thesis.txt",
    f"{'n' * 300}.csv",
)


@pytest.mark.parametrize("resume", [True, False])
@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_is_removed_if_a_manifest_names_what_no_run_writes(model, folder, tmp_path, name, resume):
    out = tmp_path / "predictions"
    predict_files(model, folder, out)
    manifest = json.loads((out / MANIFEST).read_text())
    manifest["files"] = {**manifest["files"], name: {}}
    (out / MANIFEST).write_text(json.dumps(manifest))
    (out / "thesis.txt").write_text("precious")
    before = contents(out)
    with pytest.raises(InputError, match="is not a manifest that this Ramify writes"):
        predict_files(model, folder, out, resume=resume)
    assert contents(out) == before


def test_nothing_is_removed_if_a_manifest_names_a_directory_or_has_no_end(model, folder, tmp_path):
    out = tmp_path / "predictions"
    predict_files(model, folder, out)
    (out / "part-4.csv").unlink()
    (out / "part-4.csv").mkdir()
    before = contents(out)
    with pytest.raises(InputError, match="part-4.csv is a directory, which no earlier run wrote"):
        predict_files(model, folder, out)
    assert contents(out) == before
    (out / MANIFEST).unlink()
    (out / MANIFEST).symlink_to("/dev/zero")
    with pytest.raises(InputError, match="is not a manifest that this Ramify writes"):
        predict_files(model, folder, out)


def test_places_where_predictions_must_not_go(model, folder, tmp_path):
    with pytest.raises(InputError, match="lies in the directory of the documents"):
        predict_files(model, folder, folder / "predictions")
    with pytest.raises(InputError, match="is read by this command and would be overwritten"):
        predict_files(model, folder / "*.csv", folder)
    with pytest.raises(InputError, match="lies in the model directory"):
        predict_files(model, folder, model / "predictions")
    with pytest.raises(InputError, match="lies in the model directory"):
        predict_files(model, folder, model)
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(InputError, match="lead in a circle"):
        predict_files(model, folder, tmp_path / "loop")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be a directory for predictions"):
        predict_files(model, folder, tmp_path / "file")


def test_rows_that_cannot_be_classified(model, folder, tmp_path):
    write_csv(folder / "part-2.csv", ["", " "])
    done = predict_files(model, folder, tmp_path / "predictions")
    assert done.tally.problems == 2
    assert done.tally.first == f"{folder / 'part-2.csv'}, line 2: the text is empty"
    with pytest.raises(DataError, match=r"not one of 2 rows could be classified; the first: .*part-2.csv, line 2"):
        predict_files(model, folder / "part-2*", tmp_path / "others")


def test_options_that_do_not_fit_the_model_are_refused_before_anything_is_written(model, folder, tmp_path):
    with pytest.raises(LabelError, match="nowhere"):
        predict_files(model, folder, tmp_path / "predictions", options=PredictOptions(within=("nowhere",)))
    assert not (tmp_path / "predictions").exists()


def test_a_model_that_is_replaced_meanwhile_is_noticed(model, folder, tmp_path, classifier, monkeypatch):
    from ramify.workflows import file_predictions

    turns = iter(["one", "other"])
    monkeypatch.setattr(file_predictions, "model_fingerprint", lambda _: next(turns))
    with pytest.raises(ModelError, match="was replaced meanwhile"):
        predict_files(model, folder, tmp_path / "predictions")


def test_progress_is_told_by_files_and_documents(model, folder, tmp_path):
    told = []

    class Step:
        def __init__(self, title):
            self.title = title

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def advance(self, amount=1):
            told.append((self.title, amount))

        def describe(self, what):
            told.append((self.title, what))

    class Listener:
        def stage(self, title, total):
            return Step(title)

    with reporting_to(Listener()):
        predict_files(model, folder, tmp_path / "predictions")
    title = f"classifying {folder}"
    assert [what for where, what in told if where == title and what == 1] == [1] * 11
    assert (title, "55 documents") in told


# ---- one file on many workers -------------------------------------------------------------------------------------------


def test_rows_of_one_file_go_to_workers_as_they_are_asked_for(model, shop):
    class Watched(ApartExecutor):
        def distribute(self, job, placed, blocks, codec=None):
            def counted():
                for block in blocks:
                    self.taken = getattr(self, "taken", 0) + len(block)
                    yield block

            return super().distribute(job, placed, counted(), codec)

    classifier, executor = load(model), Watched()
    texts = shop.test.documents * 60
    rows = [(i, {"text": text if i % 7 else None, "id": i}) for i, text in enumerate(texts)]
    expected = list(predict_rows(classifier, rows, "text", PredictOptions(top=2)))
    with running_on(executor):
        predictions = predict_rows(classifier, iter(rows), "text", PredictOptions(top=2))
        first = next(predictions)
        assert 0 < executor.taken < len(rows) // 2
        assert [first, *predictions] == expected
    assert set(executor.jobs) == {"predict_texts"}


def test_a_worker_that_runs_out_of_memory_predicts_halves(classifier, monkeypatch, shop):
    texts = shop.test.documents[:50]
    prediction = Predictor(classifier)
    expected, asked, whole = predict_texts(prediction, texts), [], Predictor.predict

    def scarce(self, documents):
        asked.append(len(documents))
        if len(documents) > 6:
            raise MemoryError
        return whole(self, documents)

    monkeypatch.setattr(Predictor, "predict", scarce)
    assert predict_texts(prediction, texts) == expected
    assert max(asked) == 50
    monkeypatch.setattr(Predictor, "predict", lambda self, documents: (_ for _ in ()).throw(MemoryError))
    with pytest.raises(MemoryError):
        predict_texts(prediction, texts)
