"""Models in MLflow: the same predictions, no pickle, a signature, and errors in one sentence."""

import sys

import pytest

import ramify
from ramify.errors import InputError

TEXTS = ["sweet red apple", "green apple pie", "rye bread crust", "white bread loaf"]
LABELS = ["food/fruit", "food/fruit", "food/bread", "food/bread"]


@pytest.fixture(scope="module")
def classifier():
    return ramify.TextClassifier("nb").fit(TEXTS, LABELS)


def test_without_mlflow_it_is_said_how_to_install_it(classifier, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(InputError, match=r"mlflow is not installed; install it with: pip install 'ramify\[mlflow\]'"):
        ramify.mlflow.save_model(classifier, tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_what_is_no_classifier_is_refused(tmp_path):
    with pytest.raises(InputError, match="give a TextClassifier"):
        ramify.mlflow.save_model("model", tmp_path / "m")
    with pytest.raises(InputError, match="give a TextClassifier"):
        ramify.mlflow.log_model(None)


def test_texts_are_a_list_or_one_column():
    from ramify.mlflow import texts_of

    assert texts_of(["a", "b"]) == ["a", "b"]
    with pytest.raises(InputError, match="not one string"):
        texts_of("a")
    with pytest.raises(InputError, match="give texts, or a data frame with the column 'text'"):
        texts_of([{"text": "a"}])


@pytest.mark.filterwarnings("ignore")  # of other packages
class TestWithMlflow:
    @pytest.fixture(autouse=True)
    def tracking(self, tmp_path, monkeypatch):
        self.mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed")
        self.pandas = pytest.importorskip("pandas", reason="pandas is not installed")
        monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
        self.mlflow.set_tracking_uri((tmp_path / "runs").as_uri())

    def test_a_saved_model_loads_as_a_classifier_and_as_a_function(self, classifier, tmp_path):
        ramify.mlflow.save_model(classifier, tmp_path / "m")
        texts = ["apple", "bread"]
        assert ramify.mlflow.load_model(tmp_path / "m").predict(texts).tolist() == classifier.predict(texts).tolist()
        function = self.mlflow.pyfunc.load_model(str(tmp_path / "m"))
        found = function.predict(self.pandas.DataFrame({"text": texts}))
        assert list(found["label"]) == ["food/fruit", "food/bread"]
        expected = [max(row) for row in classifier.predict_proba(texts)[:, classifier.taxonomy_.is_leaf].tolist()]
        assert list(found["probability"]) == pytest.approx(expected)

    def test_there_is_a_signature_an_example_and_no_pickle(self, classifier, tmp_path):
        ramify.mlflow.save_model(classifier, tmp_path / "m")
        about = self.mlflow.models.Model.load(str(tmp_path / "m"))
        assert about.signature.inputs.input_names() == ["text"]
        assert about.signature.outputs.input_names() == ["label", "probability"]
        assert about.load_input_example(str(tmp_path / "m")) is not None
        files = [path for path in (tmp_path / "m").rglob("*") if path.is_file()]
        assert (tmp_path / "m" / "data" / "model" / "manifest.json") in files
        assert not [path for path in files if path.suffix in (".pkl", ".pickle", ".joblib") or path.read_bytes()[:1] == b"\x80"]
        with pytest.raises(InputError, match="exists already"):
            ramify.mlflow.save_model(classifier, tmp_path / "m")

    def test_a_logged_model_is_loaded_from_its_run(self, classifier):
        with self.mlflow.start_run():
            logged = ramify.mlflow.log_model(classifier, "shop")
        assert ramify.mlflow.load_model(logged.model_uri).predict(["apple"]).tolist() == ["food/fruit"]
        frame = self.pandas.DataFrame({"text": ["rye bread"]})
        assert list(self.mlflow.pyfunc.load_model(logged.model_uri).predict(frame)["label"]) == ["food/bread"]

    def test_texts_that_cannot_be_classified_have_no_label(self, classifier, tmp_path):
        ramify.mlflow.save_model(classifier, tmp_path / "m")
        found = self.mlflow.pyfunc.load_model(str(tmp_path / "m")).predict(self.pandas.DataFrame({"text": ["apple", " "]}))
        assert found.to_dict("list")["label"] == ["food/fruit", ""]
        assert found.to_dict("list")["probability"][1] == 0.0

    def test_another_model_is_refused(self, tmp_path):
        class Nothing(self.mlflow.pyfunc.PythonModel):
            def predict(self, context, model_input: list[str], params=None) -> list[str]:
                return model_input

        self.mlflow.pyfunc.save_model(str(tmp_path / "m"), python_model=Nothing())
        with pytest.raises(InputError, match="not of ramify; load it with their functions"):
            ramify.mlflow.load_model(tmp_path / "m")

    def test_columns_that_are_no_text_are_refused(self):
        from ramify.mlflow import texts_of

        assert texts_of(self.pandas.DataFrame({"body": ["a"]})) == ["a"]
        assert texts_of(self.pandas.DataFrame({"id": [1], "text": ["a"]})) == ["a"]
        with pytest.raises(InputError, match="the columns are a, b; give one column, 'text'"):
            texts_of(self.pandas.DataFrame({"a": ["x"], "b": ["y"]}))
