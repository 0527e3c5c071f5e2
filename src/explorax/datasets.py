"""Data sets: public ones by name, and your own.

    load("mnist")                                  60 000 handwritten digits, downloaded once; also "fashion"
    load("mnist", directory="data")                the same, from data/mnist/train-images-idx3-ubyte.gz and …-labels-…
    load("digits")                                 1797 small handwritten digits that come with scikit-learn
    load("adult")                                  32 561 people, 6 numbers and 8 categories; also "mushroom"
    load("flowers.csv", label="species")           a table of your own: CSV with a header, or Parquet (see `tables`)
    load((X, y))                                   arrays of your own, taken as they are

The decisions of a shop with their clicks are a log, see `explorax.open_bandit`:

    open_bandit("men", "random", source="data")    10 000 recommendations of the Open Bandit Dataset

The files of public data sets are used as they were published: a file with another SHA-256 is refused.  They are looked
for in `directory`, or else in the directory that the environment variable EXPLORAX_DATA names; if neither is given,
they are downloaded into the user's cache.  In a directory each data set has a folder, or its files lie there directly.

Images stay bytes, a quarter of the memory of floats: multiply features by `scale` to use them.  A data set is
read-only, and a public one is read once in a process.
"""

import gzip
import hashlib
import os
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from explorax import tables
from explorax.checks import check_positive
from explorax.data_files import ENVIRONMENT_VARIABLE, File, as_directory, cache_folder, content, unpacked
from explorax.errors import InvalidArgument, InvalidFeatures, InvalidShape, UnknownName, shown
from explorax.extras import optional
from explorax.open_bandit import open_bandit

__all__ = ["Dataset", "Source", "from_arrays", "load", "open_bandit"]

NAMES = ("mnist", "fashion", "digits", "adult", "mushroom")
BYTE = 1 / 255  # scale of images


class Dataset(NamedTuple):
    """A labelled data set: n examples with d features and a label each.

    Attributes:
        name: The name of a public data set, the stem of a file's name, or "arrays".
        features: The (n, d) features, uint8 or float32; multiply them by `scale` to use them.
        labels: The (n,) labels as int32 indices into `classes`.
        classes: The names of the labels, sorted.
        scale: 1/255 for images, 1/16 for "digits", 1 otherwise.
        columns: The names of the features; "column_value" for a column of text that has been one-hot encoded.
    """

    name: str
    features: np.ndarray
    labels: np.ndarray
    classes: tuple[str, ...]
    scale: float
    columns: tuple[str, ...]


Source: TypeAlias = str | Path | tuple[ArrayLike, ArrayLike] | Dataset


class Published(NamedTuple):
    """The files of a public data set, and where they are found."""

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
    """Load a labelled data set: a public one by name, a table from a file, or a pair of arrays.

    Args:
        source: The name of a public data set ("mnist", "fashion", "digits", "adult" or "mushroom"), the path of a CSV
            or Parquet file, a pair (features, labels) of arrays, or a `Dataset`, which is checked and returned.
        directory: The directory with the files of public data sets.  Default: the one that the environment variable
            EXPLORAX_DATA names, or else the user's cache.
        label: The column of a file that holds the labels.  Default: the one called label, target, class or y.
        download: Whether the files of a public data set may be downloaded into the user's cache.  Default: True.

    Returns:
        The data set, whose arrays are read-only.

    Raises:
        InvalidArgument: If the source is not one of these, or if a file is missing, damaged or cannot be downloaded.
        InvalidFeatures: If features are not finite numbers.
        InvalidShape: If there are fewer than two examples or no features, or not one label for each example.
        UnknownName: If there is no public data set or no column of that name; the error suggests the nearest.

    Example:
        >>> import explorax
        >>> data = explorax.datasets.load(([[0.1, 2.0], [0.3, 1.0], [0.2, 3.0]], ["cat", "dog", "cat"]))
        >>> data.features.shape, data.classes, data.labels.tolist()
        ((3, 2), ('cat', 'dog'), [0, 1, 0])
    """
    path = as_path(source)
    if label is not None and path is None:
        raise InvalidArgument(f"label must be left out unless the source is a CSV or Parquet file, got {shown(label)}.")
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
        f"source must be a data set, got {shown(source)}. Give one of {', '.join(NAMES)}, "
        "the path of a CSV or Parquet file, or a pair (features, labels)."
    )


