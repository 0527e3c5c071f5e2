"""Labelled data sets for classification bandits: public ones by name, and your own.

    load("mnist")                                  60 000 handwritten digits, downloaded once; also "fashion"
    load("mnist", directory="data")                the same, from data/mnist/train-images-idx3-ubyte.gz and …-labels-…
    load("digits")                                 1797 small handwritten digits that come with scikit-learn
    load("adult")                                  32 561 people, 6 numbers and 8 categories; also "mushroom"
    load("flowers.csv", label="species")           a table of your own: CSV with a header, or Parquet (see `tables`)
    load((X, y))                                   arrays of your own, taken as they are

Files of public data sets are as they were published: nothing is used whose SHA-256 differs.  They are looked for in
`directory`, or else in the directory that EXPLORAX_DATA names; only where neither is given are they downloaded, into
the user's cache.  In a directory each data set has a folder, or its files lie there directly.

Images stay bytes, a quarter of the memory of floats: features are used after multiplication by `scale`.  A data set is
read-only, and one with a name is read once in a process.
"""

import gzip
import hashlib
import os
import zlib
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from explorax import tables
from explorax.checks import check_positive
from explorax.errors import InvalidArgument, InvalidFeatures, InvalidShape, UnknownName
from explorax.extras import optional

NAMES = ("mnist", "fashion", "digits", "adult", "mushroom")
ENVIRONMENT_VARIABLE = "EXPLORAX_DATA"
BYTE = 1 / 255  # scale of images


class Dataset(NamedTuple):
    """n examples with d features and a label each."""

    name: str  # of a public data set, the stem of a file's name, or "arrays"
    features: np.ndarray  # (n, d) uint8 or float32; multiply by `scale` to use
    labels: np.ndarray  # (n,) int32, index into classes
    classes: tuple[str, ...]  # names of the labels, sorted
    scale: float  # 1/255 for images, 1/16 for digits, 1 otherwise
    columns: tuple[str, ...]  # names of the features; "column_value" where a column has been one-hot encoded


Source: TypeAlias = str | Path | tuple[ArrayLike, ArrayLike] | Dataset


class File(NamedTuple):
    """A file as it was published; one that was not compressed may also lie there as NAME.gz."""

    name: str
    size: int  # bytes
    sha256: str


class Published(NamedTuple):
    """Where the files of a public data set are found."""

    folders: tuple[str, ...]  # that may hold them; the first in the cache
    files: tuple[File, ...]
    mirrors: tuple[str, ...]  # tried in this order
    header: tuple[str, ...] = ()  # names of the columns if it is a table
    label: str = ""  # the one with the labels


