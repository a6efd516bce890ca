"""Files that cannot be written down as plain UTF-8: spreadsheets, Parquet, other encodings, packed and broken ones.

usage: python tests/tables/make_files.py FOLDER
"""

from __future__ import annotations

import gzip
import io
import json
import sys
import zipfile
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import openpyxl
import polars
from odf.opendocument import OpenDocumentSpreadsheet
from odf.table import Table, TableCell, TableRow
from odf.text import P

ORDERS = ["parcel is late", "parcel is lost", "where is my parcel"]
SETS = ["no picture", "no sound", "screen dark"]
TICKETS = [*((text, "Orders") for text in ORDERS), *((text, "TV") for text in SETS)]
GERMAN = [
    ("Paket ist zu spät", "Versand › Verspätet"),
    ("Das Päckchen kam nicht", "Versand › Verspätet"),
    ("„Express“ dauert – wie immer – länger", "Versand › Verspätet"),
    ("Gerät größer als erwartet", "Gerät › Größe"),
    ("Zu große Schuhe für 49,90 €", "Gerät › Größe"),
    ("passt nicht, zu groß", "Gerät › Größe"),
]
RUSSIAN = [
    ("посылка опоздала", "доставка"),
    ("посылка потеряна", "доставка"),
    ("нет звука", "телевизор"),
    ("темно", "телевизор"),
]


def csv_of(rows: list[tuple[str, ...]], header: str, mark: str = ";", end: str = "\r\n") -> str:
    """Rows without marks in their cells, as text."""
    return end.join([header, *(mark.join(row) for row in rows), ""])


def book(*sheets: tuple[str, list[list[Any]]], change: Callable[[Any], None] | None = None) -> bytes:
    """An Excel file of sheets with their rows."""
    made = openpyxl.Workbook()
    made.remove(made.active)
    for name, rows in sheets:
        sheet = made.create_sheet(name)
        for row in rows:
            sheet.append(row)
    if change is not None:
        change(made)
    out = io.BytesIO()
    made.save(out)
    return out.getvalue()


def rows_of(*columns: str) -> list[list[Any]]:
    """A header and six tickets."""
    return [list(columns), *map(list, TICKETS)]


def merged() -> bytes:
    """A heading over groups of columns, and a category that spans its rows."""
    rows = [["Ticket", None, "Classification", None], ["no", "text", "level1", "level2"]]
    rows += [[k, text, label, "general"] for k, (text, label) in enumerate(TICKETS, start=1)]

    def change(made: Any) -> None:
        for cells in ("A1:B1", "C1:D1", "C3:C5", "C6:C8"):
            made["Tickets"].merge_cells(cells)

    return book(("Tickets", rows), change=change)


def with_formulas() -> bytes:
    """Labels that are results of formulas, as Excel stores them; one formula failed."""
    cells = [("text", "label")] + [(text, label) for text, label in TICKETS] + [("what is this", "#N/A")]
    rows = []
    for number, (text, label) in enumerate(cells, start=1):
        kind = "e" if label == "#N/A" else "str"
        formula = f"<f>VLOOKUP(C{number},Codes!A:B,2,FALSE)</f>" if number > 1 else ""
        first = f'<c r="A{number}" t="inlineStr"><is><t>{text}</t></is></c>'
        rows.append(f'<row r="{number}">{first}<c r="B{number}" t="{kind}">{formula}<v>{label}</v></c></row>')
    return with_sheet(book(("Tickets", [["x"]])), f"<sheetData>{''.join(rows)}</sheetData>")


def with_sheet(sound: bytes, content: str) -> bytes:
    """An Excel file with other XML in its first sheet."""
    head = '<?xml version="1.0"?><worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(sound)) as given, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name in given.namelist():
            is_sheet = name == "xl/worksheets/sheet1.xml"
            made.writestr(name, f"{head}{content}</worksheet>" if is_sheet else given.read(name))
    return out.getvalue()


