"""Reuters-21578: ``reut2-000.sgm`` to ``reut2-021.sgm``, split after Apté (ModApte).

Stories with TOPICS="YES" are for training where LEWISSPLIT is "TRAIN", and tested on where it is "TEST". Categories are those
that occur on both sides, 90 in all; stories without one of them are left out. A text is the title, an empty line, and the body.
The release groups its categories by kind; groups are the nodes above the categories.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

from experiments.readers.layout import Layout, Split, find_file, open_text
from ramify.data import Corpus
from ramify.errors import DataError
from ramify.taxonomy import Taxonomy

FILES = tuple(f"reut2-{number:03d}.sgm" for number in range(22))
STORY = re.compile(r"<REUTERS\b(?P<head>[^>]*)>(?P<inside>.*?)</REUTERS>", re.DOTALL)
ATTRIBUTE = re.compile(r'(\w+)\s*=\s*"([^"]*)"')
TOPICS = re.compile(r"<TOPICS>(.*?)</TOPICS>", re.DOTALL)
TOPIC = re.compile(r"<D>(.*?)</D>", re.DOTALL)
TEXT = re.compile(r"<TEXT\b[^>]*>(.*?)</TEXT>", re.DOTALL)
PIECES = tuple(re.compile(rf"<{tag}>(.*?)</{tag}>", re.DOTALL) for tag in ("TITLE", "BODY"))
TAG = re.compile(r"</?[A-Z]+\b[^>]*>")
NO_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")
GROUPS = {
    "corporate": "acq earn",
    "currency": (
        "austdlr austral bfr can cruzado dfl dkr dlr dmk drachma escudo ffr hk lira lit mexpeso nkr nzdlr peseta rand "
        "ringgit rupiah saudriyal sfr singdlr skr stg tskd yen"
    ),
    "economic-indicator": (
        "bop cpi cpu gnp housing income instal-debt inventories ipi jobs lei money-supply reserves retail trade wpi"
    ),
    "energy": "crude fuel gas heat jet naphtha nat-gas pet-chem propane",
    "subject": "interest money-fx ship",
}
OTHERS = "commodity"

Story = tuple[str, str, list[str]]


def find(folder: Path) -> list[Path]:
    """The files of stories, some of which may lack."""
    if find_file(folder, FILES[0]) is None:
        return []
    return [path for name in FILES if (path := find_file(folder, name)) is not None]


def read(folder: Path) -> Split:
    """The ModApte split of the categories with a story on both sides."""
    stories = [story for path in _all_files(folder) for story in read_stories(path)]
    train, test = ([s for s in stories if s[0] == side] for side in ("TRAIN", "TEST"))
    categories = {name for _, _, names in train for name in names} & {name for _, _, names in test for name in names}
    if not categories:
        raise DataError(f"no category of {folder} has stories to train on and to test on; give the files as published.")
    return _corpus(folder, train, categories), _corpus(folder, test, categories), grouped_taxonomy(categories)


def _all_files(folder: Path) -> list[Path]:
    missing = [name for name in FILES if find_file(folder, name) is None]
    if missing:
        raise DataError(f"{folder} lacks {', '.join(missing)}; give all of reut2-000.sgm to reut2-021.sgm.")
    return find(folder)


def read_stories(path: Path) -> Iterator[Story]:
    """Side, text and categories of every story that ModApte uses."""
    with open_text(path) as file:
        content = file.read()
    for story in STORY.finditer(content):
        head = dict(ATTRIBUTE.findall(story["head"]))
        topics = TOPICS.search(story["inside"])
        names = [unescape(name).strip() for name in TOPIC.findall(topics[1] if topics else "")]
        if head.get("TOPICS") == "YES" and head.get("LEWISSPLIT") in ("TRAIN", "TEST"):
            yield head["LEWISSPLIT"], _text(story["inside"]), list(dict.fromkeys(names))


def _text(inside: str) -> str:
    """Title and body; of a story without such marks, all of its text."""
    found = TEXT.search(inside)
    content = found[1] if found else ""
    pieces = [piece[1] for pattern in PIECES if (piece := pattern.search(content))]
    return NO_TEXT.sub("", unescape("\n\n".join(pieces) if pieces else TAG.sub(" ", content))).strip()


def _corpus(folder: Path, stories: list[Story], categories: set[str]) -> Corpus:
    kept = [(text, [name for name in names if name in categories]) for _, text, names in stories]
    kept = [(text, names) for text, names in kept if names and text]
    return Corpus(str(folder), [text for text, _ in kept], [names for _, names in kept])


def grouped_taxonomy(categories: set[str]) -> Taxonomy:
    """Categories below the groups of the release.

    >>> tree = grouped_taxonomy({"earn", "yen", "wheat"})
    >>> tree.show(tree.index("wheat"))
    'group:commodity > wheat'
    """
    group_of = {name: group for group, names in GROUPS.items() for name in names.split()}
    pairs = [(name, f"group:{group_of.get(name, OTHERS)}") for name in sorted(categories)]
    groups: list[tuple[str, str | None]] = [(group, None) for group in sorted({group for _, group in pairs})]
    return Taxonomy.from_edges([*groups, *pairs])


LAYOUT = Layout("the files reut2-000.sgm to reut2-021.sgm", find, read)