IMAGES, LABELS = "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"
PUBLISHED = {
    "mnist": Published(
        ("mnist",),
        (
            File(IMAGES, 9912422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
            File(LABELS, 28881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
        ),
        (
            "https://storage.googleapis.com/cvdf-datasets/mnist/",
            "https://ossci-datasets.s3.amazonaws.com/mnist/",
        ),
    ),
    "fashion": Published(
        ("fashion-mnist", "fashion"),
        (
            File(IMAGES, 26421880, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"),
            File(LABELS, 29515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
        ),
        (
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
            "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
        ),
    ),
    "adult": Published(
        ("adult",),
        (File("adult.data", 3974305, "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d"),),
        ("https://archive.ics.uci.edu/ml/machine-learning-databases/adult/",),
        (
            *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation"),
            *("relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country"),
            "income",
        ),
        "income",
    ),
    "mushroom": Published(
        ("mushroom",),
        (File("agaricus-lepiota.data", 373704, "e65d082030501a3ebcbcd7c9f7c71aa9d28fdfff463bf4cf4716a3fe13ac360e"),),
        ("https://archive.ics.uci.edu/ml/machine-learning-databases/mushroom/",),
        (
            *("class", "cap-shape", "cap-surface", "cap-color", "bruises", "odor", "gill-attachment", "gill-spacing"),
            *("gill-size", "gill-color", "stalk-shape", "stalk-root", "stalk-surface-above-ring"),
            *("stalk-surface-below-ring", "stalk-color-above-ring", "stalk-color-below-ring", "veil-type"),
            *("veil-color", "ring-number", "ring-type", "spore-print-color", "population", "habitat"),
        ),
        "class",
    ),
}


def load(
    source: Source, *, directory: str | Path | None = None, label: str | None = None, download: bool = True
) -> Dataset:
    """A data set by name, from a CSV or Parquet file with a column `label`, or from a pair of arrays.

    `directory` holds the files of public data sets; with `download=False` only those already there or in the cache.
    """
    path = as_path(source)
    if label is not None and path is None:
        raise InvalidArgument(f"label={label!r} names a column of a CSV or Parquet file: leave it out here")
    if isinstance(source, Dataset):
        check(source)
        return source
    if path is not None:
        table = tables.encode(tables.read(path), label, path)
        return finished(Path(path.name.removesuffix(".gz")).stem, *table, 1.0)
    if isinstance(source, str):
        name = known_name(source)
        return digits() if name == "digits" else published(name, as_directory(directory), download)
    if isinstance(source, tuple) and len(source) == 2:
        return from_arrays(*source)
    raise InvalidArgument(
        f"source of type {type(source).__name__} is no data set: give one of {', '.join(NAMES)}, "
        "the path of a CSV or Parquet file, or a pair (features, labels)"
    )


def known_name(name: str) -> str:
    """The name of a public data set as it is in `NAMES`."""
    known = {"fashion-mnist": "fashion"}.get(name.lower().replace("_", "-"), name.lower())
    if known not in NAMES:
        raise UnknownName("data set", name, NAMES)
    return known


def as_path(source: object) -> Path | None:
    """The path of a table, or None if the source is something else."""
    if isinstance(source, str):
        is_path = source.lower().endswith(tables.ENDINGS) or "/" in source or os.sep in source
        return Path(source).expanduser() if is_path else None
    return source.expanduser() if isinstance(source, Path) else None


def digest(source: object) -> str | None:
    """Of the contents of a file of one's own, which may change; None for other sources, which do not."""
    path = as_path(source)
    return None if path is None else hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def as_directory(given: str | Path | None) -> Path | None:
    """The directory to look for files in, given or named by the environment; None if there is no such."""
    named = os.environ.get(ENVIRONMENT_VARIABLE, "") if given is None else given
    if not isinstance(named, str | Path):
        raise InvalidArgument(f"directory={given!r} must be the path of a directory")
    return Path(named).expanduser().resolve() if named else None


def from_arrays(features: ArrayLike, labels: ArrayLike) -> Dataset:
    """A data set of your own: numbers of shape (n, d), and n whole numbers, texts or bools."""
    matrix, classes = as_array("features", features), as_array("labels", labels)
    if matrix.dtype.kind == "O":  # e.g. a data frame with columns of several types
        matrix = as_array("features", matrix.tolist())
    if matrix.ndim != 2 or matrix.dtype.kind in "cmMOSU":
        error = InvalidShape if matrix.ndim != 2 else InvalidFeatures
        raise error(f"features have shape {matrix.shape} and type {matrix.dtype}: give a row of numbers per example")
    if classes.shape != matrix.shape[:1]:
        raise InvalidShape(f"labels have shape {classes.shape} where {matrix.shape[:1]} is needed: one per example")
    columns = getattr(features, "columns", [f"x{index}" for index in range(matrix.shape[1])])  # of a data frame
    with np.errstate(over="ignore"):
        matrix = matrix.astype(np.float32)
    return finished("arrays", matrix, tuple(map(str, columns)), *tables.encode_labels("labels", classes), 1.0)


def as_array(name: str, values: ArrayLike) -> np.ndarray:
    """The values as NumPy has them."""
    try:
        return np.asarray(values)
    except (TypeError, ValueError):
        raise InvalidFeatures(f"{name} of type {type(values).__name__} cannot be read as an array") from None


@cache
def digits() -> Dataset:
    """The 8 × 8 handwritten digits that come with scikit-learn."""
    bundle = optional("sklearn.datasets", "the data set digits").load_digits()
    features, labels = bundle.data.astype(np.uint8), tables.encode_labels("labels", bundle.target)
    return finished("digits", features, pixels(8, 8), *labels, 1 / 16)


@cache
def published(name: str, directory: Path | None, download: bool) -> Dataset:
    """A data set whose files were published."""
    about = PUBLISHED[name]
    paths = [find(file, about, directory) if directory else fetch(file, about, download) for file in about.files]
    contents = [content(path, file) for path, file in zip(paths, about.files, strict=True)]
    if about.header:
        table = tables.read_csv(contents[0].replace(b", ", b","), about.header)
        return finished(name, *tables.encode(table, about.label, paths[0]), 1.0)
    images, labels = (read_idx(gzip.decompress(packed)) for packed in contents)
    _, height, width = images.shape
    flat = images.reshape(len(images), height * width)
    return finished(name, flat, pixels(height, width), *tables.encode_labels("labels", labels), BYTE)


def read_idx(content: bytes) -> np.ndarray:
    """The array of bytes in an idx file: 0, 0, 8, the number of axes, their lengths as big-endian words, the bytes."""
    axes = content[3]
    shape = np.frombuffer(content, ">u4", axes, 4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * axes).reshape(shape)


def pixels(height: int, width: int) -> tuple[str, ...]:
    """Names of the pixels of an image, row by row."""
    return tuple(f"pixel_{row}_{column}" for row in range(height) for column in range(width))


def find(file: File, about: Published, directory: Path) -> Path:
    """Where a file lies in a directory."""
    names = [file.name] if file.name.endswith(".gz") else [f"{file.name}.gz", file.name]
    for path in (directory / folder / name for folder in about.folders for name in names):
        if path.is_file():
            return path
    # Data sets share names of files: without a folder of its own only the contents tell which one it is.
    others = [directory / name for name in names if (directory / name).is_file()]
    for path in others:
        if unpacked(path, file)[1] == file.sha256:
            return path
    places = [directory / folder for folder in about.folders]
    raise InvalidArgument(
        f"{' or '.join(names)} ({file.size} bytes, sha256 {file.sha256}) is not in {' or '.join(map(str, places))}"
        + (f", and {others[0]} is another file" if others else f", nor in {directory}")
        + f": put it there, or leave the directory ({ENVIRONMENT_VARIABLE} too) out to download it"
    )


def fetch(file: File, about: Published, download: bool) -> Path:
    """Where a file lies in the user's cache, after downloading it if it is not there."""
    pooch = optional("pooch", f"downloading {file.name}")
    folder = Path(pooch.os_cache("explorax")) / about.folders[0]
    remedy = f"name a directory that holds it with directory=, --data or {ENVIRONMENT_VARIABLE}"
    if not download:
        if not (folder / file.name).is_file():
            raise InvalidArgument(f"{folder / file.name} is not there and download=False: allow it, or {remedy}")
        return folder / file.name
    failures = []
    for mirror in about.mirrors:
        try:
            return Path(pooch.retrieve(mirror + file.name, f"sha256:{file.sha256}", file.name, folder))
        except (OSError, ValueError) as error:  # connections are OSErrors, another checksum is a ValueError
            failures.append(f"{mirror}{file.name}: {error}")
    raise InvalidArgument(f"{file.name} cannot be downloaded ({'; '.join(failures)}): try later, or {remedy}")


def content(path: Path, file: File) -> bytes:
    """The contents of a file as they were published; raises where they are not."""
    found, checksum = unpacked(path, file)
    if checksum != file.sha256:
        raise InvalidArgument(
            f"{path} is damaged, or another file: {len(found)} bytes with sha256 {checksum} instead of "
            f"{file.size} bytes with sha256 {file.sha256}; delete it and download it anew, or put a whole copy there"
        )
    return found


def unpacked(path: Path, file: File) -> tuple[bytes, str]:
    """The contents that have a known checksum, and the one they have."""
    try:
        packed = path.read_bytes()
        found = packed if path.name == file.name else gzip.decompress(packed)
    except (OSError, EOFError, zlib.error) as error:
        return b"", f"unknown ({error})"
    return found, hashlib.sha256(found).hexdigest()


def finished(
    name: str,
    features: np.ndarray,
    columns: tuple[str, ...],
    labels: np.ndarray,
    classes: tuple[str, ...],
    scale: float,
) -> Dataset:
    """A checked data set whose arrays cannot be written to."""
    dataset = Dataset(name, features, labels, classes, scale, columns)
    check(dataset)
    for array in (features, labels):
        array.flags.writeable = False
    return dataset


def check(dataset: Dataset) -> None:
    """Raise unless the parts of a data set are what `Dataset` says."""
    features, labels, classes = dataset.features, dataset.labels, dataset.classes
    wanted: list[tuple[str, Any, str]] = [("features", features, "uint8 or float32"), ("labels", labels, "int32")]
    for name, array, dtypes in wanted:
        if not isinstance(array, np.ndarray) or str(array.dtype) not in dtypes.split(" or "):
            found = getattr(array, "dtype", type(array).__name__)
            raise InvalidArgument(f"{name} of data set {dataset.name!r} are {found}, not a NumPy array of {dtypes}")
    if features.ndim != 2 or features.shape[0] < 2 or features.shape[1] < 1:
        raise InvalidShape(f"features have shape {features.shape}: at least 2 examples and 1 feature are needed")
    if labels.shape != features.shape[:1] or len(dataset.columns) != features.shape[1]:
        raise InvalidShape(
            f"features of shape {features.shape} do not go with labels of shape {labels.shape} "
            f"and {len(dataset.columns)} names of columns: a label for each row, a name for each column"
        )
    if labels.min() < 0 or labels.max() >= len(classes):
        raise InvalidArgument(f"labels go from {labels.min()} to {labels.max()}: they index {len(classes)} classes")
    if features.dtype == np.float32 and not np.all(np.isfinite(features)):
        raise InvalidFeatures(f"features of data set {dataset.name!r} contain NaN or infinity: clean the data first")
    check_positive("scale", dataset.scale)
