"""Tasks are shared out so that programs stay together, and no worker waits or dies unnoticed."""

import contextlib
import io
import multiprocessing
import os
import tomllib
from collections import Counter, deque

import pytest

from explorax.errors import InvalidArgument
from explorax.experiments.settings import from_settings
from explorax.runner import RunFailed, pool, worker
from explorax.runner.progress import Lines
from explorax.runner.tasks import SHORT, expand
from tests.helpers import assert_same
from tests.runner.small import TASKS, study


def test_queues_keep_programs_together():
    tasks = expand(study(), False)
    for processes in (1, 2, 3, 4):
        queues = pool.share_out(tasks, processes)
        assert sorted(task.digest for queue in queues for task in queue) == sorted(task.digest for task in tasks)
        homes = Counter(program for queue in queues for program in {task.program for task in queue})
        assert set(homes.values()) == {1}
    assert [len(queue) for queue in pool.share_out(tasks, 2)] == [8, 8]
    assert len(pool.share_out(tasks, 50)) == TASKS


class FakePipe(list):
    send = list.append


def test_an_idle_worker_takes_from_the_longest_queue():
    tasks = expand(study(), False)
    queues = pool.share_out(tasks, 4)
    workers = [pool.Worker(number, None, FakePipe(), queue) for number, queue in enumerate(queues)]
    watcher = Lines(tasks, TASKS, io.StringIO())
    longest = max(queues, key=pool.total_cost)
    last, idle = longest[-1], workers[-1]
    idle.queue.clear()
    pool.assign(idle, workers, watcher)
    assert idle.task == last
    assert idle.pipe == [last]
    assert last not in longest
    for queue in queues:
        queue.clear()
    pool.assign(idle, workers, watcher)
    assert idle.task is None


def test_a_short_task_stays_with_the_worker_that_has_its_program():
    tasks = [task for task in expand(study(), False) if task.program == expand(study(), False)[0].program]
    busy, idle = (pool.Worker(number, None, FakePipe(), deque()) for number in range(2))
    watcher = Lines(tasks, TASKS, io.StringIO())
    busy.task, busy.queue = tasks[0], deque(tasks[1:])
    pool.assign(idle, [busy, idle], watcher)
    assert idle.task is None
    busy.queue = deque(task._replace(rounds=SHORT) for task in tasks[1:])
    pool.assign(idle, [busy, idle], watcher)
    assert idle.task == tasks[-1]._replace(rounds=SHORT)


def test_short_tasks_of_one_program_move_together():
    tasks = expand(study(), False)
    first = [task for task in tasks if task.program == tasks[0].program]
    others = [task for task in tasks if task.program == tasks[-1].program]
    assert len(others) > 1
    busy, idle = (pool.Worker(number, None, FakePipe(), deque()) for number in range(2))
    watcher = Lines(tasks, TASKS, io.StringIO())
    busy.task, busy.queue = first[0], deque([*first[1:], *others])
    pool.assign(idle, [busy, idle], watcher)
    assert [idle.task, *idle.queue] == others[::-1]
    assert list(busy.queue) == first[1:]


def test_failures_in_a_worker_become_errors():
    tasks = expand(study(), False)
    player = worker.Player(study())
    failure = player.attempt(tasks[0]._replace(rounds=0), lambda rounds: None)
    assert failure.wrong_input
    assert "rounds must be a whole number of at least 1, got 0" in failure.text
    unknown = tasks[0].panel._replace(label="unknown")
    broken = player.attempt(tasks[0]._replace(panel=unknown), lambda rounds: None)
    assert not broken.wrong_input
    assert "KeyError: ('Uniform', 'unknown')" in broken.text
    for message, kind in ((failure, InvalidArgument), (broken, RunFailed)):
        ours, theirs = multiprocessing.Pipe()
        theirs.send(message)
        one = pool.Worker(0, None, ours, None, tasks[0])
        with pytest.raises(kind, match=r"Uniform, d = 2, instances 0 to 49:\s"):
            pool.listen(one, [one], None)
        ours.close()
        theirs.close()


def test_environment_variables_are_put_back(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--mine")
    monkeypatch.delenv("NPROC", raising=False)
    with pool.environment({"XLA_FLAGS": "--theirs", "NPROC": "1"}):
        assert os.environ["NPROC"] == "1"
    assert os.environ["XLA_FLAGS"] == "--mine"
    assert "NPROC" not in os.environ


def heavy_study():
    settings = """
    name = "digits"
    environment = "classification"
    environment_settings = { data = "digits" }
    rounds = 30
    instances = 50
    checkpoints = 3
    curves = [
        { policy = "deep_fl", settings = { hidden = [4] } },
        { policy = "rep_glm_fpl", label = "short", settings = { hidden = [4], horizon = 30, percent = 10.0 } },
        { policy = "rep_glm_fpl", label = "long", settings = { hidden = [4], horizon = 30, percent = 50.0 } },
    ]
    """
    return from_settings(tomllib.loads(settings))


class Keeper:
    """A watcher that keeps the outcomes of tasks by digest."""

    def __init__(self):
        self.outcomes = {}

    def started(self, worker, task):
        pass

    def advanced(self, worker, task, rounds):
        pass

    def finished(self, worker, task, outcome):
        self.outcomes[task.digest] = outcome


def test_programs_are_compiled_while_another_batch_plays_on_a_device_that_holds_one(monkeypatch):
    study = heavy_study()
    tasks, keeper, prepared = expand(study, True), Keeper(), []
    prepare = worker.Player.prepare

    def noted(self, task, curve):
        prepared.append((task.digest, curve.label))
        return prepare(self, task, curve)

    monkeypatch.setattr(worker.Player, "prepare", noted)
    pool.run_here(study, tasks, keeper)
    assert sorted(prepared) == sorted((task.digest, curve.label) for task in tasks for curve in task.curves)
    assert len(tasks) == 2
    for task in tasks:
        alone = worker.Player(study).play(task, lambda rounds: None)
        for found, expected in zip(keeper.outcomes[task.digest].records, alone.records, strict=True):
            assert_same(found, expected)
        assert keeper.outcomes[task.digest].seconds >= keeper.outcomes[task.digest].compiling > 0


def test_an_error_while_compiling_ahead_is_that_of_the_run(monkeypatch):
    study = heavy_study()

    def fail(self, task, curve):
        raise InvalidArgument("hidden must be smaller.")

    monkeypatch.setattr(worker.Player, "prepare", fail)
    with pytest.raises(InvalidArgument, match="hidden must be smaller"):
        pool.run_here(study, expand(study, True), Keeper())


def test_a_worker_whose_start_is_interrupted_is_ended(monkeypatch):
    @contextlib.contextmanager
    def interrupted():
        yield
        raise KeyboardInterrupt

    monkeypatch.setattr(pool, "undisturbed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pool.run_spread(study(), expand(study(), False), 2, None)
    assert multiprocessing.active_children() == []
