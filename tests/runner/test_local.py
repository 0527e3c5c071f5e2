"""Worker processes: their number and memory, and the environment that they start with."""

import contextlib
import multiprocessing
import os

import pytest

from explorax.errors import InvalidArgument
from explorax.runner import local
from explorax.runner.local import check_memory, environment, local_processes, usable_cores
from explorax.runner.tasks import Size, largest
from tests.runner.small import study


def test_environment_variables_are_put_back(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--mine")
    monkeypatch.delenv("NPROC", raising=False)
    with environment({"XLA_FLAGS": "--theirs", "NPROC": "1"}):
        assert os.environ["NPROC"] == "1"
    assert os.environ["XLA_FLAGS"] == "--mine"
    assert "NPROC" not in os.environ


def test_the_number_of_processes():
    assert local_processes().count == usable_cores()
    assert local_processes(3).where(16) == "on 3 processes"
    assert local_processes(3).where(1) == "on 1 process"
    with pytest.raises(InvalidArgument, match="processes must be a whole number of at least 1, got 0"):
        local_processes(0)


def test_arms_that_do_not_fit_into_memory_are_refused():
    assert largest(study()) == Size(6, 3)
    assert Size(6, 3).memory == 50 * 6 * 3 * 4
    with pytest.raises(InvalidArgument, match=r"for 50 instances .*got 10{12} times 2, which takes 372529 GiB of 16\."):
        check_memory(Size(10**12, 2), 16 * 2**30)
    check_memory(Size(100, 20), 16 * 2**30)


def test_a_worker_whose_start_is_interrupted_is_ended(monkeypatch):
    @contextlib.contextmanager
    def interrupted():
        yield
        raise KeyboardInterrupt

    monkeypatch.setattr(local, "undisturbed", interrupted)
    with pytest.raises(KeyboardInterrupt), local_processes(2).crew(study(), 2):
        pass
    assert multiprocessing.active_children() == []
