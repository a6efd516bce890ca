"""Results: one line, the text of the command, a part of a page, a data frame, a chart and plain values."""

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

import ramify
from ramify.errors import InputError
from ramify.metrics import make_report
from ramify.reports import frames
from ramify.reports.figures import scoped_style
from ramify.reports.results import MAX_ROWS, SHOWN
from ramify.reports.taxonomies import MAX_CHILDREN, MAX_NODES
from ramify.taxonomy import Taxonomy
from ramify.workflows import predict_stream
from ramify.workflows.predicting import PredictResult

EVIL = "<script>alert('&')</script>"


@pytest.fixture(scope="module")
def corpus():
    topics = {"Orders > Late": "parcel late courier", "Orders > Wrong": "wrong item box", f"TV > {EVIL}": "screen dark picture",
              "TV > Sound": "sound crackles speaker"}  # fmt: skip
    rows = [(f"{words} {EVIL} {i}", label) for label, words in topics.items() for i in range(8)]
    return ramify.data.Corpus(f"{EVIL}.csv", [text for text, _ in rows], [[label] for _, label in rows])


@pytest.fixture(scope="module")
def results(corpus):
    """One result of each kind."""
    trained = ramify.train(corpus, system="svm", keep_training_data=True)
    clf = trained.classifier
    tuned = ramify.tune(corpus, seconds=20, fixed=ramify.workflows.tuning.Fixed("nb", {"alpha": 0.1}))
    more = ramify.TextClassifier("nb").fit(corpus.documents, corpus.labels)
    larger = Taxonomy.from_paths(
        [*(" > ".join(clf.taxonomy_.path_of(n)) for n in range(len(clf.taxonomy_))), f"TV > New {EVIL}"], " > "
    )
    found = [
        trained, trained.report, tuned, tuned.tuning, clf.taxonomy_, clf.explain("dark screen"),
        ramify.explain(clf, f"dark screen {EVIL}", true="Orders > Late"),
        ramify.predict(clf, [f"late parcel {EVIL}", ""], top=2),
        ramify.audit("nb", corpus),
        ramify.compare(["nb", "svm"], corpus, folds=2, n_resamples=50),
        ramify.update(clf, larger),
        ramify.workflows.PartialFitResult(more, 3, [f"TV > {EVIL}"], 2),
    ]  # fmt: skip
    return {type(each): each for each in found}


@pytest.mark.parametrize("kind", SHOWN, ids=lambda kind: kind.__name__)
class TestEveryKind:
    def test_has_a_short_line_and_the_text_of_its_command(self, results, kind):
        line, text = repr(results[kind]), str(results[kind])
        assert line.startswith(f"<{kind.__name__}: ")
        assert len(line) < 400
        assert "\n" not in line
        assert text.strip()
        assert "\x1b" not in text

    def test_is_a_well_formed_part_of_a_page_in_which_everything_is_escaped(self, results, kind):
        page = results[kind]._repr_html_()
        part = ET.fromstring(page)
        assert part.get("class") == "ramify"
        assert EVIL not in page
        assert "<script" not in page
        assert not re.search(r"""(src|href)=|url\(|@import|https?://(?!www\.w3\.org/2000/svg)""", page)  # works offline

    def test_becomes_data_frames_of_the_library_that_is_there(self, results, kind, monkeypatch):
        for name in SHOWN[kind].tables:
            assert type(results[kind].to_frame(name)).__module__.startswith(frames.library())
        monkeypatch.setattr(frames, "find_spec", lambda name: None)
        assert type(results[kind].to_frame()).__module__.startswith("polars")

    def test_draws_every_chart(self, results, kind, tmp_path):
        for name in SHOWN[kind].charts(results[kind]):
            figure = results[kind].plot(name)
            ET.fromstring(figure.svg)
            ET.fromstring(figure._repr_html_())
            figure.save(tmp_path / "chart.svg")
            assert "--c0" in ET.fromstring((tmp_path / "chart.svg").read_text())[0].text  # its style goes with it
            figure.save(tmp_path / "chart.html")
        assert results[kind].plot().caption == results[kind].plot(next(iter(SHOWN[kind].charts(results[kind])))).caption

    def test_refuses_unknown_tables_and_charts_with_a_hint(self, results, kind):
        first = next(iter(SHOWN[kind].tables))
        with pytest.raises(InputError, match=f"Did you mean '{first}'"):
            results[kind].to_frame(first.upper())
        with pytest.raises(InputError, match="has no chart 'pie'; give one of"):
            results[kind].plot("pie")

    def test_becomes_plain_values(self, results, kind):
        json.dumps(results[kind].to_dict(), allow_nan=kind.__name__ in ("Audit", "Report", "TrainResult", "Tuned"))


def test_every_kind_of_result_is_shown():
    made = {kind.__qualname__ for kind in ramify.results.Result.__subclasses__() if kind.__module__.startswith("ramify.")}
    assert made == {kind.__qualname__ for kind in SHOWN}


