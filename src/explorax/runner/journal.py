"""The journal of a directory: its finished tasks and its manifest, from which a killed run can continue at any moment.

Only one run at a time may use a directory, which `lock.py` sees to.
"""

import contextlib
import importlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from explorax import datasets, parts, record
from explorax.errors import CannotRead, InvalidArgument
from explorax.experiments.study import Study
from explorax.files import remove_leftovers
from explorax.parts import Finished
from explorax.places import Place, place
from explorax.record import Result
from explorax.runner.lock import locked
from explorax.runner.rungs import Plan
from explorax.runner.tasks import Task
from explorax.runner.worker import Outcome
from explorax.software import source_digest

# Modules that have no influence on records:
NO_NUMBERS = (
    "files",
    "places",
    "runner",
    "experiments",
    "arena",
    "bench",
    "cli",
    "__main__",
    "looks",
    "plot",
    "report",
    "remote",
    "software",
    "summarize",
    "claims",
    "text",
)


def check_directory(out: Place) -> None:
    """Raise `InvalidArgument` if a file is in the way of a directory."""
    for path in (out, *out.parents):
        if path.exists() and not path.is_dir():
            raise InvalidArgument(
                f"out must be a directory, got {str(out)!r}: {str(path)!r} is a file. Choose another directory."
            )


def check_unwritten(out: Place, names: Sequence[str]) -> None:
    """Raise `InvalidArgument` if a directory has a file of one of these names."""
    there = {path.name for path in out.glob("*")}
    foreign = [name for name in names if name in there]
    if foreign:
        raise InvalidArgument(
            f"{out} holds {', '.join(foreign)}, which no run has written and this run would overwrite. "
            "Choose another directory with --out, or move these files away."
        )


def check_free(out: Place, names: Sequence[str]) -> None:
    """Raise `InvalidArgument` if a run would overwrite files of these names that no run has written."""
    check_directory(out)
    if not (out / record.MANIFEST).exists() and not any((out / record.PARTS).glob("*.parquet")):
        check_unwritten(out, names)


class Journal:
    """The journal of a run: the manifest of its directory, and a part for each finished task.

    Args:
        study: The study.
        out: The directory.
        together: Whether a task is all instances of all curves of a policy, as on a GPU.
        command: The command line, for the manifest.
        check: A function that raises `RunFailed` if the directory is another run's by now.
        device: What computes, for the manifest. Default: "cpu".
    """

    def __init__(
        self,
        study: Study,
        out: Place,
        together: bool,
        command: str,
        check: Callable[[], None],
        device: str | None = "cpu",
    ):
        self.study, self.out, self.check, self.device = study, out, check, device
        self.maker = maker(study, together)  # now: the source files may be edited while the run goes on
        found = Finished({}, [])
        self.plan = Plan(study, together, parts.each_finished(out / record.PARTS, found))
        self.warnings = list(found.warnings)
        before = self.before(found)
        for directory in (out, out / record.PARTS):
            remove_leftovers(directory)
        self.command = before["command"] if before else command
        self.started = datetime.fromisoformat(before["started"]) if before else datetime.now(UTC)
        self.spent = (before["duration_seconds"] or 0.0) if before else 0.0
        self.began = time.monotonic()
        self.finished = not self.plan.todo and before is not None and before["status"] == "finished"
        if not self.finished:
            self.write("running")

    def before(self, found: Finished) -> dict[str, Any] | None:
        """Return the manifest of the run to continue.

        Args:
            found: The parts in the directory.

        Returns:
            The manifest; None for a new run, and for a run of which only the parts can be used.

        Raises:
            InvalidArgument: If the directory holds another run, or files that cannot be used.
        """
        path = self.out / record.MANIFEST
        try:
            manifest = read_manifest(self.out) if path.exists() else None
        except InvalidArgument as error:
            if not found.tasks:
                raise InvalidArgument(
                    f"{path} is damaged or belongs to another program, and there are no finished parts. "
                    "Choose another directory with --out, or delete this file."
                ) from error
            manifest = None
        if manifest is not None:
            check_same_settings(self.out, manifest, self.study.settings())
            check_same_maker(self.out, manifest, self.maker)
        elif found.tasks:
            self.check_parts(found)
            self.warnings.append(
                f"{path} was missing or damaged and is written anew. Its times are those of this run alone."
            )
        return manifest

    def check_parts(self, found: Finished) -> None:
        """Raise `InvalidArgument` unless all parts belong to this study and were made by the same software."""
        made_by = record.settings_digest(self.maker)
        ours = [
            task in self.plan.digests and metadata.get("maker") == made_by for task, metadata in found.tasks.items()
        ]
        if not all(ours):
            raise InvalidArgument(
                f"{self.out} has no readable {record.MANIFEST}, and {ours.count(False)} of {len(ours)} parts are of "
                "other settings, data or software. Choose another directory with --out, or delete this one."
            )

    def keep(self, task: Task, outcome: Outcome) -> None:
        """Write the records of a finished task, and count it in the manifest."""
        environment, count = self.study.environment, len(task.curves)
        times = outcome.seconds / count, None if outcome.compiling is None else outcome.compiling / count
        results = [
            Result(curve.label, curve.policy, curve.design, environment, task.panel.label, records, *times)
            for curve, records in zip(task.curves, outcome.records, strict=True)
        ]
        path = self.out / record.PARTS / task.filename
        metadata = {"seconds_per_decision": outcome.pace, "maker": record.settings_digest(self.maker)}
        parts.write_part(path, results, task=task.digest, metadata=metadata)
        self.plan.note(task.digest, results)
        self.write("running")

    def finish(self) -> None:
        """Mark the run as finished in the manifest."""
        if not self.finished:
            self.write("finished")

    def write(self, status: str) -> None:
        """Write the manifest, whose duration leaves out the pauses between resumed runs."""
        self.check()
        content = record.manifest(
            self.study.settings(),
            seed=self.study.seed,
            started=self.started,
            finished=datetime.now(UTC) if status == "finished" else None,
            seconds=self.spent + time.monotonic() - self.began,
            device=self.device,
            command=self.command,
        )
        content |= {"status": status, "tasks": {"done": self.plan.done, "all": self.plan.all}}
        record.write_manifest(self.out, content | {"maker": self.maker})


