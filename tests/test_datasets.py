"""Data sets are read exactly, from files that are what they say or not at all; nonsense is refused with a remedy."""

import decimal
import functools
import gzip
import hashlib
import http.server
import importlib
import re
import struct
import threading
from datetime import date
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pooch
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from explorax import datasets, tables
from explorax.datasets import IMAGES, LABELS, Dataset, load
from explorax.errors import InvalidArgument, InvalidFeatures, InvalidShape, UnknownName

PIXELS = np.arange(4 * 2 * 3, dtype=np.uint8).reshape(4, 2, 3)
DIGITS = np.array([7, 0, 7, 3], np.uint8)
ADULT = (
    "39, State-gov, 7, Bachelors, 13, Single, Clerk, Child, White, Male, 0, 0, 40, Cuba, <=50K\n"
    "41, ?, 7, Bachelors, 15, Single, Clerk, Child, White, Female, 0, 0, 40, Cuba, >50K\n\n"
)


def idx(array):
    head = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return gzip.compress(head + array.tobytes(), mtime=0)  # the same bytes whenever they are made


IMAGE_FILE, LABEL_FILE = idx(PIXELS), idx(DIGITS)
OTHER_IMAGES, OTHER_LABELS = idx(255 - PIXELS), idx(DIGITS[::-1])


def file(name, content):
    return datasets.File(name, len(content), hashlib.sha256(content).hexdigest())


@pytest.fixture(autouse=True)
def small(monkeypatch, tmp_path):
    """Public data sets of a few examples, no mirrors, an empty cache and no directory."""
    files = {
        "mnist": (file(IMAGES, IMAGE_FILE), file(LABELS, LABEL_FILE)),
        "fashion": (file(IMAGES, OTHER_IMAGES), file(LABELS, OTHER_LABELS)),
        "adult": (file("adult.data", ADULT.encode()),),
    }
    for name, expected in files.items():
        about = datasets.PUBLISHED[name]._replace(files=expected, mirrors=())
        monkeypatch.setitem(datasets.PUBLISHED, name, about)
    monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path / "cache" / name)
    monkeypatch.delenv("EXPLORAX_DATA", raising=False)
    datasets.published.cache_clear()
    yield
    datasets.published.cache_clear()


def put(folder, images=IMAGE_FILE, labels=LABEL_FILE):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / IMAGES).write_bytes(images)
    (folder / LABELS).write_bytes(labels)


def test_images_are_the_bytes_of_the_files(tmp_path):
    put(tmp_path / "mnist")
    found = load("mnist", directory=tmp_path)
    assert (found.name, found.classes, found.scale) == ("mnist", ("0", "3", "7"), 1 / 255)
    assert found.features.dtype == np.uint8
    np.testing.assert_array_equal(found.features, np.arange(24).reshape(4, 6))
    assert found.labels.dtype == np.int32
    assert found.labels.tolist() == [2, 0, 2, 1]
    assert found.columns == ("pixel_0_0", "pixel_0_1", "pixel_0_2", "pixel_1_0", "pixel_1_1", "pixel_1_2")


@pytest.mark.parametrize("name", ["fashion", "Fashion-MNIST", "fashion_mnist"])
@pytest.mark.parametrize("folder", ["fashion-mnist", "fashion", ""])
def test_fashion_has_several_spellings_and_folders(tmp_path, name, folder):
    put(tmp_path / folder, OTHER_IMAGES, OTHER_LABELS)
    found = load(name, directory=str(tmp_path))
    assert found.name == "fashion"
    assert found.features[0].tolist() == [255, 254, 253, 252, 251, 250]


def test_a_directory_is_named_by_the_environment_unless_given(tmp_path, monkeypatch):
    put(tmp_path / "one" / "mnist")
    monkeypatch.setenv("EXPLORAX_DATA", str(tmp_path / "one"))
    assert load("mnist").labels.tolist() == [2, 0, 2, 1]
    with pytest.raises(InvalidArgument, match=re.escape(str(tmp_path / "two" / "mnist"))):
        load("mnist", directory=tmp_path / "two")


