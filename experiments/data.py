"""The corpora of the papers: which there are, where they lie on the disk, and reading them.

A corpus is found in the folder given, in the folders in it, and in those in these. It may have the layout of its publication,
or ours: ``train.*``, ``test.*`` and ``taxonomy.tsv`` (child, parent) in a folder with the corpus's name.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scipy.sparse import csr_array, vstack

from experiments.readers import arff, fetched, house, newsgroups, rcv1, reuters
from experiments.readers.layout import Layout, Split
from ramify.data import Corpus
from ramify.errors import DataError, InputError, RamifyError
from ramify.parallel import stage
from ramify.taxonomy import Taxonomy

BLOCK = 1 << 20  # bytes read at once for a fingerprint


@dataclass(frozen=True, slots=True)
class Kind:
    """A corpus that a study may need.

    folders: names that its folder may have in our layout. layout: that of its publication. fetch: downloads it.
    """

    title: str
    folders: tuple[str, ...]
    layout: Layout | None = None
    fetch: Callable[[], Split] | None = None

    def layouts(self) -> Iterator[Layout]:
        """Ours, and that of the publication."""
        yield house.layout(self.folders)
        if self.layout is not None:
            yield self.layout

    def forms(self) -> str:
        """What a folder may hold, in words."""
        return " or ".join(layout.form for layout in self.layouts())


CORPORA = {
    "20newsgroups": Kind(
        "20 newsgroups", ("20news_bydate", "20newsgroups"), newsgroups.LAYOUT, fetched.fetch_newsgroups
    ),
    "reuters21578": Kind("Reuters-21578 (ModApte)", ("reuters21578_90", "reuters21578"), reuters.LAYOUT),
    "imclef07a": Kind("ImCLEF07A", ("imclef07a",), arff.LAYOUT),
    "rcv1": Kind("RCV1-v2", ("rcv1", "rcv1_v2"), rcv1.LAYOUT, fetched.fetch_rcv1),
    "medical": Kind("the clinical reports of the 2007 challenge", ("medical_cmc2007",)),
    "esco_titles": Kind("ESCO job titles", ("esco_titles",)),
    "arxiv_small": Kind("arXiv abstracts", ("arxiv_small",)),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class DataSet:
    """A corpus as read: documents to train on and to test on, as texts or as vectors, and its taxonomy."""

    name: str
    title: str
    train: Corpus
    test: Corpus
    taxonomy: Taxonomy

    def pooled(self, first: int | None = None) -> Corpus:
        """All documents together, those to train on first; or only the first so many."""
        n_train = len(self.train) if first is None else min(first, len(self.train))
        n_test = len(self.test) if first is None else min(first - n_train, len(self.test))
        train, test = self.train.take(range(n_train)), self.test.take(range(n_test))
        return Corpus(self.title, _joined(train, test), [*train.labels, *test.labels])


def _joined(train: Corpus, test: Corpus) -> Any:
    if not train.has_vectors:
        return [*train.documents, *test.documents]
    width = max(train.documents.shape[1], test.documents.shape[1])
    return csr_array(vstack([part.with_width(width).documents for part in (train, test)], format="csr"))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a corpus was found: the folder, its layout, the files that belong to it."""

    folder: Path
    layout: Layout
    files: list[Path]

    def fingerprint(self) -> str:
        """Eight digits that change with the names and contents of the files."""
        code = 0
        for path in sorted(self.files):
            code = zlib.crc32(str(path.relative_to(self.folder)).encode(), code)
            with suppress(OSError), open(path, "rb") as file:  # what cannot be read is refused when its turn comes
                while block := file.read(BLOCK):
                    code = zlib.crc32(block, code)
        return f"{code:08x}"


@dataclass(slots=True)
class Datasets:
    """The data at hand: what lies in a folder, and what may be downloaded.

    places: where corpora were found. held: those that were read. failed: why others could not be. prints: fingerprints.

    >>> Datasets().why_not("medical")
    'needs the clinical reports of the 2007 challenge: give --data DIR with a folder medical_cmc2007 (train.*, test.*, ...'
    """

    folder: Path | None = None
    fetch: bool = False
    places: dict[str, Place] = field(default_factory=dict)
    held: dict[str, DataSet] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    prints: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.folder is not None:
            self.places = _find_corpora(self.folder)

    def is_available(self, name: str) -> bool:
        """Whether a corpus lies in the folder or may be downloaded, as far as can be told without reading it."""
        fetchable = self.fetch and CORPORA[name].fetch is not None
        return name not in self.failed and (name in self.places or name in self.held or fetchable)

    def obtain(self, name: str) -> bool:
        """Read or download a corpus; whether that went well."""
        try:
            if self.is_available(name):
                self.read(name)
        except RamifyError as error:
            self.failed[name] = str(error).rstrip(".")
        return name in self.held

    def why_not(self, name: str) -> str:
        """Why a corpus is not at hand, and what to do."""
        kind = CORPORA[name]
        online = ", or --fetch to download it" if kind.fetch is not None and not self.fetch else ""
        if name in self.failed and name in self.places:
            return f"{kind.title} cannot be read: {self.failed[name]}"
        failed = f" ({self.failed[name]})" if name in self.failed else ""
        return f"needs {kind.title}: give --data DIR with {kind.forms()}{online}{failed}"

    def fingerprint(self, name: str) -> str:
        """What tells one version of the data from another; what is downloaded is the same everywhere."""
        if name not in self.prints:
            self.prints[name] = self.places[name].fingerprint() if name in self.places else "downloaded"
        return self.prints[name]

    def read(self, name: str) -> DataSet:
        """A corpus; read once."""
        if name not in self.held:
            self.held[name] = self._read(name)
        return self.held[name]

    def _read(self, name: str) -> DataSet:
        kind, place = CORPORA[name], self.places.get(name)
        if place is not None:
            with stage(f"reading {kind.title}"):
                return DataSet(name, kind.title, *place.layout.read(place.folder))
        if not self.fetch or kind.fetch is None:
            raise DataError(self.why_not(name) + ".")
        with stage(f"downloading {kind.title}"):
            return DataSet(name, kind.title, *kind.fetch())


def _find_corpora(folder: Path) -> dict[str, Place]:
    """The corpora in a folder, by name."""
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        raise InputError(f"--data {folder} {what}; give the folder that holds the corpora.")
    found: dict[str, Place] = {}
    for place in _folders(folder, 2):
        for name, kind in CORPORA.items():
            for layout in kind.layouts() if name not in found else ():
                files = _find(layout, place)
                if files and name not in found:
                    found[name] = Place(place, layout, files)
    if not found:
        raise InputError(f"no corpus is recognized in {folder}; 'python -m experiments --list' says what it may hold.")
    return found


def _folders(folder: Path, deep: int) -> Iterator[Path]:
    """A folder, the folders in it, and so on."""
    yield folder
    inner: list[Path] = []
    with suppress(OSError):  # a folder that may not be looked into holds nothing for us
        inner = sorted(entry for entry in folder.iterdir() if entry.is_dir()) if deep else []
    for entry in inner:
        yield from _folders(entry, deep - 1)


def _find(layout: Layout, folder: Path) -> list[Path]:
    with suppress(OSError):
        return layout.find(folder)
    return []
