"""What the paper reports: Tables 1 to 3, how many documents there are, and how many paths a document has."""

from __future__ import annotations

from typing import NamedTuple


class Reported(NamedTuple):
    """H-loss, its standard deviation over folds, its parts by depth, and, where Table 2 has it, each fold's."""

    mean: float
    spread: float
    by_depth: tuple[float, ...]
    folds: tuple[float, ...] = ()


DOCUMENTS = {"synth1": 40_000, "synth2": 40_000, "rcv1": 100_000}
PATHS = {"synth1": 2.656, "synth2": 1.277, "rcv1": 1.5}
REPORTED = {
    "synth1": {
        "H-SVM": Reported(1.454, 0.007, (0.432, 0.572, 0.757)),
        "B-SVM": Reported(1.269, 0.008, (0.445, 0.519, 0.678)),
    },
    "synth2": {
        "H-SVM": Reported(0.350, 0.007, (0.123, 0.184, 0.187)),
        "B-SVM": Reported(0.322, 0.003, (0.121, 0.166, 0.183)),
    },
    "rcv1": {
        "H-SVM": Reported(0.716, 0.024, (0.190, 0.471, 0.131, 0.097), (0.702, 0.727, 0.727, 0.741, 0.682)),
        "B-SVM": Reported(0.712, 0.023, (0.192, 0.474, 0.126, 0.093), (0.701, 0.727, 0.712, 0.741, 0.681)),
    },
}
