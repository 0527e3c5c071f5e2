"""What workers of a cluster tell, and what is told when there are none; runs on real nodes are in test_ray.py."""

import io
from types import SimpleNamespace

import pytest

from explorax.errors import InvalidArgument
from explorax.remote import Station
from explorax.runner import RunFailed, ray_crew
from explorax.runner.progress import Lines
from explorax.runner.ray_crew import FIRST_NOTE, Shortage, check_software, reason
from explorax.software import software

DIED = """The actor died unexpectedly before finishing this task.
\tclass_name: Remote
\tactor_id: 36e497340051c9d149ca808601000000
\tpid: 16113
The actor is dead because its worker process has died. Worker exit type: OOM. It used 3 GiB. Some causes: (1), (2).
"""


def test_the_reason_of_an_end_is_what_ray_says_last():
    expected = "The actor is dead because its worker process has died. Worker exit type: OOM. It used 3 GiB."
    assert reason(Exception(DIED)) == expected
    assert reason(Exception("Out of memory")) == "Out of memory."


def test_a_worker_must_have_the_same_software():
    ours = software()
    check_software(Station("n", "a", (), ours))
    other = Station("n", "node-7", (), ours._replace(explorax="0.2.0", python="3.9"))
    said = rf"on node-7 explorax is 0\.2\.0 there and {ours.explorax} here and python is 3\.9 there"
    with pytest.raises(InvalidArgument, match=said):
        check_software(other)


def test_a_shortage_is_told_once_and_ends_the_run_when_it_lasts(monkeypatch):
    clock, stream = SimpleNamespace(now=0.0), io.StringIO()
    monkeypatch.setattr(ray_crew.time, "monotonic", lambda: clock.now)
    screen = Lines([], 0, stream)
    shortage = Shortage(300.0)
    for clock.now in (FIRST_NOTE, FIRST_NOTE + 1, 299.0):
        shortage.goes_on(lambda: "a worker needs a core", screen)
    assert stream.getvalue() == "Waiting for a worker to start, for at most 5 min: a worker needs a core.\n"
    shortage.over()
    clock.now += 299.0
    shortage.goes_on(lambda: "a worker needs two", screen)
    assert stream.getvalue().count("\n") == 2
    clock.now += 2.0
    with pytest.raises(RunFailed, match=r"No worker has started in 5 min( 1 s)?: a worker needs two\. Stop what"):
        shortage.goes_on(lambda: "a worker needs two", screen)
