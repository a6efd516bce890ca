"""The functions of ramify: a path, a corpus, or texts and labels; a classifier or the directory of a model."""

import numpy as np
import pytest

import ramify
from ramify.errors import InputError
from ramify.workflows.functions import as_data, train_options

TEXTS = [f"parcel late courier {i}" for i in range(6)] + [f"screen dark no picture {i}" for i in range(6)]
LABELS = ["Orders > Late"] * 6 + ["TV > Picture"] * 6
FUNCTIONS = ("audit", "compare", "evaluate", "explain", "predict", "train", "tune", "update")


@pytest.fixture
def model(tickets, tmp_path):
    ramify.train(tickets, system="svm", keep_training_data=True, model=tmp_path / "model")
    return tmp_path / "model"


def test_every_command_on_models_is_a_function():
    assert set(FUNCTIONS) <= set(ramify.__all__)
    assert all(callable(getattr(ramify, name)) for name in FUNCTIONS)


def test_a_path_a_corpus_and_texts_with_labels_train_the_same(tickets):
    corpus = ramify.data.read_corpus(tickets)
    given = ((tickets, {}), (corpus, {}), (None, {"texts": corpus.documents, "labels": corpus.labels}))
    found = [ramify.train(data, system="nb", **more) for data, more in given]
    assert {each.classifier.predict(["a late parcel"]).tolist()[0] for each in found} == {"Orders > Late"}
    assert len({str(each.report.to_dict()) for each in found}) == 1


def test_a_path_a_corpus_and_texts_with_labels_are_evaluated_the_same(tickets, model):
    corpus = ramify.data.read_corpus(tickets)
    clf = ramify.load(model)
    found = [ramify.evaluate(model, tickets), ramify.evaluate(clf, corpus)]
    found.append(ramify.evaluate(clf, texts=corpus.documents, labels=corpus.labels))
    assert len({str(each.figures) for each in found}) == 1


def test_options_by_name_are_those_of_the_three_classes(tickets):
    made = train_options({"system": "nb", "ngrams": 2, "label": "category", "rule": "isotonic:penalty=5"})
    assert (made.system, made.features.ngrams, made.read.label, made.rule.penalty) == ("nb", 2, "category", 5)
    base = ramify.TrainOptions(system="nb", seed=3)
    assert train_options({"seed": 4}, base) == ramify.TrainOptions(system="nb", seed=4)
    with pytest.raises(InputError, match="there is no setting 'sytem'. Did you mean 'system'"):
        ramify.train(tickets, sytem="nb")
    with pytest.raises(InputError, match="there is no setting 'Label_Separator'. Did you mean 'label_separator'"):
        ramify.evaluate(ramify.TextClassifier("nb").fit(TEXTS, LABELS), tickets, Label_Separator="|")
    with pytest.raises(InputError, match="options is a dict"):
        ramify.train(tickets, {"system": "nb"})


def test_documents_are_given_once():
    with pytest.raises(InputError, match="given twice"):
        as_data("x.csv", TEXTS, LABELS)
    with pytest.raises(InputError, match="there are no labels"):
        as_data(None, TEXTS, None)
    with pytest.raises(InputError, match="there are no data"):
        ramify.train()
    with pytest.raises(InputError, match="there are 12 texts and 2 labels"):
        as_data(None, TEXTS, LABELS[:2])
    with pytest.raises(InputError, match="not one string"):
        as_data(None, "one text", LABELS)


def test_arrays_are_texts_and_labels_too():
    corpus = as_data(None, np.asarray(TEXTS), np.asarray(LABELS))
    assert corpus.labels[0] == ["Orders > Late"]
    assert corpus.documents[0] == TEXTS[0]


def test_one_argument_is_the_documents(tickets):
    assert ramify.audit(tickets).system == "lr"
    assert ramify.audit("nb", tickets).system == "nb"
    assert ramify.audit(texts=TEXTS, labels=LABELS).documents == 12
    tuned = ramify.tune(tickets, seconds=10, fixed=ramify.workflows.tuning.Fixed("nb", {"alpha": 1.0}))
    assert tuned.classifier.system == "nb"
    assert tuple(tuned) == (tuned.trained, tuned.tuning)


