"""Agents on disk: arrays and a schema, never pickle.

A snapshot is a `.npz` archive of NumPy (read with `allow_pickle=False`): one member for each array, and `schema`, a
JSON text that says what they are.  Its `format` counts the versions of this layout; a snapshot of a version that is not
known is refused.  Archives carry checksums, so a damaged one is noticed.

**Atomic.**  A snapshot is written beside its place and moved there when it is on the disk: whoever reads finds the old
one or the new one, whatever happens in between.
"""

import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import jax
import numpy as np

from explorax.errors import InvalidArgument, InvalidSnapshot
from explorax.files import write_atomically
from explorax.policies.base import State
from explorax.record import version_of

FORMAT = 1
FILE = "explorax agent"


def write(path: str | os.PathLike[str], schema: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Put a snapshot in its place, all of it or nothing."""
    target = Path(path)
    if target.is_dir() or not target.parent.is_dir():
        raise InvalidArgument(f"path={str(path)!r} must be a file in a folder that exists")
    described = {"file": FILE, "format": FORMAT, "version": version_of("explorax"), **schema}
    archive = io.BytesIO()
    members = {"schema": np.frombuffer(json.dumps(described).encode(), np.uint8), **arrays}
    np.savez(archive, **members)  # type: ignore[arg-type]
    write_atomically(target, archive.getvalue())


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The schema and the arrays of a snapshot."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InvalidSnapshot(f"{path} cannot be read: {error.strerror}") from error
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        schema = json.loads(arrays.pop("schema").tobytes())
    except (ValueError, KeyError, OSError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        raise InvalidSnapshot(f"{path} is no snapshot, or a damaged one: {error}") from error
    if not isinstance(schema, dict) or schema.get("file") != FILE:
        raise InvalidSnapshot(f"{path} is no snapshot of an agent")
    if schema.get("format") != FORMAT:
        raise InvalidSnapshot(
            f"{path} has format {schema.get('format')!r}, written by explorax {schema.get('version')}; this version "
            f"reads format {FORMAT}: load it with that version, or a newer one"
        )
    return schema, arrays


def flatten(state: State) -> tuple[list[list[Any]], dict[str, np.ndarray]]:
    """A state as arrays, and their names, shapes and dtypes."""
    described, arrays = [], {}
    for i, (path, leaf) in enumerate(jax.tree_util.tree_flatten_with_path(state)[0]):
        array = np.asarray(leaf)
        if array.dtype.hasobject or array.dtype.kind not in "biuf":
            raise InvalidArgument(
                f"{jax.tree_util.keystr(path)} of the state has dtype {array.dtype}, which cannot be saved: "
                "a state must hold numbers and bools"
            )
        described.append([jax.tree_util.keystr(path), list(array.shape), str(array.dtype)])
        arrays[f"state_{i}"] = array
    return described, arrays


def unflatten(like: State, described: list[list[Any]], arrays: dict[str, np.ndarray], source: object) -> State:
    """The state that was saved, which must look like this one."""
    expected, _ = flatten(like)
    if expected != described:
        differing = [f"{was} instead of {now}" for was, now in zip(described, expected, strict=False) if was != now]
        differing.append(f"{len(described)} arrays instead of {len(expected)}")
        raise InvalidSnapshot(
            f"{source} holds a state of another kind: {differing[0]}. It was saved by another policy, with other "
            "settings, or by another version of explorax: load it with those"
        )
    leaves = [jax.numpy.asarray(arrays[f"state_{i}"]) for i in range(len(described))]
    return jax.tree.unflatten(jax.tree.structure(like), leaves)


def plain(value: Any) -> bool:
    """Whether a setting survives JSON."""
    if isinstance(value, list | tuple):
        return all(map(plain, value))
    return value is None or isinstance(value, str | bool | int | float)
