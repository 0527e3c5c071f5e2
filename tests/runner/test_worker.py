"""A worker explains what goes wrong, says how far it is, and ends with its parent."""

import os
import subprocess
import sys
import time

from explorax.runner import worker
from explorax.runner.tasks import expand
from tests.runner.processes import alive, wait_until
from tests.runner.small import study


def test_a_process_that_watches_its_parent_ends_with_it():
    code = """if True:
        import multiprocessing, time
        from explorax.runner.worker import end_with_parent
        child = multiprocessing.get_context("spawn").Process(target=end_with_parent)
        child.start()
        print(child.pid, flush=True)
        time.sleep(600)
    """
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        child = int(parent.stdout.readline())
        wait_until(lambda: len(os.listdir(f"/proc/{child}/fd")) > 3)
        time.sleep(0.5)
        assert alive(child)
        parent.kill()
    wait_until(lambda: not alive(child))


class Raise:
    def __init__(self, error):
        self.error = error

    def __call__(self, *arguments):
        raise self.error


def test_memory_that_runs_out_is_explained(monkeypatch):
    tasks, player = expand(study(), False), worker.Player(study())
    for error in (MemoryError("17 GiB"), RuntimeError("INTERNAL: Out of memory allocating 17 bytes")):
        monkeypatch.setattr(player, "play", Raise(error))
        failure = player.attempt(tasks[0], lambda rounds: None)
        assert failure.text.startswith("Memory ran out (")
        assert "Traceback" not in failure.text


def test_progress_is_throttled():
    sent = []
    report = worker.throttled(sent.append)
    for rounds in range(1000):
        report(rounds)
    assert sent[0] == 0
    assert len(sent) < 1000