def ods(*sheets: tuple[str, list[list[Any]]]) -> bytes:
    """A file of LibreOffice Calc; empty rows below are one row that is repeated, as it writes them."""
    made = OpenDocumentSpreadsheet()
    for name, rows in sheets:
        table = Table(name=name)
        for row in rows:
            line = TableRow()
            for value in row:
                cell = TableCell(valuetype="float", value=value) if isinstance(value, float) else TableCell(valuetype="string")
                cell.addElement(P(text=str(value)))
                line.addElement(cell)
            table.addElement(line)
        below = TableRow(numberrowsrepeated=1_048_000)
        below.addElement(TableCell(numbercolumnsrepeated=16_000))
        table.addElement(below)
        made.spreadsheet.addElement(table)
    out = io.BytesIO()
    made.save(out)
    return out.getvalue()


def parquet(table: polars.DataFrame) -> bytes:
    """A Parquet file."""
    out = io.BytesIO()
    table.write_parquet(out)
    return out.getvalue()


def excel_exports() -> dict[str, bytes]:
    """What Excel and its like save as text."""
    german = csv_of([(str(k), text, label, "1.234,50", "01.02.2024") for k, (text, label) in enumerate(GERMAN)],
                    "Nr;Beschreibung;Kategorie;Betrag;Datum")  # fmt: skip
    trailing = "text;category;;;\r\n" + "".join(f"{text};{label};;;\r\n" for text, label in GERMAN) + ";;;;\r\n;;;;\r\n"
    smart = csv_of([("“Where’s my parcel?” – still late…", "orders"), ("It’s lost", "orders"), ("‘Late’ again", "orders"),
                    ("No picture — at all", "tv"), ("No sound™", "tv"), ("99 € for this?", "tv")], "text,label", ",")  # fmt: skip
    latin = csv_of([(f"le café est fermé {k}", "ouvert") for k in range(3)] + [(f"été à Nîmes {k}", "voyage") for k in range(3)],
                   "texte\tcategorie", "\t", "\n")  # fmt: skip
    return {
        "excel_german.csv": german.encode("cp1252"),
        "excel_trailing_columns.csv": trailing.encode("cp1252"),
        "excel_unicode_text.txt": csv_of(GERMAN, "Text\tKategorie", "\t").encode("utf-16"),
        "utf16_big_endian.csv": csv_of(GERMAN, "text;label").encode("utf-16-be"),
        "utf8_with_mark.csv": csv_of(GERMAN, "text;label").encode("utf-8-sig"),
        "smart_quotes.csv": smart.encode("cp1252"),
        "latin1.tsv": latin.encode("latin-1"),
        "cyrillic_cp1251.csv": csv_of(RUSSIAN, "text;label").encode("cp1251"),
        "sep_line_cp1252.csv": ("sep=;\r\n" + csv_of(GERMAN, "text;label")).encode("cp1252"),
        "utf16_objects.jsonl": "".join(
            json.dumps({"text": a, "label": b}, ensure_ascii=False) + "\n" for a, b in GERMAN
        ).encode("utf-16"),
    }


def spreadsheets() -> dict[str, bytes]:
    """Excel and LibreOffice files."""
    tickets = rows_of("text", "label")
    below = [*tickets, *([None, None] for _ in range(5)), ["   ", None]]
    titles = [["Complaints 2023"], [], ["text", "category", "amount"], *([*row, 1.5] for row in TICKETS)]
    numbers = [
        ["id", "description", "class"],
        *([float(k), text, 100.0 + (label == "TV")] for k, (text, label) in enumerate(TICKETS)),
    ]
    dated = [["date", "time", "note", "group"],
             *([date(2024, 1, 1 + k), datetime(2024, 1, 1, 9, k), text, label] for k, (text, label) in enumerate(TICKETS))]  # fmt: skip
    codes = [["code", "meaning"], ["O", "Orders"], ["T", "TV"]]

    def hide(made: Any) -> None:
        made["Codes"].sheet_state = "hidden"

    return {
        "plain.xlsx": book(("Sheet1", tickets), ("Sheet2", []), ("Sheet3", [])),
        "blank_rows_below.xlsx": book(("Sheet1", below)),
        "title_rows.xlsx": book(("Report", titles)),
        "merged_cells.xlsx": merged(),
        "numeric_ids.xlsx": book(("Sheet1", numbers)),
        "dates.xlsx": book(("Sheet1", dated)),
        "formulas.xlsx": with_formulas(),
        "hidden_sheet.xlsx": book(("Tickets", tickets), ("Codes", codes), change=hide),
        "several_sheets.xlsx": book(("January", tickets), ("February", tickets), ("Überblick", codes)),
        "libreoffice.ods": ods(("Tabelle1", [["text", "label", "no"], *([*row, 1.0] for row in TICKETS)])),
        "two_sheets.ods": ods(("One", tickets), ("Two", tickets)),
        "header_only.xlsx": book(("Sheet1", [["text", "label"]])),
        "empty.xlsx": book(("Sheet1", [])),
        "no_header.xlsx": book(("Sheet1", tickets[1:])),
    }


