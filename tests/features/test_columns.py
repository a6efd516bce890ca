"""Documents with several columns: texts, categories and numbers as features beside each other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import ramify
from ramify.errors import InputError, ModelError
from ramify.features import Cells, Column, FeatureUnion, Vectorizer, Words
from ramify.features.columns import BINS, FEW

DOCUMENTS = [(f"late parcel {i}" if i % 2 else f"dark screen {i}", "Acme" if i % 3 else "Bolt", i * 1.5) for i in range(60)]
LABELS = ["orders/late" if i % 2 else "tv/picture" for i in range(60)]


def bins(numbers, asked):
    """The range of a number, found by comparing it with every quantile."""
    ends = sorted({float(np.quantile(numbers, k / BINS)) for k in range(1, BINS)})
    return sum(asked > end for end in ends)


@given(st.lists(st.floats(-1e6, 1e6), min_size=FEW + 1, max_size=60, unique=True))
def test_numbers_are_in_the_range_between_their_quantiles(numbers):
    cells = Cells("price").fit(numbers)
    X = cells.transform(numbers).toarray()
    assert (X.sum(axis=1) == 1).all()
    assert X.argmax(axis=1).tolist() == [bins(numbers, number) for number in numbers]
    assert len(cells.get_feature_names_out()) == X.shape[1] == len(cells.edges_) + 1


@given(st.lists(st.sampled_from(["a", "b", " b ", None, "", 3, 3.0, float("nan")]), min_size=1))
def test_categories_are_distinct_cells_without_missing_ones(given_cells):
    plain = [None if cell in (None, "") or cell != cell else str(cell).strip().removesuffix(".0") for cell in given_cells]
    if not any(cell is not None for cell in plain):
        with pytest.raises(InputError, match="column 'c' is empty"):
            Cells("c").fit(given_cells)
        return
    cells = Cells("c").fit(given_cells)
    names = sorted({cell for cell in plain if cell is not None})
    assert cells.get_feature_names_out().tolist() == [f"c={name}" for name in names]
    expected = [[float(name == cell) for name in names] for cell in plain]
    assert cells.transform(given_cells).toarray().tolist() == expected


def test_few_different_numbers_are_categories_and_many_may_be():
    assert Cells("c").fit([1, 2, 1]).edges_ is None
    assert Cells("c").fit(range(100)).edges_ is not None
    assert len(Cells("c", as_category=True).fit(range(100)).categories_) == 100


def test_decimal_commas_are_numbers_and_words_among_numbers_make_categories():
    assert Cells("c").fit([f"{i},5" for i in range(50)]).edges_ is not None
    assert Cells("c").fit([*map(str, range(50)), "many"]).edges_ is None


def test_what_is_new_or_missing_has_no_feature():
    cells = Cells("c").fit(range(100))
    assert cells.transform(["none", None, "", 5]).toarray().sum(axis=1).tolist() == [0, 0, 0, 1]


def union():
    return FeatureUnion([Column(0, Words()), Column(1, Cells("brand")), Column(2, Cells("price"))], [1.0, 0.5, 0.5])


def test_a_union_of_columns_holds_the_features_of_each():
    X = union().fit_transform(DOCUMENTS)
    texts, brands, prices = zip(*DOCUMENTS, strict=True)
    parts = [Words().fit_transform(texts), Cells("brand").fit_transform(brands), Cells("price").fit_transform(prices)]
    length = np.sqrt(1 + 0.25 + 0.25)
    expected = np.hstack([part.toarray() * weight / length for part, weight in zip(parts, (1, 0.5, 0.5), strict=True)])
    np.testing.assert_allclose(X.toarray(), expected, rtol=1e-6)


def test_a_plain_text_is_the_first_column():
    fitted = union().fit(DOCUMENTS)
    alone, missing = fitted.transform(["late parcel"]), fitted.transform([("late parcel", None, None)])
    assert (alone != missing).nnz == 0
    assert alone.nnz == 2


@pytest.mark.parametrize("system", ["path-svm", "nb", "svm", "shrinkage-nb", "treeboost-mh", "b-svm"])
def test_models_of_columns_are_saved_and_explained_like_words(system, tmp_path):
    features = FeatureUnion([Column(0, Vectorizer(weighting="counts") if "nb" in system else Words()), *union().blocks[1:]])
    clf = ramify.TextClassifier(system, features=features).fit(
        DOCUMENTS, ["a" if brand == "Acme" else "b" for _, brand, _ in DOCUMENTS]
    )
    assert clf.score(DOCUMENTS, ["a" if brand == "Acme" else "b" for _, brand, _ in DOCUMENTS]) == 1
    clf.save(tmp_path / "m")
    loaded = ramify.load(tmp_path / "m")
    assert loaded.predict(DOCUMENTS).tolist() == clf.predict(DOCUMENTS).tolist()
    assert (loaded.vectorizer_.transform(DOCUMENTS) != clf.vectorizer_.transform(DOCUMENTS)).nnz == 0
    words = [word for word, _ in loaded.explain(("late parcel", "Bolt", 3.0)).words]
    assert "brand=Bolt" in words


def test_columns_can_be_cloned_and_selected():
    fitted = clone(union()).fit(DOCUMENTS)
    whole, names = fitted.transform(DOCUMENTS), fitted.get_feature_names_out()
    chosen = np.flatnonzero([str(name).startswith(("brand", "price >", "dark")) for name in names])
    fitted.select_columns(chosen)
    # the words that are left have unit length again
    assert ((fitted.transform(DOCUMENTS) != 0) != (whole[:, chosen] != 0)).nnz == 0
    assert fitted.get_feature_names_out().tolist() == names[chosen].tolist()


@pytest.mark.parametrize(
    "change",
    [
        {"edges": [2.0, 1.0]},
        {"edges": [float("nan")]},
        {"edges": [1.0] * BINS},
        {"edges": "no"},
        {"categories": ["a", "a"]},
        {"categories": [1]},
        {"categories": ["x" * 1000]},
        {"name": 3},
        {"as_category": 2},
    ],
)
def test_hostile_columns_of_a_model_are_refused(change):
    values, arrays = Cells("c").fit(["a", "b"]).state()
    with pytest.raises(ModelError):
        Cells.from_state(values | change, arrays)


@pytest.mark.parametrize("change", [{"number": -1}, {"number": True}, {"name": 3}, {"block": {"kind": "code"}}])
def test_hostile_blocks_of_columns_are_refused(change):
    values, arrays = Column(0, Words()).fit(DOCUMENTS).state()
    with pytest.raises(ModelError):
        Column.from_state(values | change, arrays)
