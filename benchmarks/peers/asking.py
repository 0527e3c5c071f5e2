"""Libraries in environments of their own, asked to play tasks."""

import json
import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from common import Task
from environments import python_of

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
Answer = dict[str, Any]
Work = tuple[str, Task]  # a library, and what it is to play


class Library:
    """The process of an adapter; it lives from the first task to the last, so that what it compiles stays compiled."""

    def __init__(self, python: Path, adapter: Path, log: Path) -> None:
        self.name, self.log = adapter.stem.removesuffix("_adapter"), log
        with log.open("a") as errors:
            self.process = subprocess.Popen(
                [python, adapter],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=os.environ | ONE_THREAD,
            )

    def play(self, task: Task) -> Answer:
        """Plays the task and answers what came of it."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            print(json.dumps(task._asdict()), file=self.process.stdin, flush=True)
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise SystemExit(f"{self.name} failed at {task}:\n{self.log.read_text()[-2000:]}")
        answer: Answer = json.loads(line)
        return answer

    def __enter__(self) -> "Library":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()  # closes its input, after which it ends


def play_all(
    works: list[Work], cores: list[int], environments: Path, logs: Path, done: Callable[[str, Task, Answer], None]
) -> None:
    """Lets each core do one piece of work after the other, in this order; a core has processes of its own."""
    waiting = deque(works)

    def on(core: int) -> None:
        os.sched_setaffinity(0, {core})  # of this thread, and of the processes that it starts
        libraries: dict[str, Library] = {}
        with ExitStack() as processes:
            while True:
                try:
                    name, task = waiting.popleft()
                except IndexError:
                    return
                if name not in libraries:
                    python = Path(sys.executable) if name == "explorax" else python_of(environments, name)
                    adapter = Path(__file__).with_name(f"{name}_adapter.py")
                    libraries[name] = processes.enter_context(Library(python, adapter, logs / f"{name}.log"))
                try:
                    done(name, task, libraries[name].play(task))
                except BaseException:
                    waiting.clear()  # the others stop too
                    raise

    with ThreadPoolExecutor(len(cores)) as threads:
        list(threads.map(on, cores))
