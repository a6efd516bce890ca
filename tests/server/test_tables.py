"""How uploaded tables are read: encodings, text columns, previews, and spreadsheets."""

from __future__ import annotations

import csv
import gzip
import io
import json

import pytest
from sheets import write_xlsx
from starlette.testclient import TestClient

from ramify.data import load_electronics
from ramify.server import spreadsheets
from ramify.server.app import make_app
from ramify.server.routes import tables
from ramify.server.services import Services
from ramify.server.settings import Limits, Settings

NDJSON, CSV = {"content-type": "application/x-ndjson"}, {"content-type": "text/csv"}
CSV_IN = {**CSV, "accept": "application/x-ndjson"}
XLSX = {"content-type": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"}
PARCEL = "my parcel was due on monday and the tracking has not moved since"
LABEL = "Orders & delivery > Delivery > Late or lost parcel"


@pytest.fixture(scope="module")
def client(models):
    with TestClient(make_app(Services(Settings({"m": models["support-nb"]}))), base_url="http://localhost") as made:
        yield made


def echoed(answer):
    assert answer.status_code == 200, answer.text
    return [json.loads(line)["row"] for line in answer.text.splitlines()]


def batch(client, table, headers=CSV_IN, **params):
    return client.post("/v1/batch", content=table, headers=headers, params={"echo": True, **params})


def preview(client, table, headers=CSV, **params):
    return client.post("/v1/tables/preview", content=table, headers=headers, params=params)


def refused(answer, status):
    assert answer.status_code == status, answer.text
    return answer.json()["error"]["message"]


# ---- encodings ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("written", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("cuts", [1, 7, 100_000])
def test_a_table_in_unicode_is_read_whatever_its_form_and_however_it_is_cut(client, written, cuts):
    table = f"text\n{PARCEL} für 5 €\nno picture\n".encode(written)
    answer = batch(client, (table[i : i + cuts] for i in range(0, len(table), cuts)))
    assert echoed(answer) == [{"text": f"{PARCEL} für 5 €"}, {"text": "no picture"}]
    assert answer.headers["ramify-encoding"] == written.removesuffix("-sig")


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16-le", "shift_jis", "gb18030"])
def test_an_encoding_that_is_told_is_used(client, encoding):
    text = "荷物が届かない" if encoding in ("shift_jis", "gb18030") else "für 5 €"
    answer = batch(client, f"text\n{text}\n".encode(encoding), encoding=encoding)
    assert echoed(answer) == [{"text": text}]
    assert answer.headers["ramify-encoding"] == encoding
    lines = json.dumps({"text": text}, ensure_ascii=False).encode(encoding)
    assert echoed(batch(client, lines, NDJSON, encoding=encoding)) == [{"text": text}]


def test_bytes_that_do_not_fit_are_a_problem_of_their_row(client):
    found = [json.loads(line) for line in batch(client, "text\nfür\nparcel\n".encode("cp1252")).text.splitlines()]
    assert found[0]["problem"] == "not UTF-8"
    assert "problem" not in found[1]


def test_an_encoding_that_is_none_is_refused(client):
    assert "encoding" in refused(batch(client, b"text\na\n", encoding="unicode_escape"), 422)
    assert "not utf-16" in refused(batch(client, b"text\na\n", encoding="utf-16-le"), 422)


def test_compressed_tables_are_refused_whatever_encoding_is_told(client):
    for encoding in (None, "cp1252", "utf-16"):
        refused(batch(client, gzip.compress(b"text\nparcel\n"), **({"encoding": encoding} if encoding else {})), 415)


def test_recoded_lines_are_as_limited_as_others(models):
    limits = Limits(characters=10)
    with TestClient(make_app(Services(Settings({"m": models["support-nb"]}, limits=limits))), base_url="http://localhost") as c:
        row = "," * 5_100
        assert refused(batch(c, f"text\n{row}\n".encode("utf-16")), 413)


@pytest.mark.parametrize("written", ["utf-8", "cp1252", "utf-16"])
def test_an_evaluation_says_how_it_read_the_table(client, written):
    table = f"words,right\n{PARCEL} für 5 €,{LABEL}\n".encode(written)
    made = client.post("/v1/evaluate", content=table, headers=CSV, params={"text": "words", "label": "right"}).json()
    assert (made["encoding"], made["text"], made["label"], made["documents"]) == (written, ["words"], ["right"], 1)
    wrong = client.post("/v1/evaluate", content=table, headers=CSV, params={"encoding": "utf-32"})
    assert "utf-32" in refused(wrong, 422).lower()


# ---- columns --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("params", [{"text": "title,body"}, {"text": ["title", "body"]}])
def test_several_columns_are_read_as_one_text(client, params):
    answer = batch(client, f"title,id,body\nlate,1,{PARCEL}\n", **params)
    alone = batch(client, json.dumps(f"late\n{PARCEL}"), NDJSON)
    assert json.loads(answer.text)["labels"] == json.loads(alone.text)["labels"]
    assert answer.headers["ramify-text"] == "title,body"


def test_a_column_with_a_comma_in_its_name_can_be_named(client):
    table = f'"a, b",c\n{PARCEL},d\n'
    answer = batch(client, table, text=["a, b", "c"])
    assert answer.headers["ramify-text"] == "a%2C%20b,c"
    assert batch(client, table, text="a, b").headers["ramify-text"] == "a%2C%20b"


def test_the_header_names_the_column_that_was_found(client):
    assert batch(client, f"text,note\n{PARCEL},a much longer note {'of many words ' * 9}\n").headers["ramify-text"] == "text"
    assert batch(client, json.dumps({"größe": 1, "wörter": PARCEL}), NDJSON).headers["ramify-text"] == "w%C3%B6rter"


def test_labels_are_never_taken_for_the_text_however_long(client):
    table = f"a,b\n{LABEL},lost it\n"
    assert batch(client, table).headers["ramify-text"] == "b"
    assert batch(client, f"a,b\n{LABEL} | {LABEL},lost it\n").headers["ramify-text"] == "b"
    assert preview(client, table).json()["text"] == ["b"]


def test_an_evaluation_takes_several_text_columns(client):
    made = client.post(
        "/v1/evaluate", content=f"title,body,label\nlate,{PARCEL},{LABEL}\n", headers=CSV, params={"text": ["title", "body"]}
    ).json()
    assert made["text"] == ["title", "body"]


# ---- previews -------------------------------------------------------------------------------------------------------------


def test_a_preview_shows_columns_rows_and_what_the_model_would_read(client):
    rows = [(i, text, "|".join(labels)) for i, (text, labels) in enumerate(zip(*some_documents(20), strict=True))]
    file = io.StringIO()
    csv.writer(file).writerows([("id", "words", "where"), *rows])
    found = preview(client, file.getvalue()).json()
    assert found["columns"] == ["id", "words", "where"]
    assert found["rows"] == [[str(i), text[:300], labels] for i, text, labels in rows[:5]]
    assert (found["text"], found["label"], found["encoding"], found["problem"]) == (["words"], ["where"], "utf-8", None)


def some_documents(count):
    test = load_electronics().test
    return [str(text) for text in test.documents[:count]], test.labels[:count]


def test_a_preview_takes_the_columns_that_the_model_was_trained_on(client, monkeypatch):
    served = next(iter(client.app._services.registry))
    monkeypatch.setitem(served.classifier.figures_, "columns", {"text": "body", "label": ["where"], "label_separator": None})
    table = f"text,body,where\nanother text that is far longer than the body {'x ' * 40},lost,{LABEL}\n"
    found = preview(client, table).json()
    assert (found["text"], found["label"]) == (["body"], ["where"])
    assert batch(client, table).headers["ramify-text"] == "body"


@pytest.mark.parametrize(("written", "found"), [("cp1252", "cp1252"), ("utf-16", "utf-16"), ("utf-8-sig", "utf-8")])
def test_a_preview_finds_the_encoding_from_all_its_bytes(client, written, found):
    table = "text\n" + "parcel\n" * 100 + "für 5 € und größer\n"
    answer = preview(client, table.encode(written)).json()
    assert (answer["encoding"], answer["columns"], answer["rows"][0]) == (found, ["text"], ["parcel"])
    overruled = preview(client, "text\nfür\n".encode("cp1252"), encoding="cp1251").json()
    assert overruled["rows"] == [["fьr"]]


def test_a_preview_that_finds_no_encoding_says_what_to_do(client):
    message = refused(preview(client, "текст\nпосылка не пришла\n".encode("cp1251")), 422)
    assert "give its encoding" in message
    assert "--" not in message


def test_the_end_of_a_table_that_goes_on_is_left_out(client):
    for cut in ("text\nparcel\npic", 'text\nparcel\n"an open quote\n', "text\nparcel\nfür".encode()[:-2]):
        assert preview(client, cut, cut=True).json()["rows"] == [["parcel"]]
    assert preview(client, b'{"text": "parcel"}\n{"te', NDJSON, cut=True).json()["rows"] == [["parcel"]]
    assert preview(client, "text\nparcel\npic").json()["rows"] == [["parcel"], ["pic"]]


def test_a_preview_without_text_says_why(client):
    found = preview(client, "a,b\n1,2\n").json()
    assert (found["text"], found["columns"]) == ([], ["a", "b"])
    assert "no column looks like text" in found["problem"]
    assert "no rows" in refused(preview(client, "text\n"), 422)
    assert "empty" in refused(preview(client, ""), 422)


def test_a_preview_of_bare_texts_and_of_odd_values_is_texts(client):
    assert preview(client, '"parcel"\n', NDJSON).json()["rows"] == [["parcel"]]
    found = preview(client, '{"text": "parcel", "n": 1.5}\n{"text": null}\n', NDJSON).json()
    assert found["rows"] == [["parcel", "1.5"], ["", ""]]


def test_a_preview_reads_a_bounded_part(client, monkeypatch):
    monkeypatch.setattr(tables, "PREVIEW_BYTES", 1_000)
    assert "beginning" in refused(preview(client, "text\n" + "parcel\n" * 200), 413)


# ---- spreadsheets ---------------------------------------------------------------------------------------------------------


def test_a_spreadsheet_comes_back_as_csv(client, tmp_path):
    path = write_xlsx(
        tmp_path / "t.xlsx", {"only": [["text", "label"], [f"{PARCEL}, für 5 €", LABEL], ['a "quote"\nand more', ""]]}
    )
    answer = client.post("/v1/tables/csv", content=path.read_bytes(), headers=XLSX)
    assert answer.headers["content-type"].startswith("text/csv")
    rows = list(csv.reader(io.StringIO(answer.content.decode(), newline="")))
    assert rows == [["text", "label"], [f"{PARCEL}, für 5 €", LABEL], ['a "quote"\nand more', ""]]


def test_one_of_several_sheets_has_to_be_named(client, tmp_path):
    content = write_xlsx(tmp_path / "t.xlsx", {"one": [["text"], ["a"]], "two": [["text"], ["b"]]}).read_bytes()
    message = refused(client.post("/v1/tables/csv", content=content, headers=XLSX), 422)
    assert "'one', 'two'" in message
    assert "--" not in message
    assert "/tmp" not in message
    assert client.post("/v1/tables/csv", content=content, headers=XLSX, params={"sheet": "two"}).text == "text\nb\n"
    for name in ("three", "\x00", "-h"):
        message = refused(client.post("/v1/tables/csv", content=content, headers=XLSX, params={"sheet": name}), 422)
        assert "has no sheet" in message


def test_what_is_no_spreadsheet_is_refused_in_a_sentence(client):
    for content in (b"", b"text\na\n", b"PK\x03\x04 and nothing more"):
        message = refused(client.post("/v1/tables/csv", content=content, headers=XLSX), 422)
        assert "cannot be read as a spreadsheet" in message
    assert "content type" in refused(client.post("/v1/tables/csv", content=b"a", headers=CSV), 415)


def test_a_spreadsheet_reserves_the_memory_of_its_reader_only_while_it_is_read(models, tmp_path, monkeypatch):
    content = write_xlsx(tmp_path / "t.xlsx", {"one": [["text"], ["a" * 1_000]]}).read_bytes()
    services = Services(Settings({"m": models["support-nb"]}))
    used = []
    real = spreadsheets.write_sheet
    monkeypatch.setattr(spreadsheets, "write_sheet", lambda *args: used.append(services.memory.used) or real(*args))
    with TestClient(make_app(services), base_url="http://localhost") as client:
        assert client.post("/v1/tables/csv", content=content, headers=XLSX).status_code == 200
        assert used[0] >= spreadsheets.LIMITS.megabytes << 20
        assert services.memory.used == 0
    with TestClient(make_app(Services(Settings({"m": models["support-nb"]}, limits=Limits(memory_bytes=1 << 28))))) as small:
        message = refused(small.post("/v1/tables/csv", content=content, headers={**XLSX, "host": "localhost"}), 413)
        assert "memory" in message


def test_a_sheet_that_unpacks_to_too_much_is_refused(client, tmp_path, monkeypatch):
    content = write_xlsx(tmp_path / "t.xlsx", {"one": [["text"], *[["a" * 1_000]] * 100]}).read_bytes()
    real = spreadsheets.write_sheet
    monkeypatch.setattr(spreadsheets, "write_sheet", lambda path, sheet, file, most: real(path, sheet, file, 50_000))
    assert "save it as CSV" in refused(client.post("/v1/tables/csv", content=content, headers=XLSX), 413)
    monkeypatch.setattr(spreadsheets, "MOST_BYTES", 500)
    assert "save the sheet as CSV" in refused(client.post("/v1/tables/csv", content=content, headers=XLSX), 413)


# ---- search ---------------------------------------------------------------------------------------------------------------


def test_a_search_that_finds_nothing_suggests_one_that_does(client):
    def suggested(query):
        answer = client.get("/v1/taxonomy/search", params={"query": query}).json()
        assert answer["matches"] == []
        return answer["did_you_mean"]

    assert suggested("bluetoth paring") == "bluetooth pairing"
    assert suggested("DELIVERRY") == "delivery"
    assert suggested("qqqq") is None
    assert suggested("bluetooth invoice") is None  # known words, but of different paths
    assert client.get("/v1/taxonomy/search", params={"query": "delivery"}).json()["did_you_mean"] is None
