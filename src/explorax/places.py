"""Places for results: a directory of this machine, or a folder on a shared or object store.

`place` turns what people give into a place.  A directory is a `pathlib.Path`.  A folder that has an address, such as
s3://bucket/folder, is a `RemotePath`: it has those methods of `pathlib.Path` that results need, and pyarrow does the
work.  Credentials come from the environment, as pyarrow takes them; those in an address are used, but neither shown nor
kept.
"""

import contextlib
import errno
import os
import re
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from explorax.errors import CannotRead, CannotWrite, InvalidArgument
from explorax.extras import optional

SCHEMES = ("abfs", "abfss", "gcs", "gs", "hdfs", "s3", "viewfs")
WHOLE = ("abfs", "gcs", "s3")  # file systems of pyarrow that take a file as a whole; abfs empties the one it replaces
SECRET = re.compile("secret|password|token|key|sig", re.IGNORECASE)  # in the names of options of an address
CREDENTIALS = re.compile(r"(:/{1,2})[^/?#@]*:[^?#@]*@")  # user and password of an address
AT_ONCE = {"s3": "allow_delayed_open=true"}  # with which a small file costs one request and not three
PRIVATE = re.compile(r" \(Request ID: [^)]*\)|(?<=\S)\?[^\s'\"]+=[^\s'\"]*")  # options of addresses may be signatures
PURPOSE = "a place on a shared or object store"
REMEDY = "Check the address, its bucket, the credentials in the environment, and the network."
LONGEST = 300  # characters of what a store says


class Stat(NamedTuple):
    """When a file was written, by the clock of its store; named as in `os.stat_result`."""

    st_mtime: float


@dataclass(frozen=True)
class RemotePath:
    """A file or folder on a shared or object store, with the methods of `pathlib.Path` that results need.

    Attributes:
        filesystem: The file system of pyarrow.
        path: Where it is there, such as "bucket/folder".
        address: The same as an address, without options.
        options: The options at the end of the address, such as "?region=eu-west-1", without secrets.
    """

    filesystem: Any = field(repr=False, compare=False)
    path: str
    address: str
    options: str = ""

    def __str__(self) -> str:
        return self.address + self.options

    def __truediv__(self, name: str) -> "RemotePath":
        return replace(self, path=f"{self.path}/{name}", address=f"{self.address}/{quote(name)}")

    @property
    def name(self) -> str:
        """The last part of the path."""
        return PurePosixPath(self.path).name

    @property
    def suffix(self) -> str:
        """The ending of the name, with its dot."""
        return PurePosixPath(self.path).suffix

    @property
    def parents(self) -> tuple["RemotePath", ...]:
        """Nothing: on an object store no file is in the way of a folder, and folders above may be closed to us."""
        return ()

    def exists(self) -> bool:
        """Return whether there is a file or folder."""
        return self._info().type.name != "NotFound"

    def is_dir(self) -> bool:
        """Return whether it is a folder; on an object store, whether there are files in it."""
        return self._info().type.name == "Directory"

    def stat(self) -> Stat:
        """Return when a file was written; raise `FileNotFoundError` if it is missing."""
        found = self._info()
        if found.mtime_ns is None:
            raise self._missing()
        return Stat(found.mtime_ns / 1e9)

    def glob(self, pattern: str) -> list["RemotePath"]:
        """Return what is in a folder under a name that fits a pattern such as "*.parquet"."""
        with self._reading():
            selector = optional("pyarrow.fs", PURPOSE).FileSelector(self.path, allow_not_found=True)
            names = [found.base_name for found in self.filesystem.get_file_info(selector)]
        return [self / name for name in names if fnmatchcase(name, pattern)]

    def read_bytes(self) -> bytes:
        """Return the contents of a file; raise `FileNotFoundError` if it is missing."""
        with self._reading(), self.filesystem.open_input_stream(self.path) as stream:
            content: bytes = stream.read()
        return content

    def read_text(self, encoding: str) -> str:
        """Return the contents of a file as text; raise `FileNotFoundError` if it is missing."""
        return self.read_bytes().decode(encoding)

    def write_whole(self, content: bytes) -> None:
        """Write a file so that readers see all of it, or what was there before.

        Object stores do so by themselves.  Elsewhere the file is written beside and moved.

        Args:
            content: What is written.

        Raises:
            CannotWrite: If the store cannot be reached or refuses.
        """
        # A stream that is closed early leaves a shorter file, so Ctrl-C must not reach the code between: a thread.
        with self._writing(), ThreadPoolExecutor(1) as undisturbed:
            undisturbed.submit(self._write, content).result()

    def unlink(self, missing_ok: bool = False) -> None:
        """Remove a file; raise `FileNotFoundError` if it is missing, unless it may be missing."""
        try:
            with self._writing():
                self.filesystem.delete_file(self.path)
        except FileNotFoundError:
            if not missing_ok:
                raise

    def _write(self, content: bytes) -> None:
        whole = self.filesystem.type_name in WHOLE
        folder = PurePosixPath(self.path).parent
        target = self.path if whole else str(folder / f".{self.name}.{uuid.uuid4().hex}.tmp")
        if not whole:
            self.filesystem.create_dir(str(folder), recursive=True)
        with self.filesystem.open_output_stream(target) as stream:
            stream.write(content)
        if not whole:
            self.filesystem.move(target, self.path)

    def _info(self) -> Any:
        with self._reading():
            return self.filesystem.get_file_info(self.path)

    def _missing(self) -> FileNotFoundError:
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self))

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise self._missing() from None
        except (OSError, ValueError) as error:
            raise CannotRead(f"{self} could not be read: {said(error)}. {REMEDY}") from error

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise self._missing() from None
        except (OSError, ValueError) as error:
            raise CannotWrite(
                f"{self} could not be written: {said(error)}. Nothing that was there before is lost. {REMEDY}"
            ) from error


