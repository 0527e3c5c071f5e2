"""One run at a time uses a directory, also where the system has no locks."""

import errno
import fcntl
import io
import json
import platform

import pytest

from explorax.errors import InvalidArgument, RunFailed
from explorax.places import place
from explorax.runner import Keeper
from explorax.runner.journal import Journal
from explorax.runner.lock import LEASE, Lease, leased, locked, this_process
from explorax.runner.progress import Lines
from tests.runner.kept import STUDY, TASKS, keep, manifest
from tests.runner.processes import wait_until

NOW = 1000.0


@pytest.fixture(params=["on a store", "in a directory"])
def out(request, tmp_path):
    """A place without locks of the system."""
    if request.param == "in a directory":
        return tmp_path / "new"
    return place(request.getfixturevalue("bucket")(tmp_path.name))


def lease(out, host="a", term=1e6, process=12):
    return Lease(out, this_process()._replace(host=host, term=term, process=process))


def test_a_lease_that_was_renewed_in_time_keeps_others_out(out):
    one, other = lease(out), lease(out, "b")
    one.take(NOW)
    with pytest.raises(InvalidArgument, match=r"in use by process 12 on a, whose lease ends in \d+ seconds .* Wait"):
        other.take(NOW + 2e6)  # whatever the clock of that machine
    other.release()
    one.renew(NOW)
    assert [path.name for path in out.glob("*")] == [LEASE]
    one.release()
    other.take(NOW)
    assert other.found() == other.holder


def test_a_lease_past_its_term_is_taken_over_and_the_run_that_had_it_stops(out):
    one, other = lease(out, term=-1.0), lease(out, "b")
    one.take(NOW)
    other.take(NOW)
    for _ in range(2):
        with pytest.raises(RunFailed, match=r"in use by process 12 on b, which has taken it over"):
            one.renew(NOW)
    with pytest.raises(RunFailed, match="Let one run go on alone"):
        one.check(NOW)
    one.release()
    assert other.found() == other.holder
    other.path.unlink()
    with pytest.raises(RunFailed, match="has no lease any more"):
        other.renew(NOW)


def test_a_lease_is_looked_at_only_when_it_may_be_lost(out):
    one, other = lease(out, term=100.0), lease(out, "b")
    one.take(NOW)
    other.write(NOW)
    one.check(NOW + 49)
    with pytest.raises(RunFailed, match="on b"):
        one.check(NOW + 51)


@pytest.mark.parametrize("content", [b"", b"{", b"3", b'{"token": 1}'])
def test_a_lease_that_cannot_be_read_is_somebodys(tmp_path, content):
    (tmp_path / LEASE).write_bytes(content)
    with pytest.raises(InvalidArgument, match="in use by an unknown process, whose lease ends in"):
        lease(tmp_path).take(NOW)


def test_two_that_start_at_once_do_not_both_hold_the_lease(tmp_path, monkeypatch):
    one, other = lease(tmp_path), lease(tmp_path, "b")
    write = one.write

    def first(now):
        write(now)
        other.write(now)

    monkeypatch.setattr(one, "write", first)
    with pytest.raises(InvalidArgument, match="in use by process 12 on b, which started just now"):
        one.take(NOW)
    one.release()
    assert other.found() == other.holder


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_where_the_system_has_no_locks_there_is_a_lease(tmp_path, monkeypatch, code):
    def no_locks(descriptor, operation):
        raise OSError(code, "no locks")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with locked(tmp_path) as check:
        check()
        assert json.loads((tmp_path / LEASE).read_text())["host"] == platform.node()
        with pytest.raises(InvalidArgument, match=rf"on {platform.node()}, whose lease ends in"), locked(tmp_path):
            pass
    assert not (tmp_path / LEASE).exists()


def test_a_thread_renews_the_lease_and_notices_that_it_is_lost(tmp_path):
    one, other = lease(tmp_path, term=0.2), lease(tmp_path, "b")

    def lost():
        other.write(NOW)
        return one.lost

    with leased(one) as check:
        first = one.path.read_bytes()
        wait_until(lambda: one.path.read_bytes() != first)
        wait_until(lost)
        with pytest.raises(RunFailed, match="in use by process 12 on b"):
            check()
    assert other.found() == other.holder


def test_a_run_without_its_lease_writes_no_manifest(quick_maker, tmp_path):
    one, other = lease(tmp_path), lease(tmp_path, "b")
    one.take(NOW)
    found = Journal(STUDY, tmp_path, False, "", lambda: one.renew(NOW))
    keep(found)
    other.write(NOW)
    with pytest.raises(RunFailed, match="on b"):
        Keeper(found, Lines([], 0, io.StringIO())).advanced(0, found.plan.todo[0], 1)
    with pytest.raises(RunFailed, match="on b"):
        keep(found, 1)
    assert manifest(tmp_path)["tasks"] == {"done": 1, "all": TASKS}
