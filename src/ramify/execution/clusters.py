"""A cluster by its address, where the library for it is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ramify.errors import InputError

if TYPE_CHECKING:
    from ramify.execution.ray import RayExecutor


def open_cluster(address: str = "auto") -> RayExecutor:
    """Join a Ray cluster: ``"auto"`` for the one that this machine is part of, ``"local"`` for one on this machine alone.

    Use what it gives as a context, and :func:`~ramify.execution.running_on` to say what runs there.
    """
    try:
        from ramify.execution.ray import RayExecutor
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "ray":
            raise
        raise InputError("work on a cluster needs Ray; install it with: pip install 'ramify[ray]'") from None
    return RayExecutor(address)
