"""Small Ray clusters of several nodes, on this machine alone."""

import logging
import os
import secrets
import warnings
from contextlib import contextmanager

STORE = 150_000_000

# Ray listens on all addresses of a machine, so clusters of tests ask for a token; Ray looks at this when it is imported
os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}


def new_node(number):
    """One processor, and an address of its own that leads to this machine; 127.0.0.1 would be resolved to another."""
    address = f"127.0.0.{number + 2}"
    return {"num_cpus": 1, "object_store_memory": STORE, "node_ip_address": address, "include_dashboard": False}


@contextmanager
def small_cluster(n_nodes=2):
    """A running cluster whose nodes have one processor each, and this process as its driver."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ray
        from ray.cluster_utils import Cluster

        cluster = Cluster(initialize_head=True, head_node_args=new_node(0))
        try:
            for number in range(1, n_nodes):
                cluster.add_node(**new_node(number))
            ray.init(address=cluster.address, logging_level=logging.ERROR, log_to_driver=False)
            yield cluster
        finally:
            ray.shutdown()
            cluster.shutdown()
