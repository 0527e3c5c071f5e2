"""A small study to run, what its directory holds, and a stream that interferes."""

import io
import json
import tomllib

import pyarrow.parquet as pq

from explorax import record
from explorax.experiments.settings import from_settings

SETTINGS = """
name = "small"
environment = "logistic"
dims = [2, 3]
rounds = 80
instances = 200
checkpoints = 8
environment_settings = { n_arms = 6 }
curves = [{ policy = "uniform" }, { policy = "lin_ts" }]
"""
TASKS = 16  # 2 dimensions, 2 curves, 4 blocks of instances
THREE = [{"policy": "uniform"}, {"policy": "lin_ts"}, {"policy": "lin_ts", "design": "theory"}]


def study(**changes):
    return from_settings(tomllib.loads(SETTINGS) | changes)


def rows(out):
    """All that is recorded, but for the time it took."""
    return pq.read_table(out / "regret.parquet").replace_schema_metadata(None)


def parts(out):
    return {path.name: path.stat().st_mtime_ns for path in (out / record.PARTS).glob("*.parquet")}


def manifest(out):
    return json.loads((out / record.MANIFEST).read_text())


class Hook(io.StringIO):
    """A stream that does something when the n-th task is reported as finished."""

    def __init__(self, after, action):
        super().__init__()
        self.after, self.action = after, action

    def write(self, text):
        if text.startswith(f"[{self.after}/"):
            self.action()
        return super().write(text)
