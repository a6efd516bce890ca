"""Classes of Hugging Face datasets by name."""

from types import SimpleNamespace

import pytest

from ramify.data.class_names import class_names_of, name_classes
from ramify.errors import DataError

NAMES = ["tea", "tv"]
LABEL, TEXT = SimpleNamespace(names=NAMES), SimpleNamespace(dtype="string")


def dataset(**features):
    return SimpleNamespace(features=features)


@pytest.mark.parametrize("feature", [LABEL, SimpleNamespace(feature=LABEL), [LABEL]])
def test_the_names_of_classes_are_found_also_in_lists(feature):
    assert class_names_of(dataset(text=TEXT, label=feature), "label") == NAMES


@pytest.mark.parametrize("feature", [TEXT, SimpleNamespace(names=[1, 2]), SimpleNamespace(feature=TEXT), None])
def test_other_columns_have_no_classes(feature):
    assert class_names_of(dataset(label=feature), "label") is None


def test_an_object_without_features_has_no_classes():
    assert class_names_of({"label": [1]}, "label") is None


def test_a_missing_column_is_refused_with_those_there_are():
    with pytest.raises(DataError, match="no column 'labels'; its columns are 'text', 'label'.* 'label'"):
        class_names_of(dataset(text=TEXT, label=LABEL), "labels")


def test_splits_are_refused_by_name():
    splits = {"train": dataset(label=LABEL), "test": dataset(label=LABEL)}
    with pytest.raises(DataError, match=r"the splits 'train', 'test'; give one of them, such as dataset\['train'\]"):
        class_names_of(splits, "label")


@pytest.mark.parametrize("value", [2, -2, 0.5, "tea", True, {"a": 1}, float("nan"), float("inf")])
def test_what_is_no_class_is_refused(value):
    with pytest.raises(DataError, match="is not a number from 0 to 1"):
        name_classes(value, NAMES)


def test_no_label_stays_none():
    assert [name_classes(value, NAMES) for value in (None, -1, [], [-1, 1])] == [None, None, [], ["tv"]]


def test_real_datasets_are_understood():
    datasets = pytest.importorskip("datasets", reason="the package 'datasets' is not installed")
    kinds = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=NAMES)})
    made = datasets.Dataset.from_dict({"text": ["a", "b"], "label": [1, 0]}, features=kinds)
    names = class_names_of(made, "label")
    assert [name_classes(number, names) for number in made["label"]] == ["tv", "tea"]
    assert class_names_of(made, "text") is None
    many = datasets.Features({"label": datasets.Sequence(datasets.ClassLabel(names=NAMES))})
    assert class_names_of(datasets.Dataset.from_dict({"label": [[0, 1]]}, features=many), "label") == NAMES
    with pytest.raises(DataError, match="the splits 'train'"):
        class_names_of(datasets.DatasetDict({"train": made}), "label")
