"""A Ray cluster of two nodes with a core each, in a process of its own, which loses nodes when it is told to.

Run as a script, it prints the address of the cluster, then does what comes on standard input, and ends with it:
"lose" kills the second node, "add" adds one, "behead" kills the head's server.
"""

import contextlib
import os
import subprocess
import sys

ONE_CORE = {"num_cpus": 1, "object_store_memory": 100_000_000}


@contextlib.contextmanager
def cluster():
    """Yield the address of a cluster, and a function that does what the script can do."""
    command = [sys.executable, __file__]
    environment = os.environ | {"RAY_USAGE_STATS_ENABLED": "0"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, env=environment, **pipes) as process:

        def tell(what):
            print(what, file=process.stdin, flush=True)
            return process.stdout.readline().strip()

        yield tell("address"), tell


def main():
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args=ONE_CORE | {"include_dashboard": False})
    nodes = [made.add_node(**ONE_CORE)]
    for line in sys.stdin:
        match line.strip():
            case "lose":
                made.remove_node(nodes.pop(), allow_graceful=False)
            case "add":
                nodes.append(made.add_node(**ONE_CORE))
            case "behead":
                made.head_node.kill_gcs_server()
        print(made.address, flush=True)
    made.shutdown()


if __name__ == "__main__":
    main()
