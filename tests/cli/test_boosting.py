"""Boosted systems on the command line: rounds, more rounds, words of their own at every node, and files."""

import json

import pytest
from cli.test_commands import ramify
from cli.test_update_documents import MORE, ROWS, write_table

from ramify import Taxonomy, TextClassifier, load
from ramify.decisions import Best, Sign, TopDown
from ramify.learners import AdaBoostMH, TreeBoostMH

TEXTS, LABELS = [text for text, _ in ROWS], [label for _, label in ROWS]


def train(capsys, folder, system, *more):
    data = write_table(folder / "data.csv", ROWS)
    options = ["--model", folder / system, "--system", system, "--holdout", 0, "--param", "n_rounds=10", *more]
    code, _, err = ramify(capsys, "train", data, *options)
    assert code == 0, err
    return folder / system


@pytest.mark.parametrize("system", ["adaboost-mh", "treeboost-mh"])
def test_a_boosted_model_is_trained_saved_used_and_looked_into(system, tmp_path, capsys):
    model = train(capsys, tmp_path, system)
    assert load(model).predict(TEXTS).tolist() == LABELS
    code, out, err = ramify(capsys, "predict", model, "--try", "where is the courier", "--json")
    assert code == 0, err
    assert json.loads(out)["labels"][0]["label"] == "Orders > Delivery"
    code, out, _ = ramify(capsys, "inspect", model, "--node", "Orders > Invoice", "--json")
    assert code == 0
    assert json.loads(out)["words"][0]["word"] == "amount"


@pytest.mark.parametrize("system", ["adaboost-mh", "treeboost-mh"])
def test_more_rounds_on_the_same_documents_are_one_longer_training(system, tmp_path, capsys):
    model = train(capsys, tmp_path, system)
    code, out, err = ramify(
        capsys, "update", model, "--data", tmp_path / "data.csv", "--rounds", 15, "--to", tmp_path / "more", "--json"
    )
    assert code == 0, err
    assert json.loads(out)["rounds"] == 25
    longer = TextClassifier(system, learner=load(model).learner.set_params(n_rounds=25)).fit(TEXTS, LABELS)
    more = load(tmp_path / "more")
    assert (more.learner_.n_rounds, more.learner_.n_rounds_) == (10, 25)  # as many as in training, the next time
    for one, other in zip(more.learner_.committees_, longer.learner_.committees_, strict=True):
        assert one.pivots.tolist() == other.pivots.tolist()
    assert more.predict_proba(TEXTS) == pytest.approx(longer.predict_proba(TEXTS), abs=1e-5)


def test_new_words_can_become_pivots(tmp_path, capsys):
    model = train(capsys, tmp_path, "treeboost-mh")
    more = [("quixotic", "Orders > Delivery"), ("zany", "Orders > Invoice")] * 6
    code, _, err = ramify(capsys, "update", model, "--data", write_table(tmp_path / "more.csv", more))
    assert code == 0, err
    assert load(model).predict(["zany", "quixotic"]).tolist() == ["Orders > Invoice", "Orders > Delivery"]


def test_classes_stay_what_they_were(tmp_path, capsys):
    model = train(capsys, tmp_path, "treeboost-mh")
    before = load(model).predict_proba(TEXTS)
    code, _, err = ramify(capsys, "update", model, "--data", write_table(tmp_path / "more.csv", MORE))
    assert code == 2
    assert "node 'TV > Remote' is new" in err
    assert load(model).predict_proba(TEXTS) == pytest.approx(before)


def test_more_documents_may_be_of_one_class():
    clf = TextClassifier("treeboost-mh", learner=TreeBoostMH(n_rounds=5)).fit(TEXTS, LABELS)
    clf.partial_fit(["another invoice", "this invoice"], ["Orders > Invoice"] * 2)
    assert clf.learner_.n_rounds_ == 10


def test_rounds_are_for_boosting_only(tmp_path, capsys):
    data = write_table(tmp_path / "data.csv", ROWS)
    ramify(capsys, "train", data, "--model", tmp_path / "nb", "--system", "nb", "--holdout", 0)
    code, _, err = ramify(capsys, "update", tmp_path / "nb", "--data", data, "--rounds", 5)
    assert code == 2
    assert "--rounds is for boosting, and system 'nb' has no rounds" in err


