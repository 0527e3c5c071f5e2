"""The files of a run: regrets as Parquet, and a manifest that says how they were computed.

A simulation returns `Records`; together with the names of policy and environment they are a `Result`.  On disk a result
is a long table with one row for each (curve, panel, instance, round), see `COLUMNS`.

A long run writes a part for each finished task (`parts.py`) and merges the parts at the end:

    out/parts/*.parquet  --merge-->  out/regret.parquet                out/manifest.json: settings, versions, times

Every file appears whole or not at all (`files.py`) and has a digest of its contents, so a run that is killed at any
moment loses nothing that was finished: tasks whose files are missing or damaged are played again.
"""

import hashlib
import io
import json
import math
import os
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from explorax.checks import is_number
from explorax.errors import InvalidArgument, UnknownName, shown
from explorax.extras import optional
from explorax.files import write_atomically
from explorax.places import Place, place
from explorax.software import version_of

COLUMNS = {
    "curve": "string",  # label; unique within a run together with panel
    "policy": "string",
    "design": "string",  # "theory", "informal" or ""
    "environment": "string",
    "panel": "string",  # label
    "instance": "int32",
    "round": "int64",
    "regret": "float64",
    "reward": "float64",
    "digest": "uint32",
    "unconverged": "int32",
}
NAMES = ("curve", "policy", "design", "environment", "panel")
MANIFEST = "manifest.json"
PARTS = "parts"
PURPOSE = "a file of results"
REPAIR = "Run the study once more with the settings it had: what is finished is kept, and the file is written anew."


class Records(NamedTuple):
    """The records of one policy on M instances of one environment at C checkpoints, as `explorax.simulate` returns.

    Attributes:
        instances: The (M,) indices of the instances, int64.
        rounds: The (C,) checkpoints, int64: the numbers of rounds after which was recorded.
        regret: The (M, C) cumulative expected (pseudo-) regret after so many rounds, float64.
        reward: The (M, C) cumulative reward after so many rounds, float64.
        digest: The (M,) hashes of the sequences of arms pulled, uint32; equal digests mean equal arms.
        unconverged: The (M,) numbers of decisions whose fit did not converge, int64.

    Example:
        >>> import explorax
        >>> environment = explorax.environments.logistic(n_features=2, n_arms=5)
        >>> records = explorax.simulate(explorax.uniform(), environment, rounds=100, instances=3, checkpoints=4)
        >>> records.regret[:, -1].shape  # the regret of each instance after the last round
        (3,)
    """

    instances: np.ndarray
    rounds: np.ndarray
    regret: np.ndarray
    reward: np.ndarray
    digest: np.ndarray
    unconverged: np.ndarray


class Result(NamedTuple):
    """One curve in one panel: the names of policy and environment, and the records."""

    curve: str
    policy: str
    design: str
    environment: str
    panel: str
    records: Records
    seconds: float = 0.0  # wall time of the simulation
    compile_seconds: float | None = None  # the part of it spent compiling; None if unknown


class Stored(NamedTuple):
    """The contents of a file of results."""

    results: list[Result]
    metadata: dict[str, Any]


class Merged(NamedTuple):
    """Results combined from parts, and warnings about parts that contradict each other."""

    results: list[Result]
    warnings: list[str]


def check(records: Records) -> None:
    """Raise unless the arrays of records have matching shapes and hold finite numbers."""
    shape = (len(records.instances), len(records.rounds))
    for name, want in (("regret", shape), ("reward", shape), ("digest", shape[:1]), ("unconverged", shape[:1])):
        values = getattr(records, name)
        if np.shape(values) != want:
            raise InvalidArgument(f"{name} must have shape {want}, by instances and rounds, got {np.shape(values)}.")
        if not np.all(np.isfinite(values)):
            raise InvalidArgument(
                f"{name} must be finite, got NaN or infinity. Check the environment that was simulated."
            )
    for name, least in (("instances", 0), ("rounds", 1)):
        values = getattr(records, name)
        if len(values) == 0 or values[0] < least or np.any(np.diff(values) <= 0):
            raise InvalidArgument(
                f"{name} must be one or more numbers that increase from at least {least}, got {shown(values.tolist())}."
            )


def concatenate(several: Sequence[Records]) -> Records:
    """Join the records of several batches of instances, sorted by instance; the first of duplicates is kept."""
    if any(not np.array_equal(records.rounds, several[0].rounds) for records in several):
        raise InvalidArgument("The records have different checkpoints. Simulate all of them with the same ones.")
    whole = {
        name: np.concatenate([getattr(one, name) for one in several]) for name in Records._fields if name != "rounds"
    }
    _, first = np.unique(whole["instances"], return_index=True)
    return Records(rounds=several[0].rounds, **{name: array[first] for name, array in whole.items()})


def to_table(results: Sequence[Result]) -> Any:
    """Return results as a long pyarrow table with the columns `COLUMNS`."""
    if not results or len({(result.curve, result.panel) for result in results}) < len(results):
        raise InvalidArgument(
            f"results must be one for each curve and panel, and at least one, got {len(results)}. Use combine() first."
        )
    return optional("pyarrow", PURPOSE).concat_tables([_rows(result) for result in results])


