"""What a directory knows of its run, kept so that a run which is killed at any moment can go on from there."""

import hashlib
import importlib
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from explorax import datasets, record
from explorax.errors import InvalidArgument
from explorax.experiments.study import Study
from explorax.record import Result
from explorax.runner.tasks import Task, expand
from explorax.runner.worker import Outcome

SOURCE = Path(__file__).parents[1]
# What decides no outcome:
NO_NUMBERS = ("runner", "experiments", "arena", "bench", "cli", "__main__", "plot", "report", "summarize")


class Journal:
    """What the directory knows of the run: its manifest, and a part for each finished task."""

    def __init__(self, study: Study, out: Path, together: bool, command: str):
        self.study, self.out, self.together = study, out, together
        record.check_same_settings(out, study.settings())
        before = record.read_manifest(out) if (out / record.MANIFEST).exists() else None
        self.maker = maker(study, together)  # now: the source files may be edited while the run goes on
        if before is not None:
            check_same_maker(out, before, self.maker)
        for leftover in (out / record.PARTS).glob(".*.tmp"):  # of a run that was killed while it wrote
            leftover.unlink(missing_ok=True)
        self.tasks = expand(study, together)
        found = record.read_parts(out / record.PARTS)
        self.warnings = found.warnings
        self.todo = [task for task in self.tasks if task.digest not in found.tasks]
        self.command = before["command"] if before else command
        self.started = datetime.fromisoformat(before["started"]) if before else datetime.now(UTC)
        self.spent = (before["duration_seconds"] or 0.0) if before else 0.0
        self.began = time.monotonic()
        self.done = len(self.tasks) - len(self.todo)
        if self.todo or before is None or before["status"] != "finished":
            self.write("running")

    def keep(self, task: Task, outcome: Outcome) -> None:
        """Write the part of a finished task."""
        environment, share = self.study.environment, outcome.seconds / len(task.curves)
        results = [
            Result(curve.label, curve.policy, curve.design, environment, task.panel.label, records, share)
            for curve, records in zip(task.curves, outcome.records, strict=True)
        ]
        path, metadata = self.out / record.PARTS / task.filename, {"seconds_per_decision": outcome.pace}
        record.write_part(path, results, task=task.digest, metadata=metadata)
        self.done += 1
        self.write("running")

    def finish(self) -> None:
        """Write that all is done, unless that is known."""
        if record.read_manifest(self.out)["status"] != "finished":
            self.write("finished")

    def write(self, status: str) -> None:
        """Write the manifest; its duration is the time spent running, without the pauses between resumed runs."""
        content = record.manifest(
            self.study.settings(),
            seed=self.study.seed,
            started=self.started,
            finished=datetime.now(UTC) if status == "finished" else None,
            seconds=self.spent + time.monotonic() - self.began,
            device=None if self.together else "cpu",
            command=self.command,
        )
        content |= {"status": status, "tasks": {"done": self.done, "all": len(self.tasks)}}
        record.write_manifest(self.out, content | {"maker": self.maker})


def maker(study: Study, together: bool) -> dict[str, Any]:
    """What else decides the records, beside the settings: a run can only be continued by the same."""
    sources_of_data = [study.environment_arguments(panel).get("data") for panel in study.panels]
    data = {str(source): found for source in sources_of_data if (found := datasets.digest(source)) is not None}
    sources = hashlib.sha256()
    for path in sorted(SOURCE.rglob("*.py")):
        inside = path.relative_to(SOURCE)
        if inside.parts[0].removesuffix(".py") not in NO_NUMBERS:
            sources.update(f"{inside.as_posix()}\n".encode() + path.read_bytes())
    versions = {"code": sources.hexdigest()[:16], "jax": importlib.import_module("jax").__version__}
    return versions | {"together": together} | ({"data": data} if data else {})


def check_same_maker(out: Path, manifest: dict[str, Any], now: dict[str, Any]) -> None:
    """Raise if a directory holds a run of other code, another JAX, other data or another kind of device."""
    there = manifest.get("maker", {})
    differ = [f"{name} is {there.get(name)!r} there, {now[name]!r} now" for name in now if there.get(name) != now[name]]
    if differ:
        raise InvalidArgument(
            f"{out} holds a run of other software, other data or another kind of device ({'; '.join(differ)}; `code` "
            "is a digest of explorax's source files, `together` whether a GPU ran it, `data` digests of your files): "
            "choose another directory with --out, or delete this one"
        )
