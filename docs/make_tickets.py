"""Make the two tables of the tutorial from the bundled corpus: ``python docs/make_tickets.py`` writes docs/tables.

tickets.xlsx is a help desk's spreadsheet, with the untidy cells that such spreadsheets have. october.csv is a later export of
another program, in the encoding and with the separator of a western European Windows.
"""

import csv
import datetime
import io
import random
import re
import zipfile
from pathlib import Path

import openpyxl

from ramify.data import Corpus, load_electronics

TABLES = Path(__file__).parent / "tables"
CATEGORIES = (
    "Late or lost parcel", "Change or cancel order", "Card declined", "Charged twice", "Invoice copy", "Refund not received",
    "Warranty claim",
)  # fmt: skip
N_TRAINED, N_LATER = 210, 40
LONGEST = 120  # characters of a text: the files have to stay small


def main() -> None:
    """Write both tables."""
    shop = load_electronics()
    TABLES.mkdir(exist_ok=True)
    write_spreadsheet(make_untidy(find_tickets(shop.train)[:N_TRAINED]), TABLES / "tickets.xlsx")
    write_export(find_tickets(shop.test)[:N_LATER], TABLES / "october.csv")


def find_tickets(corpus: Corpus) -> list[list[str]]:
    """Title, body and category of short requests with one label, in an order of no meaning."""
    pairs = zip(corpus.documents, corpus.labels, strict=True)
    chosen = [(text, labels[0]) for text, labels in pairs if len(labels) == 1 and len(text) <= LONGEST]
    found = [[*split_title(text), label] for text, label in chosen if label.endswith(CATEGORIES)]
    random.Random(1).shuffle(found)
    return found


def split_title(text: str) -> tuple[str, str]:
    """The first sentence and the rest; a long text without a second sentence has its first words as its title.

    >>> split_title("No parcel. It was due on Monday."), split_title("where is my parcel")
    (('No parcel.', 'It was due on Monday.'), ('where is my parcel', ''))
    """
    sentence = re.match(r"(.{8,60}?[.!?,;:])\s+(?=\S)", text)
    if sentence is None:
        return text, ""
    return sentence[1].rstrip(",;:"), text[sentence.end() :]


def make_untidy(rows: list[list[str]]) -> list[list[str]]:
    """Give some rows no category, and write the category of others in another way."""
    untidy = [list(row) for row in rows]
    late = [row for row in untidy if row[2].endswith("Late or lost parcel")]
    for row in late[:3]:
        row[2] = row[2].replace("Late or lost parcel", "late or lost parcel")
    refunds = [row for row in untidy if row[2].endswith("Refund not received")]
    for row in refunds[:2]:
        row[2] = row[2].replace(" > ", ">")
    for number, row in enumerate(untidy[5::33]):
        row[2] = "n/a" if number % 3 else "-"
    for row in untidy[9::60]:
        row[2] = next(other[2] for other in rows if other[2].split()[0] != row[2].split()[0])
    return untidy


def write_spreadsheet(rows: list[list[str]], path: Path) -> None:
    """A workbook with one sheet, as a help desk exports it."""
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Tickets"
    sheet.append(["Ticket", "Created", "Title", "Body", "Category"])
    day = datetime.date(2025, 9, 1)
    for number, (title, body, label) in enumerate(rows):
        sheet.append([4100 + number, day + datetime.timedelta(number // 14), title, body, label])
    for column, width in zip("ABCDE", (8, 12, 44, 60, 52), strict=True):
        sheet.column_dimensions[column].width = width
    packed = io.BytesIO()
    book.save(packed)
    with zipfile.ZipFile(packed) as written, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as smaller:
        for name in written.namelist():
            smaller.writestr(zipfile.ZipInfo(name), written.read(name), zipfile.ZIP_DEFLATED)


def write_export(rows: list[list[str]], path: Path) -> None:
    """A table with semicolons in cp1252, with a second column that could be the labels."""
    with open(path, "w", newline="", encoding="cp1252") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerow(["Title", "Body", "Category", "Topic"])
        for title, body, label in rows:
            writer.writerow([title, body, label, label.split()[0].lower()])


if __name__ == "__main__":
    main()
