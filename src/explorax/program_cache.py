"""Compiled programs on disk, so that the next process need not compile them again.

    explorax.cache_programs()                  # in the user's cache directory; the command `explorax` does it by itself

JAX looks a program up by a hash of all that it is compiled from: its operations, shapes and flags, and the versions of
JAX and XLA.  The files of its own cache are neither written whole nor checked when they are read, and without another
package their total size is not bounded.  A `Shelf` takes their place:

- A file is renamed to its name when it is complete, and begins with a checksum.  A file that was cut off or changed is
  removed, and its program is compiled.
- Files that were not used for the longest time are removed when all files together take more than `LARGEST` bytes.
- A directory that cannot be read or written is as good as an empty one.

The machine code of a CPU may use instructions that another CPU does not have.  JAX's hash does not know them, and a
home directory may be shared by machines of several kinds.  Each kind of CPU and each version of JAX therefore has a
directory of its own (`fingerprint`).
"""

import contextlib
import hashlib
import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path

from explorax.errors import InvalidArgument, shown
from explorax.files import remove_leftovers, temporary

VARIABLE = "EXPLORAX_PROGRAMS"  # the environment variable by which worker processes know the directory
SETTING = "jax_compilation_cache_dir"  # JAX's own
LARGEST = 2**29  # bytes of all programs together
ENDING = ".program"
CHECKSUM = hashlib.sha256().digest_size  # bytes
CPU_INFO = Path("/proc/cpuinfo")
# The lines there that say which instructions a CPU has and how code is tuned for it, on x86 and on ARM.
OF_CPU = ("vendor_id", "cpu family", "model", "flags", "CPU implementer", "CPU part", "CPU variant", "Features")


class Shelf:
    """A directory of compiled programs by key, with the methods that JAX asks of a cache."""

    def __init__(self, directory: Path) -> None:
        self._path = directory  # by the name that JAX uses

    def get(self, key: str) -> bytes | None:
        """Return the program of a key, or None if it is missing or its file is damaged."""
        path = self.path_of(key)
        try:
            content = path.read_bytes()
        except OSError:
            return None
        program = content[CHECKSUM:]
        whole = checksum(key, program) == content[:CHECKSUM]
        with contextlib.suppress(OSError):
            if whole:
                os.utime(path)  # the time of its last use
            else:
                path.unlink()
        return program if whole else None

    def put(self, key: str, value: bytes) -> None:
        """Keep the program of a key, if the directory can be written and has room for it."""
        path = self.path_of(key)
        with contextlib.suppress(OSError):
            path.parent.mkdir(0o700, parents=True, exist_ok=True)
            with temporary(path) as beside:
                beside.write_bytes(checksum(key, value) + value)
                os.replace(beside, path)
            make_room(self._path.parent, LARGEST)

    def path_of(self, key: str) -> Path:
        """Return the path of the file for a key."""
        return self._path / f"{key}{ENDING}"


def cache_programs(directory: str | os.PathLike[str] | None = None) -> Path | None:
    """Keep compiled programs on disk, so that later processes start faster.

    Call this function once, before the first policy, agent or simulation is used, and best before JAX is imported.
    The command `explorax` calls it by itself.  Programs of other code that uses JAX in this process are kept as
    well.  Files that are damaged, or were written for another CPU or version, are never used.  If a directory for
    JAX's own cache is set (`JAX_COMPILATION_CACHE_DIR`), that cache is used as it is.

    Args:
        directory: The directory of the programs.  Only you should be able to write to it, because what is read from
            it is executed.  Default: the one that the environment variable EXPLORAX_PROGRAMS names, or else
            `explorax/programs` in the user's cache directory, such as `~/.cache`.

    Returns:
        The directory that programs of this CPU and version of JAX are kept in; None if nothing is kept.

    Raises:
        InvalidArgument: If `directory` is not a path.

    Example:
        >>> import explorax
        >>> where = explorax.cache_programs()
    """
    if version("jax").startswith("0.9."):  # it logs a line or two for every program that it reads, for no reason
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # which is read when JAX is imported
    import jax

    if not isinstance(directory, str | os.PathLike | None):
        raise InvalidArgument(f"directory must be a path, got {shown(directory)}. Leave it out for the user's cache.")
    set_already: str | None = getattr(jax.config, SETTING)
    root = chosen(directory)
    if set_already and not (root and Path(set_already).parent == root):
        return Path(set_already)
    if root is None or not replace_cache_of_jax():
        return None
    os.environ[VARIABLE] = str(root)
    programs = root / fingerprint()
    remove_leftovers(programs)
    # Small programs count as well: there are dozens of them.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    jax.config.update("jax_persistent_cache_enable_xla_caches", "none")  # they would not be checked
    jax.config.update(SETTING, str(programs))
    return programs


def inherit() -> None:
    """Use the programs of the process that started this one, if it keeps any."""
    if VARIABLE in os.environ:
        cache_programs()


def bequeath_none() -> None:
    """Let processes that are started later keep no programs."""
    os.environ.pop(VARIABLE, None)


def chosen(directory: str | os.PathLike[str] | None) -> Path | None:
    """Return the directory of all programs: the given one, that of the environment, or that of the user, if any."""
    given = directory or os.environ.get(VARIABLE)
    if given:
        return Path(given).absolute()
    user = user_cache()
    return None if user is None else user / "explorax" / "programs"


def user_cache() -> Path | None:
    """Return the directory where the user's programs keep what they can make again; None if there is no home."""
    try:
        home = Path.home()
    except RuntimeError:
        return None
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    if sys.platform == "darwin":
        return home / "Library" / "Caches"
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return named if named.is_absolute() else home / ".cache"


def fingerprint() -> str:
    """Return a name for what files depend on and JAX's keys may not hold: the CPU and the version of JAX."""
    import jax

    parts = [jax.__version__, platform.system(), platform.machine(), *cpu()]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def cpu() -> list[str]:
    """Return what tells this CPU from those that lack some of its instructions, or the name of the machine."""
    try:
        lines = CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    described = sorted({line for line in lines if line.partition(":")[0].strip() in OF_CPU})
    return described or [platform.node(), platform.processor()]


def replace_cache_of_jax() -> bool:
    """Make JAX use a `Shelf` for its cache; return whether this version of JAX lets us."""
    from jax._src import compilation_cache  # JAX offers no other way to say how files are written and read

    if not all(hasattr(compilation_cache, name) for name in ("get_file_cache", "reset_cache")):
        return False
    vars(compilation_cache)["get_file_cache"] = lambda path: (Shelf(Path(path)), path)
    compilation_cache.reset_cache()  # of another directory
    return True


def checksum(key: str, program: bytes) -> bytes:
    """Return the checksum of a program under its key."""
    return hashlib.sha256(key.encode() + b"\n" + program).digest()


def make_room(root: Path, most: int) -> None:
    """Remove the programs that were not used for the longest time, until all together take at most `most` bytes."""
    found = []
    for path in root.glob(f"*/*{ENDING}"):
        with contextlib.suppress(OSError):  # another process may have removed it
            about = path.stat()
            found.append((about.st_mtime, about.st_size, path))
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= most:
            return
        with contextlib.suppress(OSError):
            path.unlink()
        total -= size
