"""The systems of the paper, each tried on a problem: its cost is chosen, then it is trained once with that cost.

The cost is chosen by cross-validation on the training documents. Where time is short a few costs are tried on a fifth of them.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from experiments.gopal2013.paper import SYSTEMS
from experiments.gopal2013.problem import Problem, tell
from experiments.study import Run
from ramify.data import hold_out
from ramify.errors import RamifyError
from ramify.metrics import macro_f1, micro_f1
from ramify.systems import SYSTEMS as THERE
from ramify.systems import find_system
from ramify.taxonomy import Taxonomy
from ramify.workflows.compare_trials import measure_memory

COSTS = (0.01, 0.1, 1.0, 10.0)  # that a quick run tries
HELD_OUT = 0.2  # of the training documents, where few costs are tried
AT_MOST = 200  # rounds of training with a cost that is only tried

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Way:
    """How systems answer a problem.

    answers: of a fitted learner, as plain values. judge: what these are worth. compare: tests of all systems' answers.
    """

    answers: Callable[[Problem, Any], Any]
    judge: Callable[[Problem, Any], Row]
    compare: Callable[[Problem, dict[str, Any]], list[Row]]


def systems_there() -> dict[str, list[str]]:
    """The systems of the paper that Ramify has."""
    return {"systems": [name for name in SYSTEMS if name in THERE]}


def try_all(run: Run, problem: Problem, way: Way) -> Row:
    """What came of every system, and the tests."""
    there, rows, answers = systems_there()["systems"], {}, {}
    for name in there:
        row = try_system(run, problem, name, way)
        if "answers" in row:
            answers[name] = row.pop("answers")
            row |= way.judge(problem, answers[name])
        rows[name] = row
    return {
        "corpus": tell(problem),
        "systems": rows,
        "not there": [name for name in SYSTEMS if name not in there],
        "tests": run.keep("tests", partial(way.compare, problem, answers)),
    }


def try_system(run: Run, problem: Problem, name: str, way: Way) -> Row:
    """Cost, times and answers of a system, or why it refused the problem."""
    chosen: Row = run.keep(f"{name}, choosing C", partial(_unless_refused, choose_cost, run, problem, name))
    if "refused" in chosen:
        return dict(chosen)
    work = partial(_unless_refused, train, run, problem, name, chosen["C"], way)
    trained: Row = run.keep(f"{name}, training", work)
    if "refused" in trained:
        return dict(trained)
    row = chosen | trained
    if run.size != "full" and chosen["C"] is not None:  # C="auto" ends with a training, but trying a few costs does not
        row["seconds_in_all"] += trained["seconds"]
    return row


def _unless_refused(work: Callable[..., Row], *given: Any) -> Row:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the gap that is left is shown
            return work(*given)
    except RamifyError as error:
        return {"refused": str(error)}


def choose_cost(run: Run, problem: Problem, name: str) -> Row:
    """The cost that did best on the training documents, and the seconds that this took; None where there is no cost."""
    if "C" not in make_learner(run, problem.taxonomy, name).get_params():
        return {"C": None}
    start = time.perf_counter()
    if run.size == "full":
        cost = float(make_learner(run, problem.taxonomy, name, C="auto").fit(problem.X, problem.Y).C_)
    else:
        cost = best_of(run, problem, name, run.choose(COSTS, COSTS, (1.0,)))
    return {"C": cost, "seconds_in_all": time.perf_counter() - start}


def best_of(run: Run, problem: Problem, name: str, costs: tuple[float, ...]) -> float:
    """Of a few costs the one with the best F1 on documents held out, the smallest of equal ones."""
    if len(costs) == 1:
        return costs[0]
    tree, X, Y = problem.taxonomy, problem.X, problem.Y
    learnt, kept = hold_out(tree.decode(Y), HELD_OUT, run.seed)
    quality: dict[float, float] = {}
    for cost in costs:
        tried = make_learner(run, tree, name, C=cost, max_iter=AT_MOST).fit(X[learnt], Y[learnt])
        given = tried.predict(X[kept])
        quality[cost] = macro_f1(Y[kept], given, tree, over="own") + micro_f1(Y[kept], given, tree, over="own")
    return max(quality, key=lambda cost: (quality[cost], -cost))


def train(run: Run, problem: Problem, name: str, cost: float | None, way: Way) -> Row:
    """One training with the cost chosen: seconds, megabytes, the gap that is left, and answers."""
    learner = make_learner(run, problem.taxonomy, name, **({} if cost is None else {"C": cost}))
    with measure_memory() as peak:
        start = time.perf_counter()
        learner.fit(problem.X, problem.Y)
        seconds = time.perf_counter() - start
    row: Row = {"seconds": seconds, "megabytes": peak.megabytes, "answers": way.answers(problem, learner)}
    return row | ({"gap": float(learner.gap_)} if hasattr(learner, "gap_") else {})


def make_learner(run: Run, taxonomy: Taxonomy, name: str, **given: Any) -> Any:
    """An unfitted learner of a system; what it does not know is left out."""
    learner = find_system(name).learner()
    known = learner.get_params()
    wanted = {"taxonomy": taxonomy, "n_jobs": run.threads, "random_state": run.seed, **given}
    return learner.set_params(**{key: value for key, value in wanted.items() if key in known})
