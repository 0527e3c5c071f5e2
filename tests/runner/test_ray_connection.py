"""The head node of a cluster: asked now and then, and given time; runs on real nodes are in test_ray.py."""

import socket
from types import SimpleNamespace

import pytest

from explorax.runner import RunFailed, ray_connection
from explorax.runner.ray_connection import HEAD_PATIENCE, Head


def a_head(monkeypatch, server, client=False):
    """A head node at the address of a server, at a time that the test sets."""
    host, port = server.getsockname()
    ray = SimpleNamespace(
        util=SimpleNamespace(client=SimpleNamespace(ray=SimpleNamespace(is_connected=lambda: client))),
        get_runtime_context=lambda: SimpleNamespace(gcs_address=f"{host}:{port}"),
    )
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(ray_connection.time, "monotonic", lambda: clock.now)
    return Head(ray), clock


def test_a_head_node_that_does_not_answer_is_given_time(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        head, clock = a_head(monkeypatch, server)
        assert head.answers()
        assert not head.is_due()
        clock.now += 60
        assert head.is_due()
        assert head.answers()
    clock.now += HEAD_PATIENCE / 2
    assert not head.answers()
    clock.now += HEAD_PATIENCE
    with pytest.raises(RunFailed, match=r"does not answer \(.*refused\)\. Start the cluster again"):
        head.answers()


def test_a_client_notices_by_itself(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        head, _ = a_head(monkeypatch, server, client=True)
    assert head.answers()