def known_name(name: str) -> str:
    """Return the name of a public data set as `NAMES` spells it, or raise `UnknownName`."""
    known = {"fashion-mnist": "fashion"}.get(name.lower().replace("_", "-"), name.lower())
    if known not in NAMES:
        raise UnknownName("data set", name, NAMES)
    return known


def as_path(source: object) -> Path | None:
    """Return the path of a table, or None if the source is something else."""
    if isinstance(source, str):
        is_path = source.lower().endswith(tables.ENDINGS) or "/" in source or os.sep in source
        return Path(source).expanduser() if is_path else None
    return source.expanduser() if isinstance(source, Path) else None


def digest(source: object) -> str | None:
    """Return a digest of the contents of a user's file, which may change; None for other sources, which do not."""
    path = as_path(source)
    if path is None and isinstance(source, str) and Path(source).is_file():
        path = Path(source)  # a log, whose name may have any ending
    if path is None:
        return None
    beside = Path(f"{path}-wal")  # what SQLite has yet to write into a log
    content = path.read_bytes() + (beside.read_bytes() if beside.is_file() else b"")
    return hashlib.sha256(content).hexdigest()[:16]


def from_arrays(features: ArrayLike, labels: ArrayLike) -> Dataset:
    """Make a data set of arrays.

    Args:
        features: The (n, d) numbers, as an array or a data frame.
        labels: The n labels: whole numbers, texts or booleans.

    Returns:
        The data set, with features in float32.

    Raises:
        InvalidArgument: If labels are missing or have another type.
        InvalidFeatures: If features are not finite numbers.
        InvalidShape: If features are not a matrix of at least two rows, or there is not one label for each row.
    """
    matrix, classes = as_array("features", features), as_array("labels", labels)
    if matrix.dtype.kind == "O":  # e.g. a data frame with columns of several types
        matrix = as_array("features", matrix.tolist())
    if matrix.ndim != 2 or matrix.dtype.kind in "cmMOSU":
        error = InvalidShape if matrix.ndim != 2 else InvalidFeatures
        raise error(f"features must be a row of numbers for each example, got {matrix.dtype} of shape {matrix.shape}.")
    if classes.shape != matrix.shape[:1]:
        raise InvalidShape(f"labels must have shape {matrix.shape[:1]}, one for each example, got {classes.shape}.")
    columns = getattr(features, "columns", [f"x{index}" for index in range(matrix.shape[1])])  # of a data frame
    with np.errstate(over="ignore"):
        matrix = matrix.astype(np.float32)
    return finished("arrays", matrix, tuple(map(str, columns)), *tables.encode_labels("labels", classes), 1.0)


def as_array(name: str, values: ArrayLike) -> np.ndarray:
    """Return values as a NumPy array, or raise `InvalidFeatures` if they cannot be one."""
    try:
        return np.asarray(values)
    except (TypeError, ValueError):
        raise InvalidFeatures(f"{name} must be an array, got {shown(values)}.") from None


@cache
def digits() -> Dataset:
    """Load the 1797 handwritten digits of 8 × 8 pixels that come with scikit-learn."""
    bundle = optional("sklearn.datasets", "the data set digits").load_digits()
    features, labels = bundle.data.astype(np.uint8), tables.encode_labels("labels", bundle.target)
    return finished("digits", features, pixels(8, 8), *labels, 1 / 16)


@cache
def published(name: str, directory: Path | None, download: bool) -> Dataset:
    """Load a public data set from its files, which are in a directory, in the cache, or downloaded."""
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
    """Return the array of bytes that the content of an idx file holds."""
    # 0, 0, 8, the number of axes, their lengths as big-endian words, then the bytes.
    axes = content[3]
    shape = np.frombuffer(content, ">u4", axes, 4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * axes).reshape(shape)


def pixels(height: int, width: int) -> tuple[str, ...]:
    """Return the names of the pixels of an image, row by row."""
    return tuple(f"pixel_{row}_{column}" for row in range(height) for column in range(width))