def _rows(result: Result) -> Any:
    arrow, records = optional("pyarrow", PURPOSE), result.records
    check(records)
    count, checkpoints = records.regret.shape
    columns = [
        *(arrow.repeat(getattr(result, name), count * checkpoints) for name in NAMES),
        np.repeat(records.instances, checkpoints),
        np.tile(records.rounds, count),
        np.ravel(records.regret),
        np.ravel(records.reward),
        np.repeat(records.digest, checkpoints),
        np.repeat(records.unconverged, checkpoints),
    ]
    schema = arrow.schema([(name, getattr(arrow, kind)()) for name, kind in COLUMNS.items()])
    return arrow.table(dict(zip(COLUMNS, columns, strict=True)), schema=schema)


def from_table(table: Any) -> list[Result]:
    """Return the results in a long pyarrow table, in the order of their first rows; rows may be in any order."""
    missing = [name for name in COLUMNS if name not in table.column_names]
    if missing:
        raise InvalidArgument(f"The table lacks the columns {', '.join(missing)}. Give a table of regrets.")
    if any(table.column(name).null_count for name in COLUMNS):
        raise InvalidArgument("The table has empty cells. Give a table as a run writes it.")
    numbers = {name: table.column(name).to_numpy() for name in COLUMNS if name not in NAMES}
    labels = [table.column(name).combine_chunks().dictionary_encode() for name in ("curve", "panel")]
    keys = np.stack([label.indices.to_numpy() for label in labels])
    _, first, group = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    results = []
    for index in np.argsort(first):
        rows = np.flatnonzero(np.ravel(group) == index)
        rows = rows[np.lexsort((numbers["round"][rows], numbers["instance"][rows]))]
        names = {name: table.column(name)[int(rows[0])].as_py() for name in NAMES}
        shape = tuple(len(np.unique(numbers[name][rows])) for name in ("instance", "round"))
        rounds = numbers["round"][rows[: shape[1]]]
        if not np.array_equal(numbers["round"][rows], np.tile(rounds, shape[0])):
            raise InvalidArgument(
                f"The curve {names['curve']!r} lacks or repeats a checkpoint. Give a table as a run writes it."
            )
        grid = {name: numbers[name][rows].reshape(shape) for name in numbers}
        records = Records(
            instances=grid["instance"][:, 0].astype(np.int64),
            rounds=rounds.astype(np.int64),
            regret=grid["regret"].astype(np.float64),
            reward=grid["reward"].astype(np.float64),
            digest=grid["digest"][:, 0].astype(np.uint32),
            unconverged=grid["unconverged"][:, 0].astype(np.int64),
        )
        check(records)
        results.append(Result(records=records, **names))
    return results


def write(path: Place, results: Sequence[Result], metadata: Mapping[str, object] | None = None) -> None:
    """Write results, their times and metadata (plain JSON) to one Parquet file."""
    arrow = optional("pyarrow", PURPOSE)
    kept = {
        "metadata": dict(metadata or {}),
        "seconds": [float(result.seconds) for result in results],
        "compile_seconds": [result.compile_seconds for result in results],
        "digest": _contents_digest(results, metadata or {}),
    }
    table = to_table(results).replace_schema_metadata({"explorax": json.dumps(kept, sort_keys=True, allow_nan=False)})
    sink = arrow.BufferOutputStream()
    optional("pyarrow.parquet", PURPOSE).write_table(table, sink, compression="zstd")
    write_atomically(path, sink.getvalue().to_pybytes())


def read(path: Place | str) -> Stored:
    """Read a file of results, or raise `InvalidArgument` if it is missing, damaged or not as it was written."""
    arrow = optional("pyarrow", PURPOSE)
    try:
        table = optional("pyarrow.parquet", PURPOSE).read_table(io.BytesIO(place(path).read_bytes()))
        results = from_table(table)
        kept = json.loads((table.schema.metadata or {}).get(b"explorax", b"{}"))
        metadata: dict[str, Any] = kept.get("metadata", {})
        seconds = kept.get("seconds", [0.0] * len(results))
        compiling = kept.get("compile_seconds", [None] * len(results))  # unknown in older files
        results = [
            result._replace(seconds=spent, compile_seconds=part)
            for result, spent, part in zip(results, seconds, compiling, strict=True)
        ]
        if kept and kept["digest"] != _contents_digest(results, metadata):
            raise ValueError("Its contents are not what was written.")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, arrow.ArrowException) as error:
        raise InvalidArgument(f"{path} cannot be used: {str(error).rstrip('.')}. Delete it and run again.") from error
    return Stored(results, metadata)