@pytest.mark.parametrize("system", ["adaboost-mh", "treeboost-mh"])
def test_rounds_that_serve_validation_documents_best_are_kept(system, tmp_path, capsys):
    model = train(capsys, tmp_path, system)
    options = ["--data", tmp_path / "data.csv", "--select-rounds", "--to", tmp_path / "cut"]
    code, out, err = ramify(capsys, "update", model, *options, "--json")
    assert code == 0, err
    told = json.loads(out)
    best = max(told["micro_f1"].values())
    assert told["rounds"] == min(int(s) for s, quality in told["micro_f1"].items() if quality == best)
    cut, whole = load(tmp_path / "cut"), load(model)
    assert cut.learner_.n_rounds_ == told["rounds"] < whole.learner_.n_rounds_
    assert cut.predict_proba(TEXTS) == pytest.approx(_cut(whole, told["rounds"]).predict_proba(TEXTS))
    code, _, err = ramify(capsys, "update", model, *options, "--force")
    assert code == 0
    assert f"{told['rounds']} round" in err
    assert "the best on these 8 documents" in err


def _cut(classifier, rounds):
    classifier.learner_ = classifier.learner_.at_round(rounds)
    return classifier


def test_rounds_are_either_made_or_chosen(tmp_path, capsys):
    model = train(capsys, tmp_path, "adaboost-mh")
    options = ["--data", tmp_path / "data.csv", "--select-rounds", "--rounds", 3]
    code, _, err = ramify(capsys, "update", model, *options)
    assert code == 2
    assert "give one of them" in err


def test_glocal_selection_sets_the_terms_of_every_node(tmp_path, capsys):
    glocal = ["--select", 3, "--select-scope", "glocal", "--select-join", "round-robin"]
    learner = load(train(capsys, tmp_path, "treeboost-mh", *glocal)).learner_
    assert (learner.n_terms, learner.join) == (3, "round-robin")
    assert all(len(set(committee.pivots.tolist())) <= 3 for committee in learner.committees_)


def test_the_rule_is_the_best_node_for_one_label_and_the_sign_for_several():
    several = [[label] if i % 4 else [label, "TV > Sound"] for i, label in enumerate(LABELS)]
    for system, by_sign in [("adaboost-mh", Sign), ("treeboost-mh", TopDown)]:
        assert isinstance(TextClassifier(system).fit(TEXTS, LABELS).decision_, Best)
        assert isinstance(TextClassifier(system).fit(TEXTS, several).decision_, by_sign)


def test_predictions_read_pivots_alone_and_ask_only_nodes_that_are_reached(monkeypatch):
    several = [[label] if i % 4 else [label, "TV > Sound"] for i, label in enumerate(LABELS)]
    clf = TextClassifier("treeboost-mh", learner=TreeBoostMH(n_rounds=3)).fit(TEXTS, several)
    full = clf.decide(clf.learner_.scores(clf.vectorizer_.transform(TEXTS)))
    widths = []
    passing = TreeBoostMH.predict_sets
    monkeypatch.setattr(TreeBoostMH, "predict_sets", lambda self, X: widths.append(X.shape[1]) or passing(self, X))
    assert (clf.predict_matrix(TEXTS) != full).nnz == 0
    n_pivots = len({int(pivot) for committee in clf.learner_.committees_ for pivot in committee.pivots})
    assert widths == [n_pivots]
    assert n_pivots < clf.vectorizer_.n_features_out
    assert (clf.decide_with_probabilities(TEXTS, labels_only=True)[0] != full).nnz == 0
    clf.partial_fit(TEXTS, several)  # other pivots
    again = clf.decide(clf.learner_.scores(clf.vectorizer_.transform(TEXTS)))
    assert (clf.predict_matrix(TEXTS) != again).nnz == 0


def test_a_dag_is_boosted_flat():
    edges = [("x", "a"), ("x", "b"), ("y", "b"), ("a", None), ("b", None)]
    clf = TextClassifier("adaboost-mh", Taxonomy.from_edges(edges), learner=AdaBoostMH(n_rounds=5))
    clf.fit(["red apple", "red apple pie", "rye bread", "bread crust"], ["x", "x", "y", "y"])
    assert clf.predict(["apple", "bread"]).tolist() == ["x", "y"]
    assert set(clf.taxonomy_.decode(clf.predict_matrix(["apple"]))[0]) == {"x"}
