"""Ascent first; where it stalls and weights are few, second-order steps go on from there."""

from __future__ import annotations

from dataclasses import replace

from ramify.learners.joint.ascent import Ascent, ascend
from ramify.learners.joint.problem import Floats
from ramify.learners.joint.smoothing import descend, suits_smoothing
from ramify.learners.linear.problem import Certificate, Settings

PATIENCE = 20  # rounds of ascent after which second-order steps are tried


def settle(found: Ascent, settings: Settings) -> tuple[Floats, Certificate]:
    """Bring an ascent to its end: the weights, and what is certain of them."""
    if not suits_smoothing(found.problem):
        return found.weights, ascend(found, settings)
    certificate = ascend(found, replace(settings, max_iter=min(PATIENCE, settings.max_iter)))
    if certificate.gap <= settings.tolerance or settings.max_iter <= PATIENCE:
        return found.weights, certificate
    W, closer = descend(found, replace(settings, max_iter=settings.max_iter - PATIENCE))
    return W, replace(closer, rounds=PATIENCE + closer.rounds)
