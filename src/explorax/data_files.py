"""Files of public data sets: where they lie, and whether they are what was published."""

import gzip
import hashlib
import os
import zlib
from pathlib import Path
from typing import NamedTuple

from explorax.errors import InvalidArgument, shown
from explorax.extras import optional

ENVIRONMENT_VARIABLE = "EXPLORAX_DATA"


class File(NamedTuple):
    """A file as it was published; if that was uncompressed, a copy called NAME.gz is accepted, too."""

    name: str
    size: int  # bytes
    sha256: str


def as_directory(given: str | Path | None) -> Path | None:
    """Return the directory that is given or that EXPLORAX_DATA names, or None if there is neither."""
    named = os.environ.get(ENVIRONMENT_VARIABLE, "") if given is None else given
    if not isinstance(named, str | Path):
        raise InvalidArgument(f"directory must be the path of a directory, got {shown(given)}.")
    return Path(named).expanduser().resolve() if named else None


def cache_folder(purpose: str) -> Path:
    """Return the folder of the user's cache that holds data sets; `purpose` is what it is needed for."""
    return Path(optional("pooch", purpose).os_cache("explorax"))


def content(path: Path, file: File) -> bytes:
    """Return the contents of a published file, or raise `InvalidArgument` if its checksum is another one."""
    found, checksum = unpacked(path, file)
    check_published(path, found, checksum, file)
    return found


def unpacked(path: Path, file: File) -> tuple[bytes, str]:
    """Return the uncompressed contents of a file and their SHA-256; empty contents if the file cannot be read."""
    try:
        packed = path.read_bytes()
        found = packed if path.name == file.name else gzip.decompress(packed)
    except (OSError, EOFError, zlib.error) as error:
        return b"", f"unknown ({error})"
    return found, hashlib.sha256(found).hexdigest()


def check_published(path: Path, found: bytes, checksum: str, file: File) -> None:
    """Raise `InvalidArgument` unless the contents found at a path are those that were published."""
    if checksum != file.sha256:
        raise InvalidArgument(
            f"{path} is damaged, or another file: it has {len(found)} bytes with sha256 {checksum} instead of "
            f"{file.size} bytes with sha256 {file.sha256}. Delete it and download it again, or put a whole copy there."
        )
