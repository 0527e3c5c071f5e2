"""The file that an agent is saved in: arrays and a schema, never pickle.

A snapshot is a `.npz` archive of NumPy: one member for each array, and `schema`, a JSON text that describes them.  Its
`format` counts the versions of this layout; a snapshot of an unknown format is refused.  Archives carry checksums, so
damage is noticed.  Nothing is read on trust: the length of an array must agree with its header before memory is taken
for it, and numbers must be finite.

    format 1    ids of decisions are their numbers, from 0 on
    format 2    ids have an offset (`log.py`): `offset`, `spans` and `unsure` are new in the schema, as is
                `explore_floor`; a name may be None, of a row that an arm had before it was updated
    format 3    the state of a GLM policy has a memory, and settings have other names (`former.py`)
    format 4    the state of a linear policy has its ridge and its regression
    format 5    the memory of rewards one by one has its root, for policies that ask for it; `rowless` are the names and
                the features of retired arms whose rows were given to other arms
    format 6    an agent may have a reward window: `reward_window`, `default_reward`, and when the decisions that wait
                were made (`pending_times`), which rewards have come (`pending_told`), and which were not shown yet
                (`pending_deferred`)

**Atomic.**  A snapshot is written beside its place and moved there when it is on the disk: a reader finds the old one
or the new one, whatever happens in between.  If the path is a symbolic link, the file that it leads to is written.  The
next writer removes what a writer that was killed half-way has left behind.
"""

import io
import json
import math
import os
import reprlib
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from explorax.errors import InvalidArgument, InvalidSnapshot
from explorax.files import remove_leftovers, write_atomically
from explorax.software import version_of

FORMAT = 6
READ = (1, 2, 3, 4, 5, 6)
FILE = "explorax agent"
SCHEMA = "schema"
DTYPES = "biuf"  # kinds of arrays: bools, whole numbers and floats

Arrays = dict[str, np.ndarray]


def dumps(schema: dict[str, Any], arrays: Arrays) -> bytes:
    """Return a snapshot as bytes."""
    described = {"file": FILE, "format": FORMAT, "version": version_of("explorax"), **schema}
    archive = io.BytesIO()
    members = {SCHEMA: np.frombuffer(json.dumps(described, allow_nan=False).encode(), np.uint8), **arrays}
    np.savez(archive, **members)  # type: ignore[arg-type]
    return archive.getvalue()


def write(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a snapshot to its file, all of it or nothing."""
    target = Path(os.path.realpath(checked_path(path)))
    if target.is_dir() or target.is_symlink() or not target.parent.is_dir():  # a link that leads to itself stays one
        raise InvalidArgument(
            f"path must be a file in a folder that exists, got {str(path)!r}. Make the folder, or give another path."
        )
    remove_leftovers(target.parent, target.name)
    write_atomically(target, content)


def read(path: str | os.PathLike[str]) -> bytes:
    """Return what is in the file of a snapshot."""
    try:
        return checked_path(path).read_bytes()
    except OSError as error:
        raise InvalidSnapshot(f"{path} cannot be read: {error.strerror}.") from error


def loads(content: bytes, path: object) -> tuple[dict[str, Any], Arrays]:
    """Return the schema and the arrays of a snapshot, which came from a file."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            arrays = {member.filename.removesuffix(".npy"): array_in(archive, member) for member in archive.infolist()}
        if SCHEMA not in arrays:
            raise ValueError("it has no schema.")
        schema = json.loads(arrays.pop(SCHEMA).tobytes())
    except Exception as error:  # bytes that are something else fail in any way
        raise InvalidSnapshot(f"{path} is not a snapshot, or is damaged: {error or repr(error)}") from error
    if not isinstance(schema, dict) or schema.get("file") != FILE:
        raise InvalidSnapshot(f"{path} is not a snapshot of an agent. Give a file that Agent.save wrote.")
    if schema.get("format") not in READ:
        raise InvalidSnapshot(
            f"{path} has format {schema.get('format')!r}, written by explorax {schema.get('version')}. This version "
            f"reads formats up to {FORMAT}. Load it with that version, or with a newer one."
        )
    return schema, arrays


def array_in(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    """Return one array of an archive, which takes no more memory than it has bytes there."""
    if member.compress_type != zipfile.ZIP_STORED:  # what unpacks could be of any size
        raise ValueError(f"{member.filename} is compressed.")
    if member.comment or member.extra[:2] not in (b"", b"\1\0"):  # the next entries of a damaged directory
        raise ValueError(f"{member.filename} has something else beside it.")
    content = archive.read(member)
    file = io.BytesIO(content)
    reader = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }[np.lib.format.read_magic(file)]
    shape, by_columns, dtype = reader(file)
    if dtype.kind not in DTYPES:
        raise ValueError(f"{member.filename} must hold numbers or bools, got dtype {dtype}.")
    if math.prod(shape) * dtype.itemsize != len(content) - file.tell():
        raise ValueError(f"{member.filename} does not hold an array of shape {shape} and dtype {dtype}, as it says.")
    array = np.frombuffer(content, dtype, offset=file.tell())
    return array.reshape(shape, order="F" if by_columns else "C")


def checked_path(path: object) -> Path:
    """Return an argument as a path; raise if it cannot be the name of a file."""
    if isinstance(path, str | os.PathLike) and isinstance(text := os.fspath(path), str) and "\0" not in text:
        return Path(text)
    raise InvalidArgument(
        f"path must be the name of a file, as text or a Path, got {reprlib.repr(path)}. Give 'agent.npz', for example."
    )


def check_array(member: str, arrays: Arrays, shape: tuple[int | None, ...], dtype: str, what: str) -> np.ndarray:
    """Return an array of a snapshot; raise unless it has this shape (None for any length) and dtype, and is finite."""
    if member not in arrays:
        raise InvalidArgument(f"{what} is missing: there is no array {member}.")
    array = arrays[member]
    fits = array.ndim == len(shape) and all(want in (None, is_) for want, is_ in zip(shape, array.shape, strict=True))
    if not fits or array.dtype != dtype:
        raise InvalidArgument(
            f"{what} must have shape {shape} and dtype {dtype}, got shape {array.shape} and dtype {array.dtype}."
        )
    if not np.isfinite(array).all():
        raise InvalidArgument(f"{what} must be finite, got NaN or infinity.")
    return array


def plain(value: Any) -> bool:
    """Tell whether a setting is plain: text, finite numbers, bools, None and lists of them, which JSON can hold."""
    if isinstance(value, list | tuple):
        return all(map(plain, value))
    return value is None or isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value))
