"""Clusters of several nodes on this machine, for benchmarks: each node has its own processors, object store and address.

Import it before Ray: clusters ask for a token, and Ray looks at that when it is imported.
"""

from __future__ import annotations

import logging
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}


def _node(number: int, processors: int, store: int) -> dict[str, Any]:
    address = f"127.0.0.{number + 2}"
    return {"num_cpus": processors, "object_store_memory": store, "node_ip_address": address, "include_dashboard": False}


@contextmanager
def simulated_cluster(processors: Sequence[int], store: int = 2 << 30) -> Iterator[Any]:
    """Nodes with so many processors each, and this process as their driver."""
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args=_node(0, processors[0], store))
    try:
        for number, each in enumerate(processors[1:], 1):
            cluster.add_node(**_node(number, each, store))
        ray.init(address=cluster.address, logging_level=logging.ERROR, log_to_driver=False)
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


def bytes_in_stores() -> int:
    """What the object stores of all nodes hold together, and whatever else is in shared memory."""
    return shutil.disk_usage("/dev/shm").used
