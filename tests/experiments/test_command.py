"""``python -m experiments`` as a user meets it."""

import json
import signal
import subprocess
import sys
import time

import pytest
from paper_files.made_up import Counting, write_newsgroups

from experiments import study_names
from experiments.__main__ import run

pytestmark = pytest.mark.slow


def ramify(capsys, *arguments):
    code = run([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture
def counting(monkeypatch):
    """The command with a study that takes no time."""
    made = Counting()
    monkeypatch.setattr("experiments.command.find_study", lambda name: made.study())
    return made


# ---- the list -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [(), ("--list",)])
def test_without_a_paper_all_are_listed_with_the_data_they_need(capsys, arguments):
    code, out, err = ramify(capsys, *arguments)
    assert code == 0, err
    assert all(name in out for name in study_names())
    assert "needs RCV1-v2" in out
    assert "in place of rcv1" in out
    assert "lyrl2004_vectors_train.dat" in out


def test_the_list_speaks_json(capsys):
    code, out, _ = ramify(capsys, "cesabianchi2006", "--list", "--json")
    (paper,) = json.loads(out)
    assert code == 0
    assert [part["name"] for part in paper["parts"] if part["needs"]] == ["rcv1"]
    assert "RCV1" in paper["data"]["rcv1"] or "lyrl2004" in paper["data"]["rcv1"]
    assert "OHSUMED" in paper["not_obtainable"]


# ---- a run --------------------------------------------------------------------------------------------------------------


def test_a_run_tells_what_ran_what_did_not_and_where_the_page_is(capsys, counting, tmp_path):
    code, out, err = ramify(capsys, "made2000", "--quick", "--out", tmp_path / "new" / "out")
    assert code == 0, err
    assert "Table <1>" in out
    assert "−0.40" in out
    assert "in place of news" in out
    assert "What did not run" in out
    assert "news: needs 20 newsgroups: give --data DIR with" in out
    assert "a lost corpus: nobody has it any more." in out
    page = tmp_path / "new" / "out" / "made2000.html"
    assert f"Page: {page}" in out.replace("\n", "")
    assert page.exists()


def test_data_is_found_where_it_is_given(capsys, counting, tmp_path):
    data = write_newsgroups(tmp_path / "corpora")
    code, out, err = ramify(capsys, "made2000", "--quick", "--data", data, "--out", tmp_path / "out")
    assert code == 0, err
    assert "What did not run" not in out
    assert "news one" in counting.done
    code, out, _ = ramify(capsys, "made2000", "--quick", "--data", data, "--out", tmp_path / "out")
    assert out.count("from an earlier run") == 3


def test_a_run_speaks_json(capsys, counting, tmp_path):
    arguments = ("--quick", "--part", "plain", "--part", "last", "--seed", 3, "--out", tmp_path, "--json")
    code, out, _ = ramify(capsys, "made2000", *arguments)
    facts = json.loads(out)
    assert code == 0
    assert (facts["paper"], facts["size"], facts["seed"]) == ("made2000", "quick", 3)
    assert [part["part"] for part in facts["parts"]] == ["plain", "last"]
    assert facts["parts"][0]["beside"][0]["rows"][0] == {"what": "a & b", "paper": 0.9, "ours": 0.5, "why": "less <data>"}
    assert [each["part"] for each in facts["not_run"]] == ["news"]


def test_without_quick_a_run_is_full(capsys, counting, tmp_path):
    ramify(capsys, "made2000", "--part", "plain", "--out", tmp_path)
    (entry,) = json.loads((tmp_path / "made2000.json").read_text())["parts"]
    assert entry["settings"]["size"] == "full"


def test_an_interruption_says_how_to_go_on(capsys, counting, tmp_path):
    counting.stop_at = "plain two"
    code, _, err = ramify(capsys, "made2000", "--quick", "--out", tmp_path)
    assert code == 2
    assert err == f"ramify: interrupted; what is done is kept in {tmp_path}, and the same command goes on from there.\n"
    counting.stop_at = None
    assert ramify(capsys, "made2000", "--quick", "--out", tmp_path)[0] == 0
    assert counting.done.count("plain one") == 1


def take_interrupts():
    """In a child process: let SIGINT end it, also where this suite runs in the background, which ignores it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_a_signal_in_the_middle_of_a_real_run_keeps_what_is_done(tmp_path):
    command = [sys.executable, "-m", "experiments", "cesabianchi2006", "--quick", "--threads", "1"]
    work = subprocess.Popen([*command, "--out", str(tmp_path)], stderr=subprocess.PIPE, text=True, preexec_fn=take_interrupts)
    held = tmp_path / "cesabianchi2006.json"
    for _ in range(600):
        if held.exists() and "the set" in held.read_text():
            break
        time.sleep(0.1)
    work.send_signal(signal.SIGINT)
    _, err = work.communicate(timeout=60)
    assert work.returncode == 2
    assert "Traceback" not in err
    assert "the same command goes on from there" in err
    assert "the set" in json.dumps(json.loads(held.read_text()))


# ---- bad input ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (("cesabianchi2005",), "paper 'cesabianchi2005' is unknown; the papers are"),
        (("cesabianchi2005",), "Did you mean 'cesabianchi2006'?"),
        (("nobody1900", "--list"), "paper 'nobody1900' is unknown"),
        (("cesabianchi2006", "--part", "synth3"), "cesabianchi2006 has no part 'synth3'; its parts are synth1, synth2,"),
        (("cesabianchi2006", "--data", "nowhere"), "--data nowhere does not exist; give the folder that holds the corpora."),
        (("cesabianchi2006", "--threads", "0"), "n_jobs"),
        (("cesabianchi2006", "--seed", "-1"), "seed"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_written(capsys, tmp_path, monkeypatch, arguments, match):
    monkeypatch.chdir(tmp_path)
    code, out, err = ramify(capsys, *arguments)
    assert code == 2
    assert match in err
    assert "Traceback" not in err
    assert out == ""
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_place_of_a_folder_is_refused(capsys, tmp_path):
    (tmp_path / "file").write_text("x")
    code, _, err = ramify(capsys, "cesabianchi2006", "--quick", "--out", tmp_path / "file")
    assert (code, "it is a file; choose another folder with --out" in err) == (2, True)
    code, _, err = ramify(capsys, "cesabianchi2006", "--quick", "--data", tmp_path / "file")
    assert (code, "is not a folder" in err) == (2, True)
    assert (tmp_path / "file").read_text() == "x"


def test_a_broken_results_file_is_refused_and_left_alone(capsys, tmp_path):
    (tmp_path / "cesabianchi2006.json").write_text('{"kind":')
    code, _, err = ramify(capsys, "cesabianchi2006", "--quick", "--out", tmp_path)
    assert code == 2
    assert "is broken and cannot be gone on with; remove it, or choose another folder with --out." in err
    assert (tmp_path / "cesabianchi2006.json").read_text() == '{"kind":'


def test_help_shows_examples(capsys):
    code, out, _ = ramify(capsys, "--help")
    assert code == 0
    assert "python -m experiments cesabianchi2006 --quick" in out