Place: TypeAlias = Path | RemotePath


def place(out: "str | os.PathLike[str] | RemotePath") -> Place:
    """Return the place that a directory or an address stands for.

    Args:
        out: The path of a directory, an address like s3://bucket/folder with options of pyarrow, such as
            ?region=eu-west-1, or a place.

    Returns:
        A `pathlib.Path` for a directory and for file:///directory, and a `RemotePath` for any other address.

    Raises:
        InvalidArgument: If the address cannot be used, or its store cannot be found.

    Example:
        >>> place("file:///tmp/results").name
        'results'
    """
    if isinstance(out, RemotePath):
        return out
    text = os.fspath(out)
    if re.match(rf"(?:{'|'.join((*SCHEMES, 'file'))}):/(?!/)", text, re.IGNORECASE):
        why = "it lacks a slash after the colon. Give an address as text, since a pathlib.Path drops one"
        raise InvalidArgument(refusal(text, why))
    if not re.match(r"[a-z][a-z0-9+.-]+://", text, re.IGNORECASE):
        return Path(out)
    try:
        parts = urlsplit(text)
    except ValueError:  # whose message may repeat the address
        raise InvalidArgument(refusal(text, "this is not an address")) from None
    if parts.fragment:
        raise InvalidArgument(refusal(text, "it has a #. Write %23 for it"))
    return local(text, parts) if parts.scheme == "file" else remote(text, parts)


def local(text: str, parts: SplitResult) -> Path:
    """Return the path of an address like file:///directory; raise `InvalidArgument` if it is of another machine."""
    if parts.netloc not in ("", "localhost") or parts.query or not parts.path:
        raise InvalidArgument(refusal(text, "it has a host or options. Write file:///directory, or the directory"))
    return Path(unquote(parts.path))


def remote(text: str, parts: SplitResult) -> RemotePath:
    """Return the folder of an address; raise `InvalidArgument` if pyarrow cannot use it."""
    if parts.scheme not in SCHEMES:
        known = ", ".join(f"{scheme}://" for scheme in (*SCHEMES, "file"))
        why = f"it must begin with one of {known}. Choose one of these, or give a mounted directory"
        raise InvalidArgument(refusal(text, why))
    query = "&".join(filter(None, [parts.query, AT_ONCE.get(parts.scheme)]))
    try:
        found, path = optional("pyarrow.fs", PURPOSE).FileSystem.from_uri(parts._replace(query=query).geturl())
    except (OSError, ValueError) as error:  # which may repeat the address, too
        raise InvalidArgument(refusal(text, f"{hidden(said(error), parts)}. {REMEDY.rstrip('.')}")) from None
    if not path.strip("/"):
        raise InvalidArgument(refusal(text, "it names no bucket or folder. Add one"))
    address, _, options = without_secrets(parts).partition("?")
    return RemotePath(found, path.rstrip("/"), address.rstrip("/"), options and f"?{options}")


def refusal(text: str, why: str) -> str:
    """Return what is said of an address that cannot be used."""
    shown = CREDENTIALS.sub(r"\1", text.partition("?")[0])
    return f"out must be a directory or an address like s3://bucket/folder, got {shown!r}: {why}."


def without_secrets(parts: SplitResult) -> str:
    """Return an address without its password and secret options: of s3://KEY:SECRET@bucket there remains s3://bucket."""
    host = parts.netloc if parts.password is None else parts.netloc.rpartition("@")[2]
    options = [(name, value) for name, value in parse_qsl(parts.query) if not SECRET.search(name)]
    return parts._replace(netloc=host, query=urlencode(options, safe=":/")).geturl()


def hidden(text: str, parts: SplitResult) -> str:
    """Return a sentence about an address without the secrets of that address."""
    given = [parts.password or "", *(value for name, value in parse_qsl(parts.query) if SECRET.search(name))]
    for secret in filter(None, given):
        text = text.replace(secret, "…").replace(quote(secret, safe=""), "…").replace(unquote(secret), "…")
    return CREDENTIALS.sub(r"\1", text)


def said(error: Exception) -> str:
    """Return what a store says of an error, in one short line."""
    lines = str(getattr(error, "strerror", None) or error).splitlines() or [type(error).__name__]
    line = PRIVATE.sub("", lines[0]).rstrip(".")
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"