def test_a_named_set_is_read_once_and_cannot_be_written_to(tmp_path):
    put(tmp_path / "mnist")
    found = load("mnist", directory=tmp_path)
    assert load("MNIST", directory=tmp_path) is found
    for array in (found.features, found.labels, load("digits").features, load((np.eye(3), [0, 1, 1])).labels):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_a_missing_file_is_named_with_what_is_expected_and_where(tmp_path):
    put(tmp_path)  # files of mnist under names that fashion has too
    assert load("mnist", directory=tmp_path).name == "mnist"
    with pytest.raises(InvalidArgument) as caught:
        load("fashion", directory=tmp_path)
    expected = datasets.PUBLISHED["fashion"].files[0]
    for part in (
        f"{IMAGES} ({expected.size} bytes, sha256 {expected.sha256}) is not in",
        f"{tmp_path / 'fashion-mnist'} or {tmp_path / 'fashion'}, and {tmp_path / IMAGES} is another file",
        "Put it there, or leave out directory and EXPLORAX_DATA to download it.",
    ):
        assert part in str(caught.value)


@pytest.mark.parametrize("damaged", [IMAGE_FILE[:-5], b"", OTHER_IMAGES], ids=["cut", "empty", "another"])
def test_a_damaged_file_is_refused_with_both_checksums(tmp_path, damaged):
    put(tmp_path / "mnist", images=damaged)
    with pytest.raises(InvalidArgument) as caught:
        load("mnist", directory=tmp_path)
    expected, found = datasets.PUBLISHED["mnist"].files[0], file(IMAGES, damaged)
    for part in (
        str(tmp_path / "mnist" / IMAGES),
        expected.sha256,
        found.sha256,
        f"{len(damaged)} bytes",
        "whole copy",
    ):
        assert part in str(caught.value)


@pytest.mark.parametrize("packed", [True, False])
def test_adult_may_be_compressed_and_keeps_question_marks(tmp_path, packed):
    (tmp_path / "adult").mkdir()
    content = ADULT.encode()
    name = "adult.data.gz" if packed else "adult.data"
    (tmp_path / "adult" / name).write_bytes(gzip.compress(content) if packed else content)
    found = load("adult", directory=tmp_path)
    assert (found.name, found.classes, found.scale, found.labels.tolist()) == ("adult", ("<=50K", ">50K"), 1.0, [0, 1])
    row = dict(zip(found.columns, found.features.T.tolist(), strict=True))
    assert row["age"] == [-1, 1]
    assert row["fnlwgt"] == [0, 0]
    assert row["workclass_?"] == [0, 1]
    assert row["workclass_State-gov"] == [1, 0]
    assert row["sex_Female"] == [0, 1]
    assert row["native-country_Cuba"] == [1, 1]
    assert not any(column.startswith("income") for column in found.columns)


def test_a_compressed_table_that_cannot_be_unpacked_is_damaged(tmp_path):
    (tmp_path / "adult").mkdir()
    (tmp_path / "adult" / "adult.data.gz").write_bytes(gzip.compress(ADULT.encode())[:-9])
    with pytest.raises(InvalidArgument, match=r"adult.data.gz is damaged.*sha256 unknown \(Compressed file ended"):
        load("adult", directory=tmp_path)


def test_constants_of_the_published_tables():
    adult, mushroom = datasets.PUBLISHED["adult"], datasets.PUBLISHED["mushroom"]
    assert (len(adult.header), len(set(adult.header)), adult.label) == (15, 15, adult.header[-1])
    assert (len(mushroom.header), len(set(mushroom.header)), mushroom.label) == (23, 23, mushroom.header[0])
    assert set(datasets.NAMES) == {"digits", *datasets.PUBLISHED}