@contextlib.contextmanager
def opened(study: Study, out: Place, together: bool, command: str, device: str | None = "cpu") -> Iterator[Journal]:
    """Open the journal of a directory for one run, and mark the run as finished at the end of this context."""
    check_directory(out)
    with locked(out) as check:
        journal = Journal(study, out, together, command, check, device)
        yield journal
        journal.finish()


def read_manifest(out: Place) -> dict[str, Any]:
    """Read the manifest of a run; raise `InvalidArgument` if it is missing or cannot be used."""
    return record.read_manifest(out, ENTRIES)


def kept(out: Place | str) -> str:
    """Return sentences about what is kept of a run that was stopped, and how to continue it."""
    again = "Run the same command again"
    try:
        tasks = read_manifest(place(out))["tasks"]
    except (InvalidArgument, CannotRead) as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return f"Nothing was finished yet. {again}."
        return f"What was finished is kept in {out}. {again} to continue."
    return f"{tasks['done']} of {tasks['all']} tasks are kept in {out}. {again} to continue."


def _are_counts(tasks: Any) -> bool:
    counts = [tasks.get(name) for name in ("done", "all")] if isinstance(tasks, dict) else [None]
    return all(type(count) is int and count >= 0 for count in counts)


ENTRIES = record.ENTRIES | {
    "status": lambda value: isinstance(value, str),
    "tasks": _are_counts,
    "maker": lambda value: isinstance(value, dict) and isinstance(value.get("together"), bool),
}


def maker(study: Study, together: bool) -> dict[str, Any]:
    """Return what else decides the records, in addition to the settings: code, JAX, data and kind of device."""
    given = [study.environment_arguments(panel) for panel in study.panels]
    tables = [one["data"] for one in given if "data" in one]
    data = {str(table): found for table in tables if (found := datasets.digest(table)) is not None}
    versions = {"code": source_digest(NO_NUMBERS), "jax": importlib.import_module("jax").__version__}
    return versions | {"together": together} | ({"data": data} if data else {})


def check_same_settings(out: Place, manifest: Mapping[str, Any], settings: Mapping[str, object]) -> None:
    """Raise `InvalidArgument` if a directory holds a run with other settings."""
    there, here = _leaves(manifest["settings"]), _leaves(record.plain(settings))
    both = {name: (there.get(name, "absent"), here.get(name, "absent")) for name in {**there, **here}}
    differ = [f"{name} is {old} there, {new} now" for name, (old, new) in both.items() if old != new]
    if differ:
        listed = "; ".join(differ[:6]) + (f"; and {len(differ) - 6} more" if len(differ) > 6 else "")
        raise InvalidArgument(
            f"{out} holds a run with other settings: {listed}. Choose another directory with --out, or delete this one."
        )


def _leaves(tree: Any, name: str = "") -> dict[str, str]:
    """Flatten nested settings into {"curves[0].policy": "'glm_tsl'", …}."""
    if isinstance(tree, dict) and tree:
        inner = ((f"{name}.{key}" if name else key, value) for key, value in tree.items())
    elif isinstance(tree, list) and tree and any(isinstance(item, dict) for item in tree):
        inner = ((f"{name}[{index}]", value) for index, value in enumerate(tree))
    else:
        return {name: repr(tree)}
    return {leaf: value for key, branch in inner for leaf, value in _leaves(branch, key).items()}


def check_same_maker(out: Place, manifest: dict[str, Any], now: dict[str, Any]) -> None:
    """Raise `InvalidArgument` if a directory holds a run of other code, JAX, data or kind of device."""
    there = manifest.get("maker", {})
    differ = [f"{name} is {there.get(name)!r} there, {now[name]!r} now" for name in now if there.get(name) != now[name]]
    if differ:
        raise InvalidArgument(
            f"{out} holds a run of other software, other data or another kind of device: {'; '.join(differ)}. "
            "(code is a digest of explorax's source files, together tells whether a GPU ran it, and data has digests "
            "of your files.) Choose another directory with --out, or delete this one."
        )