def test_to_dict_is_what_the_command_prints_as_json(corpus, tmp_path, capsys):
    from ramify.cli.main import main

    path = tmp_path / "d.csv"
    rows = "".join(f'"{text}","{labels[0]}"\n' for text, labels in zip(corpus.documents, corpus.labels, strict=True))
    path.write_text("text,label\n" + rows)
    trained = ramify.train(path, system="nb", model=tmp_path / "m")
    assert main(["train", str(path), "--system", "nb", "--model", str(tmp_path / "n"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told.pop("model") == str(tmp_path / "n")
    assert told == json.loads(json.dumps(trained.to_dict()))
    assert main(["evaluate", str(tmp_path / "m"), str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(ramify.evaluate(tmp_path / "m", path).to_dict()))
    assert main(["explain", str(tmp_path / "m"), "dark screen", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(
        json.dumps(ramify.explain(tmp_path / "m", "dark screen").to_dict())
    )


def test_str_is_what_the_command_prints(results, corpus, tmp_path, capsys):
    from ramify.cli.main import main

    clf = next(each for kind, each in results.items() if kind.__name__ == "TrainResult").classifier
    clf.save(tmp_path / "m")
    assert main(["explain", str(tmp_path / "m"), "dark screen"]) == 0
    printed = "\n".join(line.rstrip() for line in capsys.readouterr().out.strip("\n").splitlines())
    assert printed == str(ramify.explain(clf, "dark screen"))


def test_the_style_of_a_part_touches_nothing_outside_of_it():
    rules = re.findall(r"([^{}]+)\{", re.sub(r"@media[^{]*\{", "", scoped_style()))
    assert len(rules) > 30
    assert [rule for rule in rules if not all(each.strip().startswith(".ramify") for each in rule.split(","))] == []


def test_a_report_on_nothing_is_shown(food):
    Y = food.encode([])
    report = make_report(Y, Y, food)
    ET.fromstring(report._repr_html_())
    assert "0 documents" in repr(report)
    assert str(report)
    assert len(report.to_frame()) == 0
    report.plot("nodes")


def test_a_training_without_a_test_says_that_there_are_no_figures(corpus):
    trained = ramify.train(corpus, system="nb", holdout=0)
    assert "micro F1" not in repr(trained)
    ET.fromstring(trained._repr_html_())
    with pytest.raises(InputError, match="nothing was held out"):
        trained.plot()


class TestTaxonomies:
    def test_an_empty_one_is_shown(self):
        empty = Taxonomy.from_edges([])
        ET.fromstring(empty._repr_html_())
        assert len(empty.to_frame()) == 0
        empty.plot()

    def test_of_a_huge_one_some_hundred_nodes_are_shown_and_how_many_more(self):
        huge = Taxonomy.from_paths([f"a{i}/b{j}/c{k}" for i in range(20) for j in range(10) for k in range(20)])
        page = huge._repr_html_()
        shown = len(re.findall(r"<summary>|<li><span>", " ".join(page.split()).replace("> <", "><")))
        assert shown == MAX_NODES
        assert f"{len(huge) - MAX_NODES:,} more nodes in all" in page
        assert len(huge.to_frame()) == len(huge)

    def test_of_many_roots_the_first_are_shown(self):
        page = Taxonomy.flat([f"n{i}" for i in range(5_000)])._repr_html_()
        assert page.count("<li>") == MAX_CHILDREN
        assert "4,960 more nodes" in page

    def test_a_deep_one_is_shown_down_to_some_level(self):
        deep = Taxonomy.from_edges([("n0", None), *((f"n{i}", f"n{i - 1}") for i in range(1, 900))])
        ET.fromstring(deep._repr_html_())
        assert str(deep)

    def test_a_dag_is_shown_as_a_tree(self, diamond):
        assert "DAG of 4 nodes" in diamond._repr_html_()
        frame = diamond.to_frame()
        assert list(list(frame["parents"])[-1]) == ["left", "right"]

    def test_repr_and_str_differ(self, food):
        assert "\n" not in repr(food)
        assert "apple" in str(food)


def test_many_predictions_are_cut_in_a_notebook_and_whole_in_a_frame():
    made = tuple(predict_stream.Prediction(i, {"text": "x"}, [("a", 0.5)], []) for i in range(1000))
    found = PredictResult("x.csv", ("text",), made)
    assert found._repr_html_().count("<tr>") == MAX_ROWS + 1
    assert f"and {1000 - MAX_ROWS} more documents" in found._repr_html_()
    assert len(found.to_frame()) == 1000
    assert next(iter(found.to_frame()["probability"])) == 0.5


def test_a_chart_is_not_replaced_without_overwrite(food, tmp_path: Path):
    figure = food.plot()
    figure.save(tmp_path / "a.svg")
    with pytest.raises(InputError, match="exists already; give overwrite=True"):
        figure.save(tmp_path / "a.svg", overwrite=False)
    with pytest.raises(InputError, match=r"ends in \.svg or \.html"):
        figure.save(tmp_path / "a.png")


@pytest.mark.skipif(find_spec("pandas") is None, reason="pandas is not installed")
def test_pandas_is_used_where_it_is_installed(food):
    assert type(food.to_frame()).__module__.startswith("pandas")


def test_explanations_without_known_words_say_so(corpus):
    clf = ramify.TextClassifier("nb").fit(corpus.documents, corpus.labels)
    assert "without any known word" in repr(ramify.explain(clf, "zzz"))
    assert "no known word" in ramify.explain(clf, "zzz")._repr_html_()
    assert "Documents with the same" not in str(replace(ramify.explain(clf, "zzz"), truth=None))