def test_systems_models_and_classifiers_are_compared(tickets, model, tmp_path):
    ramify.train(tickets, system="nb", model=tmp_path / "nb")
    found = ramify.compare([model, str(tmp_path / "nb"), ramify.load(model)], tickets, n_resamples=50)
    assert [each.name for each in found.systems] == [str(model), str(tmp_path / "nb"), "svm"]
    same = ramify.compare([ramify.TextClassifier("nb"), ramify.TextClassifier("nb"), "svm"], tickets, folds=2, n_resamples=50)
    assert [each.name for each in same.systems] == ["nb", "nb 2", "svm"]
    with pytest.raises(InputError, match="Did you mean 'svm'"):
        ramify.compare(["nb", "SVM"], tickets)
    with pytest.raises(InputError, match="give a list of two or more"):
        ramify.compare("nb", tickets)


def test_a_saved_model_is_updated_in_place_or_elsewhere(model, tmp_path):
    done = ramify.update(model, data=None, texts=["remote broken"], labels=["TV > Sound"], to=tmp_path / "new")
    assert done.added == 1
    assert ramify.load(tmp_path / "new").figures_["documents"] == ramify.load(model).figures_["documents"] + 1
    with pytest.raises(InputError, match="exists already; give overwrite=True"):
        ramify.update(model, texts=["remote broken"], labels=["TV > Sound"], to=tmp_path / "new", overwrite=False)
    ramify.update(model, texts=["remote broken"], labels=["TV > Sound"])
    with pytest.raises(InputError, match="to is for a saved model"):
        ramify.update(ramify.load(model), texts=["x"], labels=["TV > Sound"], to=tmp_path / "other")


def test_a_classifier_follows_a_taxonomy_file(model, tmp_path):
    (tmp_path / "t.txt").write_text("Orders > Late\nOrders > Wrong\nTV > Picture\nTV > Sound\nTV > Remote\n")
    done = ramify.update(ramify.load(model), tmp_path / "t.txt")
    assert "TV > Remote" in done.classifier.taxonomy_


def test_a_model_is_not_replaced_without_overwrite(tickets, model):
    before = (model / "manifest.json").read_bytes()
    with pytest.raises(InputError, match="exists already; give overwrite=True"):
        ramify.train(tickets, system="nb", model=model, overwrite=False)
    assert (model / "manifest.json").read_bytes() == before
    ramify.train(tickets, system="nb", model=model)
    assert ramify.load(model).system == "nb"


def test_predictions_of_texts_a_file_and_a_corpus_are_the_same(tickets, model):
    corpus = ramify.data.read_corpus(tickets)
    found = [ramify.predict(model, data).labels for data in (tickets, corpus, corpus.documents, iter(corpus.documents))]
    assert all(each == found[0] for each in found)
    assert ramify.predict(model, tickets).columns == ("body", "category")
    assert ramify.predict(model, ["late parcel"], within="TV").labels[0][0].startswith("TV")
    assert ramify.predict(model, ["late parcel", "", None]).problems[0].line == 2
    with pytest.raises(InputError, match="texts in a list"):
        ramify.predict(model, "where is my parcel")
    with pytest.raises(InputError, match="there is no setting 'tpo'. Did you mean 'top'"):
        ramify.predict(model, ["late"], tpo=3)


def test_another_rule_is_given_by_name(model):
    found = ramify.explain(model, "late parcel", rule="isotonic:penalty=5")
    assert found.rule == "isotonic"
    assert ramify.predict(model, ["late parcel"], rule="best").labels == [["Orders > Late"]]


def test_what_is_no_classifier_is_refused(tickets):
    with pytest.raises(InputError, match="the model is 3; give a TextClassifier, or the directory of a model"):
        ramify.evaluate(3, tickets)
    with pytest.raises(InputError, match="text is a list of length 1; give one text"):
        ramify.explain(ramify.TextClassifier("nb").fit(TEXTS, LABELS), ["late"])
