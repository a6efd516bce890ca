"""What to try next: every system once, then steps around the best of those that are near the best of all.

The order is that of what a trial may gain for what it costs. Both are known before anything is measured, or come from scores,
so the same scores always give the same order, however fast the machine is.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from ramify.pipeline.choosing.candidates import Candidate, Fixed, Prospects, relative_cost

NEAR = 0.02  # of the measure: a system so far behind the best gains a third as much from another step
FAR = 0.05  # of what the best gains: systems that gain less are left as they are
STEP, CHANGE = 0.6, 0.5  # what another number of the learner gains, and other features; trying the system itself is 1


def propose(fixed: Fixed, scores: Mapping[Candidate, float], closed: Collection[Candidate], has_texts: bool) -> list[Candidate]:
    """Candidates that were not tried, the one to try next first.

    scores: of those that were tried, higher is better. closed: others that are not to be tried, or not again.
    """
    gains: dict[Candidate, float] = {start: fixed.prospect(start.system).promise for start in fixed.starts()}
    highest = max(scores.values(), default=0.0)
    for system in dict.fromkeys(candidate.system for candidate in scores):
        best = _best(system, scores, fixed.prospects)
        near = math.exp((scores[best] - highest) / NEAR)
        worth = near * fixed.prospect(system).promise
        if near >= FAR:
            for other in fixed.steps(best):
                gains.setdefault(other, STEP * worth)
            for other in fixed.changes(best) if has_texts else ():
                gains.setdefault(other, CHANGE * worth)
    left = [candidate for candidate in gains if candidate not in scores and candidate not in closed]
    return sorted(left, key=lambda candidate: -gains[candidate] / relative_cost(candidate, fixed.prospects))


def _best(system: str, scores: Mapping[Candidate, float], prospects: Prospects) -> Candidate:
    """The best candidate of a system; of equals the cheapest, and of equally cheap ones the first."""
    tried = [candidate for candidate in scores if candidate.system == system]
    return min(tried, key=lambda candidate: (-scores[candidate], relative_cost(candidate, prospects)))
