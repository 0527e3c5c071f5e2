"""A Ray cluster of two nodes with a core each, in a process of its own, which loses nodes when it is told to.

Run as a script with a port for Ray's clients, it does what comes on standard input, and ends with it: "lose" kills the
second node, "add" adds one, "behead" kills the head's server.  Each time it prints the address of the cluster.
"""

import contextlib
import secrets
import socket
import subprocess
import sys
from typing import NamedTuple

ONE_CORE = {"num_cpus": 1, "object_store_memory": 100_000_000}


class Nodes(NamedTuple):
    """The nodes of a cluster."""

    process: subprocess.Popen
    port: int  # for clients

    @property
    def address(self):
        return self.tell("address")

    @property
    def client_address(self):
        return f"ray://127.0.0.1:{self.port}"

    def tell(self, what):
        print(what, file=self.process.stdin, flush=True)
        return self.process.stdout.readline().strip()


def environment():
    """The environment variables of nodes and drivers, which know a token that others do not."""
    secret = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    return secret | {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_AUTO_CONNECT": "0"}


@contextlib.contextmanager
def cluster():
    """Start a cluster with the environment variables of this process, until the end of this context."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([sys.executable, __file__, str(port)], text=True, **pipes) as process:
        yield Nodes(process, port)


def main():
    from ray.cluster_utils import Cluster

    head = ONE_CORE | {"include_dashboard": False, "ray_client_server_port": int(sys.argv[1])}
    made = Cluster(initialize_head=True, head_node_args=head)
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
