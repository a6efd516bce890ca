"""An audit as a page."""

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from ramify.reports.pages import audit_page
from ramify.workflows.auditing.audit import Audit, Duplicates, ProblemClass
from ramify.workflows.auditing.issue_details import LabelInfo, LabelIssue
from ramify.workflows.auditing.label_issues import InseparableSiblings

MEAN = "<script>alert('x')</script> & \"co\""


def info(label, p=0.5):
    return LabelInfo(label, ("top", label), (0.9, p), p)


def issue(word="plum", **changes):
    made = LabelIssue(
        3,
        f"{word}.csv, line 5",
        5,
        word,
        (word,),
        "wrong",
        info(word, 0.0001),
        info("right", 0.98),
        (info("right", 0.98),),
        2,
        9.5,
        [(word, 1.5)],
    )
    return replace(made, **changes)


def make_audit(word="plum", **changes):
    made = Audit(
        source=f"{word}.csv", system="lr", documents=1200, nodes=7, folds=5, seed=0, similarity=0.9, min_documents=5, n_issues=40, skipped=2,
        estimated_wrong=12.4, issues=[issue(word)],
        duplicates=[Duplicates((f"{word} 1", "2"), (1, 2), (word, None), ((word,), ("b", "c")), True)],
        classes=[ProblemClass(word, "never recognized", 9, word, 4)], inseparable_siblings=[InseparableSiblings(word, "b", (50, 60), (20, 33), 0.475, 0.003)],
    )  # fmt: skip
    return replace(made, **changes)


def tree(found):
    return ET.fromstring(audit_page(found, "Labels of x.csv").removeprefix("<!DOCTYPE html>"))


def text_of(found):
    return " ".join("".join(tree(found).itertext()).split())


def test_everything_is_on_it():
    text = text_of(make_audit())
    for said in ("1,200", "≈ 12", "40", "plum.csv, line 5", "< 0.1%", "98.0%", "top › right", "2 steps apart", "because of plum", "48%", "0.003",
                 "same words", "b | c", "never recognized", "plum (4)", "2 documents are the only ones"):  # fmt: skip
        assert said in text, said
    assert [head.text for head in tree(make_audit()).iter("h2")] == [
        "Label issues", "Siblings that cannot be distinguished", "Duplicates with different labels", "Classes that cannot be learnt",
    ]  # fmt: skip


def test_words_of_users_are_escaped():
    found = make_audit(MEAN)
    assert "<script>" not in audit_page(found, MEAN)
    assert text_of(found).count(MEAN) >= 10


def test_it_needs_nothing_from_elsewhere():
    page = audit_page(make_audit(), "x")
    assert not [word for word in ("http:", "https:", "src=", "<script", "@import", "url(") if word in page]


@pytest.mark.parametrize(("kind", "given", "said"), [("missing", None, "add"), ("extra", info("plum"), "probably superfluous")])
def test_labels_that_are_missing_or_superfluous_are_told_so(kind, given, said):
    suggested = info("right") if kind == "missing" else None
    one = issue(
        kind=kind,
        given=given,
        suggested=suggested,
        proposed=(info("kept"), *([suggested] if suggested else [])),
        text=None,
        words=[],
    )
    text = text_of(make_audit(issues=[one]))
    assert said in text
    assert "keep" in text
    assert "because" not in text


def test_where_nothing_was_found_little_is_said():
    found = make_audit(issues=[], duplicates=[], classes=[], inseparable_siblings=[], skipped=0)
    assert [head.text for head in tree(found).iter("h2")] == ["Label issues"]
    assert "None." in text_of(found)