def others() -> dict[str, bytes]:
    """Parquet and packed files."""
    texts, labels = [text for text, _ in TICKETS], [label for _, label in TICKETS]
    lines = "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in TICKETS)
    frame = polars.DataFrame({"id": range(6), "text": texts, "label": labels})
    return {
        "categorical.parquet": parquet(frame.with_columns(polars.col("label").cast(polars.Categorical))),
        "list_labels.parquet": parquet(frame.with_columns(labels=polars.concat_list("label", polars.lit("all"))).drop("label")),
        "enum_without_suffix": parquet(frame.with_columns(polars.col("label").cast(polars.Enum(["Orders", "TV"])))),
        "packed.csv.gz": gzip.compress(csv_of(TICKETS, "text,label", ",").encode(), mtime=0),
        "packed_cp1252.tsv.gz": gzip.compress(csv_of(GERMAN, "text\tlabel", "\t").encode("cp1252"), mtime=0),
        "packed_without_suffix": gzip.compress(csv_of(TICKETS, "text,label", ",").encode(), mtime=0),
        "packed.jsonl.gz": gzip.compress(lines.encode(), mtime=0),
    }


def broken() -> dict[str, bytes]:
    """Files that are cut, damaged, or something else than their names say."""
    xlsx, table = spreadsheets()["plain.xlsx"], others()
    document = io.BytesIO()
    with zipfile.ZipFile(document, "w") as made:
        made.writestr("readme.txt", "this is no spreadsheet")
    packed, row = table["packed.csv.gz"], b'{"text": "parcel is late", "label": "orders"}'
    return {
        "cut.xlsx": xlsx[: len(xlsx) // 2],
        "zip_of_text.xlsx": document.getvalue(),
        "zip_of_text.zip": document.getvalue(),
        "encrypted.xlsx": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
        + bytes(504)
        + "EncryptedPackage".encode("utf-16-le")
        + bytes(2000),
        "broken_xml.xlsx": with_sheet(xlsx, "<sheetData><row r='1'><c r='A1'><v>1</c></row>"),
        "text_named.xlsx": b"text,label\nparcel is late,orders\nno picture,tv\n",
        "cut.csv.gz": packed[: len(packed) // 2],
        "wrong_sum.csv.gz": packed[:-8] + bytes(8),
        "cut.parquet": table["categorical.parquet"][:400],
        "broken.parquet": table["categorical.parquet"][:20] + bytes(60) + table["categorical.parquet"][80:],
        "text_named.parquet": b"text,label\nparcel is late,orders\nno picture,tv\n",
        "cut_list.json": b'[{"text": "parcel is late", "label": "orders"}, {"text": "no pic',
        "cut_object.json": b'{"data": [' + row + b", " + row + b', {"text"',
        "cut_lines.jsonl": row + b"\n" + row[:20],
        "binary.csv": bytes(range(256)) * 20,
        "picture.csv": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4,
        "program": b"\x7fELF\x02\x01\x01" + bytes(200),
        "document.pdf": b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<< /Type /Catalog >>\nendobj\n",
        "web_page.html": b"<!DOCTYPE html>\n<html><head><title>Sign in</title></head>\n<body><p>Please sign in</p></body></html>\n",
        "cut_utf16.csv": csv_of(GERMAN, "text;label").encode("utf-16")[:-3],
        "open_quote.csv": b'text,label\nparcel is late,orders\n"no picture,tv\nno sound,tv\n',
        "only_zeros.csv": bytes(5000),
    }


def write_all(folder: Path) -> None:
    """Write all files that are not broken."""
    for name, content in (excel_exports() | spreadsheets() | others()).items():
        (folder / name).write_bytes(content)


if __name__ == "__main__":
    write_all(Path(sys.argv[1]))
