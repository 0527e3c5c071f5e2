"""Which software a process has, told without importing any of it."""

import hashlib
import importlib
import importlib.metadata
import sys
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parent


class Software(NamedTuple):
    """The software that results may depend on, in a process."""

    explorax: str  # its version, and a digest of its source files
    jax: str
    jaxlib: str
    numpy: str
    python: str


def software() -> Software:
    """Return the software of this process."""
    return Software(
        explorax=f"{importlib.import_module('explorax').__version__} with source {source_digest()}",
        jax=version_of("jax"),
        jaxlib=version_of("jaxlib"),
        numpy=version_of("numpy"),
        python=".".join(map(str, sys.version_info[:2])),
    )


@cache
def source_digest(leave_out: Collection[str] = ()) -> str:
    """Return a digest of the source files of explorax.

    Args:
        leave_out: Names of modules and packages of explorax that do not count, as a tuple.

    Returns:
        Sixteen digits.
    """
    found = hashlib.sha256()
    for path in sorted(SOURCE.rglob("*.py")):
        inside = path.relative_to(SOURCE)
        if inside.parts[0].removesuffix(".py") not in leave_out:
            found.update(f"{inside.as_posix()}\n".encode() + path.read_bytes())
    return found.hexdigest()[:16]


def version_of(package: str) -> str:
    """Return the version of a package, which may be installed or imported from its source."""
    try:
        return installed_version(package)
    except importlib.metadata.PackageNotFoundError:
        version = getattr(sys.modules.get(package), "__version__", None)
        return "not installed" if version is None else f"{version} (from source)"


@cache
def installed_version(package: str) -> str:
    """Return the version of an installed package, or raise `importlib.metadata.PackageNotFoundError`."""
    return importlib.metadata.version(package)
