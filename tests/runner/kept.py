"""A study of two tasks, and the directory that keeps them."""

import json

from explorax import record
from explorax.experiments.settings import from_settings
from explorax.runner import Outcome
from explorax.runner.journal import Journal
from tests import fabricate

STUDY = from_settings(
    {"environment": "logistic", "dims": [2], "rounds": 40, "checkpoints": 4, "instances": 60}
    | {"name": "kept", "curves": [{"policy": "uniform"}]}
)
TASKS = 2  # blocks of 50 and of 10 instances
MAKER = {"code": "0123", "jax": "1", "together": False}


def keep(one, number=0):
    """Let a task be finished."""
    task = one.plan.known[number]
    played = fabricate.records("sqrt", 5.0, rounds=40, checkpoints=4, instances=task.instances, first=task.first)
    one.keep(task, Outcome([played], 3.0, 1.0))


def opened(out, study=STUDY):
    return Journal(study, out, False, "explorax run kept.toml", lambda: None)


def manifest(out):
    return json.loads((out / record.MANIFEST).read_text())


def leave(out):
    """What killed processes leave, and a file that only looks like it."""
    left = [out / ".manifest.json.123.456.tmp", out / record.PARTS / ".a.parquet.1.2.tmp"]
    for path in (*left, out / ".mine.tmp"):
        path.write_bytes(b"half")
    return left


def damage(out, content):
    if isinstance(content, dict):
        content = json.dumps(manifest(out) | content)
    (out / record.MANIFEST).write_bytes(content if isinstance(content, bytes) else content.encode())
