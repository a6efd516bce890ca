"""Tiny corpora in the layouts of their publication, and a study whose parts count how often they run."""

from __future__ import annotations

import gzip
from pathlib import Path

from experiments.page import Beside, Chart, Line, Row, Table, Text
from experiments.study import Part, Study

TOPICS = {"C15": "CCAT", "C151": "C15", "GSPO": "GCAT"}


def write_newsgroups(folder: Path, per_group: int = 3) -> Path:
    """20 newsgroups by date: four groups, some posts each."""
    groups = ("rec.sport.hockey", "rec.sport.baseball", "sci.space", "misc.forsale")
    for part in ("train", "test"):
        for group in groups:
            place = folder / f"20news-bydate-{part}" / group
            place.mkdir(parents=True)
            for number in range(per_group):
                text = f"From: me@example.org\nSubject: {group} {number}\n\nwords of {group} caf\xe9 {part}\r\n"
                (place / str(number)).write_bytes(text.encode("latin-1"))
    return folder


STORY = """<REUTERS TOPICS="{has}" LEWISSPLIT="{side}" CGISPLIT="X" OLDID="1" NEWID="{number}">
<DATE>26-FEB-1987</DATE><TOPICS>{topics}</TOPICS><PLACES><D>usa</D></PLACES>
<TEXT>&#2;{text}</TEXT>
</REUTERS>
"""


def story(number: int, side: str, topics: tuple[str, ...], text: str, has: str = "YES") -> str:
    listed = "".join(f"<D>{topic}</D>" for topic in topics)
    return STORY.format(has=has, side=side, number=number, topics=listed, text=text)


def write_reuters(folder: Path, stories: list[str] | None = None) -> Path:
    """Reuters-21578: twenty-two files, stories in the first."""
    if stories is None:
        body = "<TITLE>{0} &lt;rise&gt;</TITLE><DATELINE>London</DATELINE><BODY>Prices of {0}.\n Reuter\n&#3;</BODY>"
        stories = [story(k, side, ("wheat",), body.format("wheat")) for k, side in enumerate(["TRAIN", "TRAIN", "TEST"])]
        stories += [story(k, side, ("yen", "earn"), body.format("yen")) for k, side in enumerate(["TRAIN", "TEST"], start=3)]
        stories += [story(5, "TRAIN", ("only-here",), "brief"), story(6, "NOT-USED", ("wheat",), "unused")]
        stories += [story(7, "TRAIN", (), "no topic"), story(8, "TEST", ("wheat",), "not judged", has="NO")]
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(22):
        inside = "".join(stories) if number == 0 else ""
        (folder / f"reut2-{number:03d}.sgm").write_text(f'<!DOCTYPE lewis SYSTEM "lewis.dtd">\n{inside}', encoding="latin-1")
    return folder


ARFF = """@RELATION 'image'
% a comment
@ATTRIBUTE dim1 numeric
@ATTRIBUTE dim2 numeric
@ATTRIBUTE class hierarchical 1,1/2,1/2/3,4,4/5

@DATA
"""


def write_imclef(folder: Path, train: str = "0.5,1,1/2/3\n?,2,4@4/5\n", test: str = "1,0,1@1/2\n") -> Path:
    """ImCLEF07A: two features, five nodes."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ImCLEF07A_Train.arff").write_text(ARFF + train)
    (folder / "ImCLEF07A_Test.arff").write_text(ARFF + test)
    return folder


def write_rcv1(folder: Path, n_train: int = 20, n_test: int = 60, zipped: bool = True) -> Path:
    """RCV1-v2: stories of two topics in turn, whose words tell them apart; every tenth story has no topic."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"{100 + k}  {1 + k % 2}:0.8 {3 + k % 5}:0.6" for k in range(n_train + n_test)]
    step = -(-n_test // 4)
    parts = {"lyrl2004_vectors_train.dat": lines[:n_train]}
    for part in range(4):
        parts[f"lyrl2004_vectors_test_pt{part}.dat"] = lines[n_train + part * step : n_train + (part + 1) * step]
    labelled = [
        (100 + k, ("CCAT", "C15", "C151") if k % 2 else ("GCAT", "GSPO")) for k in range(n_train + n_test) if k % 10 != 9
    ]
    parts["rcv1-v2.topics.qrels"] = [f"{topic} {number} 1" for number, topics in labelled for topic in topics]
    edges = {"Root": "None", "CCAT": "Root", "GCAT": "Root", **TOPICS}
    parts["rcv1.topics.hier.orig"] = [f"parent: {up} child: {down} child-description: WORDS" for down, up in edges.items()]
    for name, rows in parts.items():
        text = "".join(f"{row}\n" for row in rows)
        if zipped:
            (folder / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
        else:
            (folder / name).write_text(text)
    return folder


class Counting:
    """A study of four parts that remember what they did, and may be made to stop in the middle."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.stop_at: str | None = None

    def study(self, version: int = 1, also: dict[str, object] | None = None) -> Study:
        parts = (
            Part("plain", "needs nothing", self.run, self.show, version=version, also=lambda: also or {}),
            Part("news", "needs 20 newsgroups", self.run, self.show, needs=("20newsgroups",)),
            Part("instead", "stands in", self.run, self.show, in_place_of=("news",)),
            Part("last", "looks at the others", self.run, lambda found, others: [Text(f"others: {sorted(others)}")]),
        )
        lost = {"a lost corpus": "nobody has it any more."}
        return Study("made2000", "A paper & <more>", "What it is about.", parts, lost)

    def run(self, run) -> dict[str, object]:
        steps = {}
        for key in ("one", "two", "three"):
            steps[key] = run.keep(key, lambda key=key: self.step(run, key))
        return {"steps": steps, "size": run.size, "seed": run.seed}

    def step(self, run, key: str) -> dict[str, object]:
        if self.stop_at == f"{run.part} {key}":
            raise KeyboardInterrupt
        self.done.append(f"{run.part} {key}")
        if run.part == "news":
            return {"documents": len(run.corpus("20newsgroups").train)}
        return {"value": run.choose(full=0.75, quick=0.5, tiny=0.25)}

    @staticmethod
    def show(found, others):
        value = found["steps"]["one"].get("value", 0.1)
        yield Text("some `code` & <b>words</b>")
        yield Beside("Table <1>", [Row("a & b", 0.9, value, "less <data>"), Row("unknown", None, value)])
        yield Table("all", ("", "n"), [("x", 3), ("y", None)], note="a note")
        yield Chart(
            "a <chart>", [Line("ours & theirs", [(1, value), (10, None), (100, 0.9)], [0.1, None, 0.2])], "n", "F1", log_x=True
        )
