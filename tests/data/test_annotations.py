"""Exports of Label Studio, Argilla and doccano as documents and labels."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.data import read_corpus
from ramify.data.annotations import TASK_FORMATS, Task, find_task_format, task_writer
from ramify.data.annotations.annotated import ExportError
from ramify.data.annotations.exports import TOOLS
from ramify.errors import DataError, InputError
from ramify.features import Vectorizer
from ramify.workflows import read_sharded

TEA = ["Food", "Tea"]
TV = ["Media", "TV"]


def chosen(*paths, **more):
    """An annotation of Label Studio."""
    return {"result": [{"from_name": "taxonomy", "type": "taxonomy", "value": {"taxonomy": list(paths)}}], **more}


def task(text, *annotations, **data):
    """A task of Label Studio."""
    return {"id": 1, "data": {"text": text, **data}, "annotations": list(annotations), "predictions": []}


def record(text, *responses, question="label", **more):
    """A record of Argilla."""
    return {"fields": {"text": text}, "suggestions": {}, "responses": {question: list(responses)} if responses else {}, **more}


def read(tmp_path, rows, name="export.json", **settings):
    path = tmp_path / name
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    path.write_text(lines if name.endswith("l") else json.dumps(rows), encoding="utf-8")
    return read_corpus(path, **settings)


# ---- Label Studio ----------------------------------------------------------------------------------------------------------


def test_a_task_of_label_studio_has_the_labels_of_its_annotation(tmp_path):
    corpus = read(
        tmp_path, [task("black tea", chosen(TEA)), task("new telly", chosen(TV, TEA)), task("what", chosen(["Other"]))]
    )
    assert corpus.documents == ["black tea", "new telly", "what"]
    assert corpus.labels == [["Food > Tea"], ["Media > TV", "Food > Tea"], ["Other"]]
    assert corpus.remarks == ["read as an export of Label Studio"]


def test_tasks_may_be_one_per_line(tmp_path):
    assert read(tmp_path, [task("black tea", chosen(TEA))], "export.jsonl").labels == [["Food > Tea"]]


def test_tasks_without_annotations_are_unlabelled_and_predictions_are_no_labels(tmp_path):
    proposed = task("a telly") | {"predictions": [chosen(TV, score=0.9)]}
    assert read(tmp_path, [task("black tea", chosen(TEA)), task("hm"), proposed]).labels == [["Food > Tea"], [], []]


def test_cancelled_annotations_are_left_out_and_counted(tmp_path):
    rows = [task("tea", chosen(TV, was_cancelled=True), chosen(TEA)), task("hm", chosen(TEA, was_cancelled=True))]
    corpus = read(tmp_path, rows)
    assert corpus.labels == [["Food > Tea"], []]
    assert corpus.remarks[1] == "2 skipped or cancelled answers left out"


def test_most_annotators_win_and_the_last_one_if_there_are_equally_many(tmp_path):
    rows = [task("a", chosen(TEA), chosen(TEA), chosen(TV)), task("b", chosen(TEA), chosen(TV)), task("c", chosen(TEA))]
    corpus = read(tmp_path, rows)
    assert corpus.labels == [["Food > Tea"], ["Media > TV"], ["Food > Tea"]]
    assert corpus.remarks[1].startswith("annotators disagree on 2 documents; the answer that most gave counts")


def test_the_order_of_labels_in_an_answer_is_no_disagreement(tmp_path):
    corpus = read(tmp_path, [task("a", chosen(TEA, TV), chosen(TV, TEA))])
    assert corpus.labels == [["Media > TV", "Food > Tea"]]
    assert len(corpus.remarks) == 1


def test_an_annotation_that_is_the_ground_truth_counts_alone(tmp_path):
    corpus = read(tmp_path, [task("a", chosen(TV), chosen(TEA, ground_truth=True), chosen(TV))])
    assert corpus.labels == [["Food > Tea"]]
    assert len(corpus.remarks) == 1


def test_choices_are_labels_and_spans_are_ignored(tmp_path):
    choice = {"from_name": "topic", "type": "choices", "value": {"choices": ["TV, audio"]}}
    span = {"from_name": "words", "type": "labels", "value": {"start": 0, "end": 1, "labels": ["x"]}}
    assert read(tmp_path, [task("a", {"result": [span, choice]})]).labels == [["TV, audio"]]


def test_each_of_several_questions_is_a_column(tmp_path):
    parts = [{"from_name": name, "value": {"choices": [label]}} for name, label in (("mood", "good"), ("about", "tea"))]
    rows = [task("a", {"result": parts}), task("b", {"result": parts[:1]}), task("c")]
    assert read(tmp_path, rows, label="about").labels == [["tea"], [], []]
    assert read(tmp_path, rows, label="mood").labels == [["good"], ["good"], []]


def test_what_annotators_saw_is_not_taken_for_what_they_answered(tmp_path):
    rows = [task("a", chosen(TEA), category="old", label="older")]
    assert read(tmp_path, rows).labels == [["Food > Tea"]]
    assert read(tmp_path, rows, label="data.category").labels == [["old"]]


def test_the_short_form_of_label_studio_is_read(tmp_path):
    row = {"id": 1, "text": "tea", "taxonomy": [TEA], "annotation_id": 5, "annotator": 1, "lead_time": 2.5}
    assert read(tmp_path, [row]).labels == [["Food > Tea"]]


def test_a_part_of_a_path_that_looks_like_a_path_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"the part 'TCP > IP' of a path holds ' > ', which separates parts"):
        read(tmp_path, [task("a", chosen(["Net", "TCP > IP"]))])


# ---- Argilla ---------------------------------------------------------------------------------------------------------------


def test_a_record_of_argilla_has_the_labels_of_its_responses(tmp_path):
    rows = [
        record("black tea", {"value": "tea", "user_id": "u"}),
        record("both", {"value": ["tea", "tv"], "user_id": "u"}),
        record("hm") | {"suggestions": {"label": {"value": "tv", "score": 0.9, "agent": "m"}}},
    ]
    corpus = read(tmp_path, rows)
    assert corpus.documents == ["black tea", "both", "hm"]
    assert corpus.labels == [["tea"], ["tea", "tv"], []]
    assert corpus.remarks == ["read as an export of Argilla"]


def test_discarded_responses_and_drafts_are_left_out(tmp_path):
    left_out = [{"value": "tv", "status": "discarded"}, {"value": "tv", "status": "draft"}]
    corpus = read(tmp_path, [record("tea", *left_out, {"value": "tea", "status": "submitted"})])
    assert corpus.labels == [["tea"]]
    assert corpus.remarks[1] == "2 skipped or cancelled answers left out"


def test_records_of_version_1_are_read(tmp_path):
    responses = [
        {"user_id": "u", "values": {"label": {"value": "tea"}}, "status": "submitted"},
        {"user_id": "v", "values": {"label": {"value": "tv"}}, "status": "discarded"},
    ]
    corpus = read(tmp_path, [{"fields": {"text": "a"}, "responses": responses, "suggestions": []}])
    assert corpus.labels == [["tea"]]
    assert corpus.remarks[1] == "1 skipped or cancelled answer left out"


def test_ratings_and_spans_are_no_labels(tmp_path):
    row = record("a", {"value": "tea"})
    row["responses"] |= {"stars": [{"value": 4}], "words": [{"value": [{"start": 0, "end": 1, "label": "x"}]}]}
    assert read(tmp_path, [row]).labels == [["tea"]]


# ---- doccano ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "row",
    [
        {"text": "a", "label": ["tea", "tv"]},
        {"text": "a", "labels": ["tea", "tv"]},
        {"id": 1, "text": "a", "label": ["tea", "tv"], "Comments": []},
        {"id": 1, "data": "a", "label": ["tea", "tv"]},
        {"text": "a", "cats": ["tea", "tv"]},
        {"text": "a", "cats": {"tea": 1.0, "radio": 0.0, "tv": 0.7}},
    ],
)
def test_labels_of_doccano_are_read_in_all_its_forms(row, tmp_path):
    corpus = read(tmp_path, [row], "export.jsonl")
    assert (corpus.documents, corpus.labels) == (["a"], [["tea", "tv"]])


def test_a_table_about_cats_is_no_export(tmp_path):
    row = {"text": "a", "cats": ["tabby"], "category": "pets"}
    assert read(tmp_path, [row], "export.jsonl").labels == [["pets"]]


@pytest.mark.parametrize(("cats", "reason"), [({"a": "x"}, "the number of 'a' in 'cats' is 'x'"), ([1], "'cats' holds 1")])
def test_wrong_categories_are_bad_rows(cats, reason, tmp_path):
    corpus = read(tmp_path, [{"text": "a", "cats": ["tea"]}] * 20 + [{"text": "a", "cats": cats}], "export.jsonl")
    assert [bad.line for bad in corpus.bad_rows] == [21]
    assert reason in corpus.bad_rows[0].reason


def test_a_document_of_doccano_without_labels_is_unlabelled(tmp_path):
    rows = [{"data": "a", "label": ["tea"]}, {"data": "b", "label": []}, {"data": "c"}]
    assert read(tmp_path, rows, "export.jsonl").labels == [["tea"], [], []]


# ---- wrong and hostile exports ---------------------------------------------------------------------------------------------

BAD = {
    "annotations are a number": (task("a") | {"annotations": 5}, "'annotations' is 5, not a list"),
    "an annotation is a text": (task("a") | {"annotations": ["x"]}, "an annotation is 'x', not an object"),
    "a result is an object": (task("a", {"result": {"a": 1}}), "'result' is an object, not a list"),
    "a path is a text": (task("a", chosen("Food")), "a path of labels is 'Food', not a list"),
    "a part is a number": (task("a", chosen(["Food", 3])), "a part of a path is 3, not a name"),
    "a part is a list": (task("a", chosen(["Food", [["x"]]])), "a part of a path is a list, not a name"),
    "a part is empty": (task("a", chosen(["Food", " "])), "a part of a path is ' ', not a name"),
    "choices hold null": (task("a", {"result": [{"value": {"choices": [None]}}]}), "'choices' holds null, not only strings"),
    "another object": ({"text": "a", "label": "b"}, "not a document of Label Studio, as the first one is"),
}


@pytest.mark.parametrize("name", BAD)
def test_an_object_of_a_wrong_form_is_a_bad_row(name, tmp_path):
    row, reason = BAD[name]
    corpus = read(tmp_path, [task("good", chosen(TEA))] * 20 + [row])
    assert len(corpus) == 20
    assert [bad.line for bad in corpus.bad_rows] == [21]
    assert reason in corpus.bad_rows[0].reason


BAD_RECORDS = {
    "responses are a text": (record("a") | {"responses": "x"}, "'responses' is 'x', not an object"),
    "a response is a list": (record("a", ["x"]), "a response to 'label' is a list, not an object"),
    "labels hold a number": (record("a", {"value": ["x", 1]}), "the response to 'label' holds 1, not only strings"),
}


@pytest.mark.parametrize("name", BAD_RECORDS)
def test_a_record_of_a_wrong_form_is_a_bad_row(name, tmp_path):
    row, reason = BAD_RECORDS[name]
    corpus = read(tmp_path, [record("good", {"value": "tea"})] * 20 + [row])
    assert [(bad.line, bad.reason) for bad in corpus.bad_rows] == [(21, reason)]


@pytest.mark.parametrize("depth", [200, 100_000])
def test_deep_nesting_is_a_bad_row(depth, tmp_path):
    row = json.dumps(task("a", {"result": [{"value": {"taxonomy": ["x"]}}]})).replace('"x"', "[" * depth + "]" * depth)
    path = tmp_path / "export.jsonl"
    path.write_text("".join(f"{json.dumps(task(str(i), chosen(TEA)))}\n" for i in range(20)) + row + "\n")
    corpus = read_corpus(path)
    assert [bad.line for bad in corpus.bad_rows] == [21]


def test_an_export_with_endless_questions_is_refused(tmp_path):
    parts = [{"from_name": f"q{i}", "value": {"choices": ["x"]}} for i in range(101)]
    with pytest.raises(DataError, match="more than 100 questions; export the answers to one of them"):
        read(tmp_path, [task("a", {"result": parts})])


plain = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=3), lambda v: st.lists(v, max_size=3) | st.dictionaries(
    st.sampled_from(["data", "text", "annotations", "result", "value", "taxonomy", "choices", "fields", "responses", "label", "cats"]), v, max_size=4,
))  # fmt: skip
objects = st.dictionaries(
    st.sampled_from(["data", "text", "annotations", "predictions", "fields", "responses", "suggestions", "label", "cats"]),
    plain,
)


@given(objects)
def test_any_object_is_read_or_refused_with_a_reason(row):
    for module, _ in TOOLS.values():
        module.is_export(row)
        try:
            found = module.parse(row)
        except ExportError as error:
            assert str(error)
        else:
            assert all(isinstance(label, str) for given in found.answers.values() for answer in given for label in answer)


def test_exports_in_many_files_are_read_with_their_remarks(tmp_path):
    for number in range(2):
        tasks = [task(f"tea {number}", chosen(TEA)), task(f"tv {number}", chosen(TV), chosen(TEA, was_cancelled=True))]
        (tmp_path / f"part-{number}.json").write_text(json.dumps(tasks))
    for corpus in (read_corpus(tmp_path), read_sharded(tmp_path, Vectorizer())):
        assert corpus.labels == [["Food > Tea"], ["Media > TV"]] * 2
        assert corpus.remarks == ["read as an export of Label Studio", "2 skipped or cancelled answers left out"]


# ---- tasks -----------------------------------------------------------------------------------------------------------------


def written(tmp_path, name, *tasks):
    path = tmp_path / f"tasks{TASK_FORMATS[name].suffix}"
    with open(path, "w", encoding="utf-8") as file, task_writer(file, name) as write:
        for each in tasks:
            write(each)
    return path


def a_task(text="black tea", labels=(("Food > Tea", 0.8),), is_multi_label=False):
    paths = [label.split(" > ") for label, _ in labels]
    return Task("7", text, {"customer": 12}, list(labels), paths, is_multi_label)


def test_a_task_for_label_studio_proposes_paths_with_a_score(tmp_path):
    found = json.loads(written(tmp_path, "label-studio", a_task(), a_task("hm", ())).read_text())
    result = {"from_name": "taxonomy", "to_name": "text", "type": "taxonomy", "value": {"taxonomy": [TEA]}, "score": 0.8}
    assert found[0] == {
        "data": {"customer": 12, "text": "black tea"},
        "predictions": [{"model_version": "ramify", "score": 0.8, "result": [result]}],
    }
    assert found[1]["predictions"] == []


def test_a_record_for_argilla_suggests_a_label_or_a_list(tmp_path):
    two = (("Food > Tea", 0.8), ("Media > TV", 0.4))
    found = json.loads(written(tmp_path, "argilla", a_task(), a_task(labels=two, is_multi_label=True)).read_text())
    assert found[0]["suggestions"]["label"] == {"value": "Food > Tea", "score": 0.8, "agent": "ramify"}
    assert found[1]["suggestions"]["label"]["value"] == ["Food > Tea", "Media > TV"]
    assert found[1]["suggestions"]["label"]["score"] == [0.8, 0.4]


def test_a_file_without_tasks_is_an_empty_list(tmp_path):
    assert json.loads(written(tmp_path, "argilla").read_text()) == []


@pytest.mark.parametrize("name", ["label-studio", "argilla"])
def test_tasks_are_unlabelled_until_they_are_annotated(name, tmp_path):
    corpus = read_corpus(written(tmp_path, name, a_task(), a_task("hm", ())), text="text")
    assert (corpus.documents, corpus.labels) == (["black tea", "hm"], [[], []])


def test_tasks_of_doccano_read_back_with_their_proposals(tmp_path):
    assert read_corpus(written(tmp_path, "doccano", a_task())).labels == [["Food > Tea"]]


def test_an_unknown_format_is_refused_with_the_known_ones():
    with pytest.raises(InputError, match="label-studio, argilla, doccano"):
        find_task_format("labelstudio")