def _contents_digest(results: Sequence[Result], metadata: Mapping[str, object]) -> str:
    found = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())
    for result in results:
        times = [float(result.seconds), *([] if result.compile_seconds is None else [float(result.compile_seconds)])]
        found.update(json.dumps([*result[:5], *times]).encode())
        for array, dtype in zip(result.records, ("i8", "i8", "f8", "f8", "u4", "i8"), strict=True):
            found.update(np.ascontiguousarray(array, f"<{dtype}").tobytes())
    return found.hexdigest()


def combine(results: Iterable[Result], curves: Sequence[str], panels: Sequence[str]) -> Merged:
    """Combine batches of the same curve and panel, sorted by panel, then by curve; warn if batches contradict."""
    groups: dict[tuple[int, int], list[Result]] = {}
    for result in results:
        for kind, label, order in (("curve", result.curve, curves), ("panel", result.panel, panels)):
            if label not in order:
                raise UnknownName(kind, label, order)
        groups.setdefault((panels.index(result.panel), curves.index(result.curve)), []).append(result)
    combined, warnings = [], []
    for _, batches in sorted(groups.items()):
        records = concatenate([batch.records for batch in batches])
        for batch in batches:
            kept = np.searchsorted(records.instances, batch.records.instances)
            if not np.array_equal(records.regret[kept], batch.records.regret):
                warnings.append(f"{batch.curve!r}, {batch.panel}: two parts contradict each other, the first is kept")
        seconds = sum(batch.seconds for batch in batches)
        parts = [batch.compile_seconds for batch in batches]
        compiling = None if None in parts else sum(part or 0.0 for part in parts)
        combined.append(batches[0]._replace(records=records, seconds=seconds, compile_seconds=compiling))
    return Merged(combined, warnings)


def manifest(
    settings: Mapping[str, object],
    *,
    seed: int,
    started: datetime,
    finished: datetime | None = None,
    seconds: float | None = None,  # Default: finished − started
    device: str | None = None,  # Default: JAX's first
    command: str = "",
) -> dict[str, Any]:
    """Describe how a run was computed, as plain data without host names or paths."""
    if seconds is None and finished is not None:
        seconds = (finished - started).total_seconds()
    return {
        "settings": plain(settings),
        "settings_digest": settings_digest(settings),
        "seed": seed,
        "command": command,
        "versions": {name: version_of(name) for name in ("explorax", "jax", "jaxlib", "numpy")}
        | {"python": platform.python_version()},
        "device": _device() if device is None else device,
        "platform": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "started": started.isoformat(timespec="seconds"),
        "finished": None if finished is None else finished.isoformat(timespec="seconds"),
        "duration_seconds": None if seconds is None else round(seconds, 3),
    }


def write_manifest(out_dir: Place | str, content: Mapping[str, Any]) -> None:
    """Write a manifest to manifest.json in a directory."""
    write_atomically(place(out_dir) / MANIFEST, (json.dumps(content, indent=2, allow_nan=False) + "\n").encode())


def _is_time(value: object) -> bool:
    try:
        return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


MISSING = "missing"
ENTRIES: dict[str, Callable[[Any], bool]] = {  # what must be in a manifest
    "settings": lambda value: isinstance(value, dict),
    "versions": lambda value: isinstance(value, dict),
    "command": lambda value: isinstance(value, str),
    "started": _is_time,
    "duration_seconds": lambda value: value is None or is_number(value),
}


def read_manifest(out_dir: Place | str, entries: Mapping[str, Callable[[Any], bool]] = ENTRIES) -> dict[str, Any]:
    """Read manifest.json in a directory, or raise `InvalidArgument` if it lacks one of the entries."""
    path = place(out_dir) / MANIFEST
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidArgument(f"{path} cannot be used: {error.strerror}. Give the directory of a run.") from error
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(f"{path} cannot be used: {error}. {REPAIR}") from error
    for name, fits in entries.items():
        found = content.get(name, MISSING) if isinstance(content, dict) else MISSING
        if not fits(found):
            raise InvalidArgument(f"{path} cannot be used: {name!r} is {str(found)[:200]} there. {REPAIR}")
    return dict(content)


def settings_digest(settings: Mapping[str, object]) -> str:
    """Return 16 hexadecimal digits that are equal for equal settings in any order; 1 and 1.0 are equal."""
    return hashlib.sha256(json.dumps(plain(settings), sort_keys=True, allow_nan=False).encode()).hexdigest()[:16]


def plain(value: Any) -> Any:
    """Return settings as JSON keeps them, with one spelling for each number."""
    match value:
        case Mapping():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple() | np.ndarray():
            return [plain(item) for item in value]
        case np.generic():
            return plain(value.item())
        case float() if value.is_integer():
            return int(value)
        case float() if not math.isfinite(value):
            raise InvalidArgument(f"settings must be finite numbers, got {value!r}.")
        case None | bool() | int() | float() | str():
            return value
    raise InvalidArgument(f"settings must be numbers, text, lists and tables, got {shown(value)}.")


def _device() -> str:
    import jax

    device = jax.devices()[0]
    return device.platform if device.device_kind == device.platform else f"{device.platform} ({device.device_kind})"