def find(file: File, about: Published, directory: Path) -> Path:
    """Return the path of a published file in a directory, or raise `InvalidArgument` if it is not there."""
    names = [file.name] if file.name.endswith(".gz") else [f"{file.name}.gz", file.name]
    for path in (directory / folder / name for folder in about.folders for name in names):
        if path.is_file():
            return path
    # Data sets share names of files: without a folder of its own only the contents tell whose file it is.
    others = [directory / name for name in names if (directory / name).is_file()]
    for path in others:
        if unpacked(path, file)[1] == file.sha256:
            return path
    places = [directory / folder for folder in about.folders]
    raise InvalidArgument(
        f"{' or '.join(names)} ({file.size} bytes, sha256 {file.sha256}) is not in {' or '.join(map(str, places))}"
        + (f", and {others[0]} is another file" if others else f", nor in {directory}")
        + f". Put it there, or leave out directory and {ENVIRONMENT_VARIABLE} to download it."
    )


def fetch(file: File, about: Published, download: bool) -> Path:
    """Return the path of a published file in the user's cache, and download it first if it is not there."""
    pooch = optional("pooch", f"downloading {file.name}")
    folder = cache_folder(f"downloading {file.name}") / about.folders[0]
    remedy = f"name a directory that holds it with directory=, --data or {ENVIRONMENT_VARIABLE}."
    if not download:
        if not (folder / file.name).is_file():
            raise InvalidArgument(
                f"{folder / file.name} does not exist and download=False. Allow the download, or {remedy}"
            )
        return folder / file.name
    failures = []
    for mirror in about.mirrors:
        try:
            return Path(pooch.retrieve(mirror + file.name, f"sha256:{file.sha256}", file.name, folder))
        except (OSError, ValueError) as error:  # connections are OSErrors, another checksum is a ValueError
            failures.append(f"{mirror}{file.name}: {error}")
    raise InvalidArgument(f"{file.name} cannot be downloaded ({'; '.join(failures)}). Try later, or {remedy}")


def finished(
    name: str,
    features: np.ndarray,
    columns: tuple[str, ...],
    labels: np.ndarray,
    classes: tuple[str, ...],
    scale: float,
) -> Dataset:
    """Return a data set that has been checked and whose arrays are read-only."""
    dataset = Dataset(name, features, labels, classes, scale, columns)
    check(dataset)
    for array in (features, labels):
        array.flags.writeable = False
    return dataset


def check(dataset: Dataset) -> None:
    """Raise unless the arrays of a data set have the types, shapes and ranges that `Dataset` documents."""
    features, labels, classes = dataset.features, dataset.labels, dataset.classes
    wanted: list[tuple[str, Any, str]] = [("features", features, "uint8 or float32"), ("labels", labels, "int32")]
    for name, array, dtypes in wanted:
        if not isinstance(array, np.ndarray) or str(array.dtype) not in dtypes.split(" or "):
            found = getattr(array, "dtype", type(array).__name__)
            raise InvalidArgument(
                f"{name} of data set {shown(dataset.name)} must be a NumPy array of {dtypes}, got {found}."
            )
    if features.ndim != 2 or features.shape[0] < 2 or features.shape[1] < 1:
        raise InvalidShape(f"features must have at least 2 examples and 1 feature, got shape {features.shape}.")
    if labels.shape != features.shape[:1] or len(dataset.columns) != features.shape[1]:
        raise InvalidShape(
            f"features of shape {features.shape} must have a label for each row and a name for each column, "
            f"got labels of shape {labels.shape} and {len(dataset.columns)} names."
        )
    if labels.min() < 0 or labels.max() >= len(classes):
        raise InvalidArgument(
            f"labels must be indices of the {len(classes)} classes, got {labels.min()} to {labels.max()}."
        )
    if features.dtype == np.float32 and not np.all(np.isfinite(features)):
        raise InvalidFeatures(
            f"features of data set {shown(dataset.name)} must be finite, got NaN or infinity. Clean the data first."
        )
    check_positive("scale", dataset.scale)
