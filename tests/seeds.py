"""Tests that run for many seeds, collected as one."""

from __future__ import annotations

import functools
import inspect


def each_seed(count):
    """Run a test once for every seed below `count`; a failure names its seed."""

    def decorate(test):
        signature = inspect.signature(test)

        @functools.wraps(test)
        def run(**fixtures):
            for seed in range(count):
                try:
                    test(seed=seed, **fixtures)
                except Exception as error:
                    error.add_note(f"seed {seed}")
                    raise

        parameters = [parameter for name, parameter in signature.parameters.items() if name != "seed"]
        run.__signature__ = signature.replace(parameters=parameters)
        return run

    return decorate
