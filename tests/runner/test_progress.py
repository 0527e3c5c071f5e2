"""What one sees while a run goes on."""

import io

from explorax.runner import worker
from explorax.runner.progress import display
from explorax.runner.tasks import expand
from tests.runner.small import TASKS, study


def test_the_live_display():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    tasks = expand(study(), False)
    stream = Terminal()
    with display(tasks[1:], TASKS, stream) as shown:
        shown.started(0, tasks[1])
        shown.started(1, tasks[2])
        shown.advanced(0, tasks[1], 40)
        shown.display.refresh()
        assert "Uniform, d = 2, instances 50 to 99" in stream.getvalue()
        assert "50%" in stream.getvalue()
        assert "rounds/s" in stream.getvalue()
        shown.finished(0, tasks[1], worker.Outcome([], 1.0))
        shown.display.refresh()
        assert "2 of 16 tasks, about" in stream.getvalue()
