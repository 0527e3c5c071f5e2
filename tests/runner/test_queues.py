"""Tasks are shared out so that programs stay together, and no worker waits while there is work to share."""

import io
from collections import Counter

import pytest

from explorax.errors import InvalidArgument, RunFailed
from explorax.runner import worker
from explorax.runner.progress import Lines
from explorax.runner.queues import Queue, Seat, share_out, total_cost
from explorax.runner.tasks import SHORT, expand
from tests.runner.small import TASKS, study

BLOCK = 50  # instances of a task


def seats(count, tasks=()):
    found = [Seat(number) for number in range(count)]
    share_out(tasks, found)
    return found


def of_program(number, plays=None):
    """The four tasks of one program, each with so many plays."""
    tasks = expand(study(), False)
    program = sorted({task.program for task in tasks})[number]
    found = [task for task in tasks if task.program == program]
    return found if plays is None else [task._replace(rounds=plays // BLOCK) for task in found]


def test_queues_keep_programs_together():
    tasks = expand(study(), False)
    for count in (1, 2, 3, 4):
        queues = [list(seat.queue.tasks) for seat in seats(count, tasks)]
        assert sorted(task.digest for queue in queues for task in queue) == sorted(task.digest for task in tasks)
        homes = Counter(program for queue in queues for program in {task.program for task in queue})
        assert set(homes.values()) == {1}
    assert [len(seat.queue) for seat in seats(2, tasks)] == [8, 8]


def test_the_cost_of_a_queue_is_that_of_its_tasks():
    first, *others, last = of_program(0)
    queue = Queue([first, *others, last])
    assert queue.last() == last
    assert queue.first() == first
    queue.push(first)
    assert list(queue.tasks) == [first, *others]
    assert queue.cost == pytest.approx(total_cost([first, *others]))
    for _ in (first, *others):
        queue.first()
    assert (len(queue), queue.cost) == (0, 0.0)


def test_an_idle_worker_takes_from_the_longest_queue():
    long = of_program(0, SHORT + BLOCK)
    busy, idle = seats(2)
    busy.queue.extend(long)
    assert idle.take([busy, idle]) == idle.task == long[-1]
    assert list(busy.queue.tasks) == long[:-1]
    assert not idle.queue
    nobody = seats(1)
    assert nobody[0].take(nobody) is None


def test_what_takes_less_than_compiling_stays_with_the_worker_that_has_the_program():
    busy, idle = seats(2)
    first, *others = of_program(0, SHORT // 3)
    busy.task = first
    busy.queue.extend(others)
    assert idle.take([busy, idle]) is None
    more = of_program(0, SHORT // 2)  # together they take longer than compiling
    busy.queue = Queue(more)
    assert idle.take([busy, idle]) == more[-1]
    assert list(idle.queue.tasks) == [more[-2], more[-3]]  # as much as is worth compiling for
    assert list(busy.queue.tasks) == more[:1]


def test_short_tasks_of_a_program_that_nobody_has_move_together():
    busy, idle = seats(2)
    mine, theirs = of_program(0), of_program(1)
    busy.task = mine[0]
    busy.queue.extend([*mine[1:], *theirs])
    assert idle.take([busy, idle]) == theirs[-1]
    assert list(idle.queue.tasks) == theirs[-2::-1]
    assert list(busy.queue.tasks) == mine[1:]


def test_messages_about_a_task():
    tasks = expand(study(), False)
    watcher = Lines(tasks, TASKS, io.StringIO())
    (seat,) = seats(1, tasks)
    task = seat.take([seat])
    watcher.started(0, task)
    seat.hear(40, watcher)
    assert watcher.total_paid == task.cost / 2
    assert seat.task == task
    player = worker.Player(study())
    failure = player.attempt(task._replace(rounds=0), lambda rounds: None)
    assert "rounds must be a whole number of at least 1, got 0" in failure.text
    broken = player.attempt(task._replace(panel=task.panel._replace(label="unknown")), lambda rounds: None)
    assert "KeyError: ('Uniform', 'unknown')" in broken.text
    for message, kind in ((failure, InvalidArgument), (broken, RunFailed)):
        with pytest.raises(kind, match=rf"{task}:\s"):
            seat.hear(message, watcher)
    seat.hear(worker.Outcome([], 1.0), watcher)
    assert seat.task is None
    assert watcher.done == 1