def test_digits_come_with_scikit_learn():
    found = load("digits", directory="/nowhere")
    assert (found.features.shape, found.features.dtype, found.scale) == ((1797, 64), np.uint8, 1 / 16)
    assert (found.features.min(), found.features.max()) == (0, 16)
    assert found.features[0, :8].tolist() == [0, 0, 5, 13, 9, 1, 0, 0]
    assert found.labels[:10].tolist() == list(range(10))
    assert found.classes == tuple("0123456789")
    assert found.columns[9] == "pixel_1_1"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        super().do_GET()

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A mirror on the loopback device that serves tmp_path/served and knows what it was asked for."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    (tmp_path / "served").mkdir()
    handler = functools.partial(Quiet, directory=str(tmp_path / "served"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.asked = []
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def mirrors(monkeypatch, server, *folders):
    urls = tuple(f"http://127.0.0.1:{server.server_port}/{folder}/" for folder in folders)
    monkeypatch.setitem(datasets.PUBLISHED, "mnist", datasets.PUBLISHED["mnist"]._replace(mirrors=urls))


def test_downloads_try_one_mirror_after_another_and_only_once(tmp_path, monkeypatch, server):
    put(tmp_path / "served" / "wrong", OTHER_IMAGES, LABEL_FILE)
    put(tmp_path / "served" / "right")
    mirrors(monkeypatch, server, "absent", "wrong", "right")
    found = load("mnist")
    assert found.labels.tolist() == [2, 0, 2, 1]
    np.testing.assert_array_equal(found.features, np.arange(24).reshape(4, 6))
    order = [path for path in server.asked if path.endswith(IMAGES)]
    assert order == [f"/{folder}/{IMAGES}" for folder in ("absent", "wrong", "right")]
    kept = tmp_path / "cache" / "explorax" / "mnist"
    assert sorted(path.name for path in kept.iterdir()) == [IMAGES, LABELS]
    server.asked.clear()
    datasets.published.cache_clear()
    assert load("mnist", download=False).name == "mnist"
    datasets.published.cache_clear()
    assert load("mnist").name == "mnist"
    assert server.asked == []


def test_a_cached_file_that_was_damaged_is_downloaded_again(tmp_path, monkeypatch, server):
    put(tmp_path / "served" / "right")
    put(tmp_path / "cache" / "explorax" / "mnist", images=IMAGE_FILE[:-1])
    mirrors(monkeypatch, server, "right")
    with pytest.raises(InvalidArgument, match="is damaged"):
        load("mnist", download=False)
    assert load("mnist").labels.tolist() == [2, 0, 2, 1]


def test_a_failed_download_says_what_was_tried_and_what_to_do(tmp_path, monkeypatch, server):
    put(tmp_path / "served" / "wrong", OTHER_IMAGES, LABEL_FILE)
    mirrors(monkeypatch, server, "absent", "wrong")
    with pytest.raises(InvalidArgument) as caught:
        load("mnist")
    for part in (
        f"{IMAGES} cannot be downloaded",
        f"/absent/{IMAGES}: 404",
        f"/wrong/{IMAGES}: SHA256 hash",
        "name a directory that holds it with directory=, --data or EXPLORAX_DATA",
    ):
        assert part in str(caught.value)
    with pytest.raises(
        InvalidArgument, match=f"{IMAGES} does not exist and download=False. Allow the download, or name"
    ):
        load("mnist", download=False)


@pytest.mark.parametrize(
    ("absent", "source", "words"),
    [
        ("pooch", "mnist", r"^Downloading .* needs pooch\. Install it with pip install 'explorax\[experiments\]'\."),
        ("sklearn.datasets", "digits", r"digits needs sklearn\.datasets\. Install .* 'explorax\[experiments\]'\."),
        ("pyarrow", "table.csv", r"^Reading a table needs pyarrow\. Install .* 'explorax\[experiments\]'\."),
    ],
)
def test_a_missing_package_is_named(tmp_path, monkeypatch, absent, source, words):
    def import_module(name):
        if name == absent:
            raise ModuleNotFoundError(name)
        return importlib.import_module(name)

    (tmp_path / "table.csv").write_text("x,y\n1,2\n3,4\n")
    monkeypatch.chdir(tmp_path)
    datasets.digits.cache_clear()
    monkeypatch.setattr("explorax.extras.importlib", type("stub", (), {"import_module": staticmethod(import_module)}))
    with pytest.raises(ImportError, match=words):
        load(source)


TABLE = {
    "size": [1.0, 2.0, 3.0, 6.0],
    "color": ["red", "blue", "red", None],
    "constant": [0.1, 0.1, 0.1, 0.1],
    "good": [True, False, False, True],
    "label": ["b", "a", "b", "c"],
}
CSV = "size,color,constant,good,label\n1,red,0.1,true,b\n2,blue,0.1,false,a\n3,red,0.1,false,b\n6,,0.1,true,c\n"
COLUMNS = ("size", "color_blue", "color_red", "color_(missing)", "constant", "good_False", "good_True")


def write(path, content):
    """A file of a table, from text or columns."""
    if path.name.endswith(".parquet"):
        pq.write_table(content if isinstance(content, pa.Table) else pa.table(content), path)
    elif path.name.endswith(".gz"):
        path.write_bytes(gzip.compress(content.encode()))
    else:
        path.write_text(content)
    return path


@pytest.mark.parametrize(
    ("name", "content"), [("pets.csv", CSV), ("pets.csv.gz", CSV), ("pets.CSV", CSV), ("pets.parquet", TABLE)]
)
def test_a_table_is_standardized_and_one_hot(tmp_path, name, content):
    path = write(tmp_path / name, content)
    for source in (path, str(path)):
        found = load(source, directory="/nowhere")
        assert (found.name, found.scale, found.classes, found.columns) == ("pets", 1.0, ("a", "b", "c"), COLUMNS)
        assert found.labels.tolist() == [1, 0, 1, 2]
        assert found.features.dtype == np.float32
        wanted = [[-2, 0, 1, 0, 0, 0, 1], [-1, 1, 0, 0, 0, 1, 0], [0, 0, 1, 0, 0, 1, 0], [3, 0, 0, 1, 0, 0, 1]]
        wanted = np.array(wanted, np.float64)
        wanted[:, 0] /= np.sqrt(3.5)
        np.testing.assert_allclose(found.features, wanted, rtol=1e-6, atol=0)


def test_a_relative_name_that_ends_as_a_table_is_a_path(tmp_path, monkeypatch):
    write(tmp_path / "my.pets.csv", CSV)
    monkeypatch.chdir(tmp_path)
    assert load("my.pets.csv").name == "my.pets"
    assert load("my.pets.csv", label="good").classes == ("False", "True")


@pytest.mark.parametrize(
    ("labels", "classes", "index"),
    [
        ([10, 2, 10], ("2", "10"), [1, 0, 1]),
        ([1.0, -1.0, 1.0], ("-1", "1"), [1, 0, 1]),
        ([True, False, True], ("False", "True"), [1, 0, 1]),
        (["b", "", "b"], ("", "b"), [1, 0, 1]),
        (pa.array(["b", "a", "b"]).dictionary_encode(), ("a", "b"), [1, 0, 1]),
        (pa.array([decimal.Decimal(7), decimal.Decimal(5), decimal.Decimal(7)]), ("5", "7"), [1, 0, 1]),
        (pa.array(["b", "a", "b"], pa.large_string()), ("a", "b"), [1, 0, 1]),
        ([4, 4, 4], ("4",), [0, 0, 0]),
    ],
)
def test_labels_of_a_table(tmp_path, labels, classes, index):
    path = write(tmp_path / "table.parquet", {"x": [1, 2, 3], "kind": labels, "y": [0, 0, 1]})
    found = load(path, label="kind")
    assert (found.classes, found.labels.tolist(), found.columns) == (classes, index, ("x", "y"))


@pytest.mark.parametrize(
    ("values", "columns", "rows"),
    [
        (pa.array(["b", None, "b"]).dictionary_encode(), ("x_b", "x_(missing)"), [[1, 0], [0, 1], [1, 0]]),
        (pa.array(["b", "a", None], pa.string_view()), ("x_a", "x_b", "x_(missing)"), np.eye(3)[[1, 0, 2]]),
        ([None, True, None], ("x_True", "x_(missing)"), [[0, 1], [1, 0], [0, 1]]),
        ([0.0, 1.5e308, -1.5e308], ("x",), np.sqrt([[0], [1.5], [1.5]]) * [[1], [1], [-1]]),
        ([0.0, 2e-308, -2e-308], ("x",), np.sqrt([[0], [1.5], [1.5]]) * [[1], [1], [-1]]),
        (pa.array([1, 3, 2], pa.uint8()), ("x",), np.sqrt([[1.5], [1.5], [0]]) * [[-1], [1], [1]]),
        (pa.array([decimal.Decimal(k) for k in "132"]), ("x",), np.sqrt([[1.5], [1.5], [0]]) * [[-1], [1], [1]]),
    ],
)
def test_columns_of_a_table(tmp_path, values, columns, rows):
    found = load(write(tmp_path / "table.parquet", {"x": values, "y": [0, 0, 1]}))
    assert found.columns == columns
    np.testing.assert_allclose(found.features, rows, atol=1e-6)


def test_numbers_in_a_dictionary_are_categories():
    dictionaries = [pa.array(part).dictionary_encode() for part in ([20, 3], [3, None])]
    found = tables.encode(pa.table({"x": pa.chunked_array(dictionaries), "y": [0, 0, 1, 1]}), None, "a table")
    assert found.columns == ("x_3", "x_20", "x_(missing)")
    np.testing.assert_array_equal(found.features, [[0, 1, 0], [1, 0, 0], [1, 0, 0], [0, 0, 1]])


def test_a_fraction_far_down_a_file_is_read(tmp_path):
    lines = ["x,y", *["1,0"] * 600_000, "0.5,1"]  # beyond the megabyte that pyarrow guesses types from at first
    found = load(write(tmp_path / "table.csv", "\n".join(lines)))
    assert found.features.shape == (600_001, 1)
    assert found.features[-1, 0] < -700


def test_columns_are_not_taken_from_the_names_of_folders(tmp_path):
    (tmp_path / "year=2020").mkdir()
    found = load(write(tmp_path / "year=2020" / "table.parquet", {"x": [1, 2], "y": [0, 1]}))
    assert found.columns == ("x",)


BAD_TABLES = [
    (
        "t.csv",
        "a,b\n1,2\n3,4\n",
        {},
        InvalidArgument,
        r"t.csv must have one column called .*, got 0 among \['a', 'b'\]\. .* label=",
    ),
    (
        "t.csv",
        "y,class,x\n1,2,3\n3,4,5\n",
        {},
        InvalidArgument,
        "one column called label or target or class or y, got 2 among",
    ),
    (
        "t.csv",
        CSV,
        {"label": "colour"},
        UnknownName,
        "label column of .* must be one of .*, got 'colour'. Did you mean 'color'",
    ),
    ("t.csv", "x,x,y\n1,2,0\n3,4,1\n", {}, InvalidArgument, "different names, got several columns called 'x'. Rename"),
    (
        "t.csv",
        "x,y\n1,0\n,1\nNA,1\n",
        {},
        InvalidFeatures,
        "Column 'x' of .* must hold finite numbers, got 2 of 3 rows without one. Drop",
    ),
    ("t.csv", "x,y\ninf,0\n1,1\n", {}, InvalidFeatures, "Column 'x' of .* must hold finite numbers, got 1 of 2 rows"),
    (
        "t.parquet",
        {"x": [1.0, np.nan], "y": [0, 1]},
        {},
        InvalidFeatures,
        "finite numbers, got 1 of 2 rows without one",
    ),
    ("t.parquet", {"x": pa.nulls(2), "y": [0, 1]}, {}, InvalidFeatures, "finite numbers, got 2 of 2 rows without one"),
    (
        "t.csv",
        "x,y\n1,a\n2,\n3,b\n",
        {},
        InvalidArgument,
        "labels in column 'y' of .* must not be missing, got 1 of 3 rows without a label. Drop",
    ),
    ("t.csv", "x,y\n1,1\n2,\n3,\n", {}, InvalidArgument, "must not be missing, got 2 of 3 rows"),
    ("t.csv", "x,y\n1,1.0\n2,2.5\n", {}, InvalidArgument, "must be whole numbers, text or bools, got 2.5. Give"),
    (
        "t.parquet",
        {"x": [1, 2], "y": [1.0, np.inf]},
        {},
        InvalidArgument,
        "must be whole numbers, text or bools, got inf",
    ),
    (
        "t.parquet",
        {"x": [1, 2], "y": [date(2020, 1, 1)] * 2},
        {},
        InvalidArgument,
        "must be text, whole numbers or bools, got values of type datetime64",
    ),
    (
        "t.parquet",
        {"x": [date(2020, 1, 1)] * 2, "y": [0, 1]},
        {},
        InvalidFeatures,
        "Column 'x' of .* must hold numbers, text or bools, got the type date32.*into numbers",
    ),
    (
        "t.parquet",
        {"x": [[1], [2]], "y": [0, 1]},
        {},
        InvalidFeatures,
        "got the type list<.*Turn it into numbers or text",
    ),
    (
        "t.parquet",
        {"id": [f"n{k}" for k in range(1001)], "y": [0] * 1001},
        {},
        InvalidFeatures,
        "Column 'id' of .* must have at most 1000 different values, got 1001. Leave it out",
    ),
    (
        "t.csv",
        "y\n1\n2\n",
        {},
        InvalidShape,
        "at least 2 rows and 1 column .*, got 2 rows and 0 columns beside the labels",
    ),
    ("t.csv", "x,y\n1,2\n", {}, InvalidShape, "got 1 rows and 1 columns beside the labels"),
    ("t.csv", "x,y\n", {}, InvalidShape, "got 0 rows"),
    ("t.csv", "", {}, InvalidArgument, r"t.csv cannot be read: Empty CSV file\. Write it anew"),
    ("t.csv", "x,y\n1,2\n3\n", {}, InvalidArgument, "cannot be read: .*Expected 2 columns"),
]


@pytest.mark.parametrize(("name", "content", "settings", "error", "words"), BAD_TABLES)
def test_a_table_that_cannot_be_used(tmp_path, name, content, settings, error, words):
    with pytest.raises(error, match=words):
        load(write(tmp_path / name, content), **settings)


@pytest.mark.parametrize("name", ["t.parquet", "t.csv.gz"])
def test_a_damaged_table(tmp_path, name):
    (tmp_path / name).write_bytes(b"junk")
    with pytest.raises(InvalidArgument, match=f"{name} cannot be read: "):
        load(tmp_path / name)


def test_a_text_column_may_have_a_thousand_values(tmp_path):
    names = [f"n{k:04}" for k in range(1000)]
    found = load(write(tmp_path / "t.parquet", {"id": names[::-1], "y": [0] * 1000}))
    np.testing.assert_array_equal(found.features, np.eye(1000)[::-1])


FEATURES = [[1, 2], [3, 4], [5, 300]]


@pytest.mark.parametrize(
    ("features", "labels", "columns", "classes"),
    [
        (FEATURES, [10, 2, 10], ("x0", "x1"), ("2", "10")),
        (np.array(FEATURES, np.uint16), ["b", "a", "b"], ("x0", "x1"), ("a", "b")),
        (np.array(FEATURES, np.float32), np.array([True, False, True]), ("x0", "x1"), ("False", "True")),
        (jnp.array(FEATURES, jnp.float64), jnp.array([1, 0, 1]), ("x0", "x1"), ("0", "1")),
        (jnp.array(FEATURES, jnp.bfloat16), [1.0, 0.0, 1.0], ("x0", "x1"), ("0", "1")),
        (np.array(FEATURES, object), np.array(["b", "a", "b"], object), ("x0", "x1"), ("a", "b")),
        (pd.DataFrame(FEATURES, columns=["u", "v"]), pd.Series(["b", "a", "b"]), ("u", "v"), ("a", "b")),
        (pd.DataFrame(FEATURES), pd.Categorical(["b", "a", "b"]), ("0", "1"), ("a", "b")),
    ],
)
def test_arrays_are_taken_as_they_are(features, labels, columns, classes):
    found = load((features, labels))
    assert (found.name, found.scale, found.columns, found.classes) == ("arrays", 1.0, columns, classes)
    assert (found.features.dtype, found.labels.dtype) == (np.float32, np.int32)
    np.testing.assert_array_equal(found.features, FEATURES)
    assert found.labels.tolist() == [1, 0, 1]


def test_a_frame_of_numbers_and_bools():
    frame = pd.DataFrame({"u": [1, 2], "v": [True, False]})
    np.testing.assert_array_equal(load((frame, [0, 0])).features, [[1, 1], [2, 0]])


def test_arrays_are_copied():
    features, labels = np.eye(3, dtype=np.float32), np.array([0, 1, 1], np.int32)
    found = load((features, labels))
    features[0, 0], labels[0] = 9, 1
    assert found.features[0, 0] == 1
    assert found.labels[0] == 0


BAD_ARRAYS = [
    ((np.eye(3)[0], [0, 1, 1]), InvalidShape, r"features must be a row of numbers .*, got float64 of shape \(3,\)"),
    (
        (np.zeros((2, 2, 2)), [0, 1]),
        InvalidShape,
        r"features must be a row of numbers .*, got float64 of shape \(2, 2, 2\)",
    ),
    (
        ([["a", "b"], ["c", "d"]], [0, 1]),
        InvalidFeatures,
        "features must be a row of numbers for each example, got <U1",
    ),
    ((pd.DataFrame({"u": [1, 2], "v": ["1", "2"]}), [0, 1]), InvalidFeatures, "features must be a row of numbers"),
    ((np.eye(2) * 1j, [0, 1]), InvalidFeatures, "features must be a row of numbers .*, got complex128"),
    (([[1, 2], [3]], [0, 1]), InvalidFeatures, r"features must be an array, got \[\[1, 2\], \[3\]\]"),
    (([[1, np.nan], [3, 4]], [0, 1]), InvalidFeatures, "must be finite, got NaN or infinity. Clean"),
    (([[1, 1e300], [3, 4]], [0, 1]), InvalidFeatures, "must be finite, got NaN or infinity"),
    ((np.eye(3), [0, 1]), InvalidShape, r"labels must have shape \(3,\), one for each example, got \(2,\)"),
    ((np.eye(3), np.eye(3)), InvalidShape, r"labels must have shape \(3,\), one for each example, got \(3, 3\)"),
    ((np.eye(3), [0, 0.5, 1]), InvalidArgument, "labels must be whole numbers, text or bools, got 0.5"),
    ((np.eye(3), [0, np.nan, 1]), InvalidArgument, "labels must not be missing, got 1 of 3 rows without a label"),
    ((np.eye(3), ["a", None, None]), InvalidArgument, "labels must not be missing, got 2 of 3 rows without a label"),
    (
        (np.eye(3), pd.Series(["a", np.nan, "b"])),
        InvalidArgument,
        "labels must not be missing, got 1 of 3 rows without a label",
    ),
    (
        (np.eye(3), np.array(["a", 1, "b"], object)),
        InvalidArgument,
        "labels must all be text, whole numbers or bools, got a mix of int, str",
    ),
    (
        (np.eye(3), np.array([b"a", b"b", b"a"])),
        InvalidArgument,
        r"labels must be text, whole numbers or bools, got values of type \|S1",
    ),
    ((np.eye(1), [0]), InvalidShape, r"features must have at least 2 examples and 1 feature, got shape \(1, 1\)"),
    ((np.zeros((3, 0)), [0, 1, 1]), InvalidShape, "at least 2 examples and 1 feature"),
    ((np.eye(3),), InvalidArgument, "source must be a data set, got .* Give one of mnist"),
    (7, InvalidArgument, "source must be a data set, got 7"),
    (None, InvalidArgument, "source must be a data set, got None"),
    ("mnits", UnknownName, "data set must be one of .*, got 'mnits'. Did you mean 'mnist'"),
    ("fashion mnist", UnknownName, "Did you mean 'fashion'"),
    ("cifar10", UnknownName, "must be one of adult, digits, fashion, mnist, mushroom"),
    ("absent.csv", InvalidArgument, "absent.csv does not exist. Give the path"),
    ("data/mnist", InvalidArgument, "data/mnist is not a table. Give a file that ends in .csv, .csv.gz, .parquet"),
    (Path("mnist"), InvalidArgument, "mnist is not a table"),
]


@pytest.mark.parametrize(("source", "error", "words"), BAD_ARRAYS)
def test_a_source_that_cannot_be_used(source, error, words):
    with pytest.raises(error, match=words):
        load(source)


@pytest.mark.parametrize("source", ["mnist", (np.eye(2), [0, 1])])
def test_only_a_table_has_a_label_column(source):
    with pytest.raises(
        InvalidArgument, match="label must be left out unless the source is a CSV or Parquet file, got 'y'"
    ):
        load(source, label="y")


def test_a_directory_must_be_a_path():
    with pytest.raises(InvalidArgument, match="directory must be the path of a directory, got 7"):
        load("mnist", directory=7)


GOOD = Dataset("mine", np.eye(3, dtype=np.float32), np.array([0, 1, 1], np.int32), ("a", "b"), 1.0, ("x", "y", "z"))


def test_a_data_set_passes_through():
    assert load(GOOD) is GOOD
    single = GOOD._replace(labels=np.zeros(3, np.int32), classes=("a",))
    assert load(single) is single


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (
            {"features": np.eye(3)},
            InvalidArgument,
            "features of data set 'mine' must be .* of uint8 or float32, got float64",
        ),
        ({"features": [[1]]}, InvalidArgument, "features of data set 'mine' must be a NumPy array .*, got list"),
        ({"labels": np.array([0, 1, 1])}, InvalidArgument, "labels of data set 'mine' must be .* of int32, got int64"),
        (
            {"labels": np.array([0, 1], np.int32)},
            InvalidShape,
            r"must have a label for each row .*, got labels of shape \(2,\)",
        ),
        ({"columns": ("x",)}, InvalidShape, "a name for each column, got .* and 1 names"),
        (
            {"labels": np.array([0, 1, 2], np.int32)},
            InvalidArgument,
            "labels must be indices of the 2 classes, got 0 to 2",
        ),
        (
            {"labels": np.array([0, 1, -1], np.int32)},
            InvalidArgument,
            "labels must be indices of the 2 classes, got -1 to 1",
        ),
        ({"features": np.full((3, 3), np.inf, np.float32)}, InvalidFeatures, "must be finite, got NaN or infinity"),
        (
            {"features": np.ones(3, np.uint8)},
            InvalidShape,
            r"features must have at least 2 examples and 1 feature, got shape \(3,\)",
        ),
        ({"scale": 0.0}, InvalidArgument, "scale must be a finite number above 0, got 0.0"),
    ],
)
def test_a_data_set_is_checked(change, error, words):
    with pytest.raises(error, match=words):
        load(GOOD._replace(**change))


def test_the_digest_of_a_file_is_that_of_its_contents(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("table.csv", "decisions.db"):
        (tmp_path / name).write_bytes(b"one")
        first = datasets.digest(name)
        assert first == datasets.digest(str(tmp_path / name)) == hashlib.sha256(b"one").hexdigest()[:16]
        (tmp_path / name).write_bytes(b"two")
        assert datasets.digest(name) not in (None, first)
    before = datasets.digest("decisions.db")
    (tmp_path / "decisions.db-wal").write_bytes(b"and more")
    assert datasets.digest("decisions.db") != before
    assert datasets.digest("mnist") is None
    assert datasets.digest(([[1.0]], [0])) is None
