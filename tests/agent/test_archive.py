"""Files that are whole or not there: damaged ones are refused by name, without harm; and places that are not plain."""

import io
import zipfile

import numpy as np
import pytest

from explorax import Agent, errors, files
from explorax.agent import archive
from tests.helpers import assert_same

ROWS = np.random.default_rng(0).uniform(-1, 1, (4, 2))


def read(path):
    return archive.loads(archive.read(path), path)


def test_what_is_written_is_read(tmp_path):
    arrays = {"a": np.arange(6).reshape(2, 3), "b": np.asfortranarray(ROWS), "c": np.asarray(True), "d": ROWS[:0]}
    archive.write(tmp_path / "a.npz", archive.dumps({"names": ["x", None]}, arrays))
    schema, found = read(tmp_path / "a.npz")
    assert (schema["names"], schema["format"], schema["file"]) == (["x", None], archive.FORMAT, "explorax agent")
    assert_same(found, arrays)
    assert [array.dtype for array in found.values()] == [array.dtype for array in arrays.values()]
    with pytest.raises(ValueError, match="JSON compliant"):
        archive.dumps({"seed": np.nan}, {})
    assert read(tmp_path / "a.npz")[0] == schema


def test_arrays_are_what_they_should_be():
    arrays = {"a": ROWS, "b": np.array([1.0, np.inf])}
    assert archive.check_array("a", arrays, (None, 2), "float64", "the table") is ROWS
    for member, shape, dtype, words in [
        ("c", (2,), "float64", "the table is missing: there is no array c"),
        ("a", (4,), "float64", r"the table must have shape \(4,\) and dtype float64, got shape \(4, 2\)"),
        ("a", (3, None), "float64", r"must have shape \(3, None\)"),
        ("a", (4, 2), "float32", "dtype float32, got shape .* and dtype float64"),
        ("b", (2,), "float64", "the table must be finite, got NaN or infinity"),
    ]:
        with pytest.raises(errors.InvalidArgument, match=words):
            archive.check_array(member, arrays, shape, dtype, "the table")


def test_what_survives_json():
    assert archive.plain([1, "a", None, True, (0.5, [2])])
    for value in (np.float64("nan"), float("inf"), {"a": 1}, np.int64(3), object()):
        assert not archive.plain([value])


def test_a_byte_that_is_flipped(folder, tmp_path):
    """Every 7th byte of all, and every one of the directory at the end: refused, or read as it was."""
    content = (folder / "fixed.npz").read_bytes()
    schema, arrays = read(folder / "fixed.npz")
    path, intact = tmp_path / "agent.npz", 0
    for place in sorted({*range(0, len(content), 7), *range(content.index(b"PK\1\2"), len(content))}):
        path.write_bytes(content[:place] + bytes([content[place] ^ 255]) + content[place + 1 :])
        try:
            found, others = read(path)
        except errors.InvalidSnapshot:
            continue
        intact += 1
        assert found == schema
        assert others.keys() == arrays.keys()
        for name, array in others.items():
            assert array.dtype == arrays[name].dtype
            np.testing.assert_array_equal(array, arrays[name])
    assert intact > 0  # there are bytes that nobody needs, such as dates


def with_header(path, header):
    """The same archive with another header of `state_0`, and right checksums."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    start, end = members["state_0.npy"].index(b"{"), members["state_0.npy"].index(b"\n")
    members["state_0.npy"] = (
        members["state_0.npy"][:start] + header.encode().ljust(end - start) + members["state_0.npy"][end:]
    )
    with zipfile.ZipFile(path, "w") as archive:
        for name, member in members.items():
            archive.writestr(name, member)


def compressed(path):
    with np.load(path) as archive:
        members = dict(archive)
    np.savez_compressed(path, **members)


def nested(path):
    np.savez(path, schema=np.frombuffer(b"[" * 100_000 + b"]" * 100_000, np.uint8))


def npy(path):
    with open(path, "wb") as file:
        np.save(file, ROWS)


ODD = {
    "an array of 8 TB": (
        lambda path: with_header(path, "{'descr': '<f8', 'fortran_order': False, 'shape': (10**12,), }"),
        "Cannot parse header|malformed|state_0.npy",
    ),
    "an array of 7 TiB": (
        lambda path: with_header(path, "{'descr': '<f8','fortran_order': False, 'shape': (1000000000000,)}"),
        r"state_0.npy does not hold an array of shape \(1000000000000,\) and dtype float64, as it says",
    ),
    "a negative shape": (
        lambda path: with_header(path, "{'descr': '<f8', 'fortran_order': False, 'shape': (-2, -2), }"),
        "is not a snapshot, or is damaged",
    ),
    "compressed": (compressed, "npy is compressed"),
    "nested": (nested, "is not a snapshot, or is damaged: .*recursion"),
    "npy": (npy, "is not a snapshot, or is damaged: File is not a zip file"),
    "no schema": (lambda path: np.savez(path, a=ROWS), "is not a snapshot, or is damaged: it has no schema"),
    "a list": (
        lambda path: np.savez(path, schema=np.frombuffer(b"[]", np.uint8)),
        "is not a snapshot of an agent. Give a file that",
    ),
}


@pytest.mark.parametrize("case", ODD)
def test_odd_files(case, folder, tmp_path):
    change, words = ODD[case]
    path = tmp_path / "agent.npz"
    path.write_bytes((folder / "fixed.npz").read_bytes())
    change(path)
    with pytest.raises(errors.InvalidSnapshot, match=words):
        Agent.load(path)


def test_places_that_are_none(folder, tmp_path):
    agent = Agent.load(folder / "fixed.npz")
    for path in (None, 5, b"agent.npz", "a\0b", ["agent.npz"]):
        for call in (agent.save, Agent.load):
            with pytest.raises(errors.InvalidArgument, match="path must be the name of a file, as text or a Path, got"):
                call(path)
    with pytest.raises(errors.InvalidSnapshot, match="cannot be read: Is a directory"):
        Agent.load(tmp_path)


def test_a_symbolic_link_stays_one(folder, tmp_path):
    agent = Agent.load(folder / "fixed.npz")
    (tmp_path / "disk").mkdir()
    (tmp_path / "link.npz").symlink_to("disk/agent.npz")  # there is no such file yet
    for _ in range(2):
        agent.choose()
        agent.save(tmp_path / "link.npz")
        assert (tmp_path / "link.npz").is_symlink()
        assert Agent.load(tmp_path / "disk" / "agent.npz").decisions == agent.decisions
    assert sorted(each.name for each in tmp_path.rglob("*")) == ["agent.npz", "disk", "link.npz"]
    (tmp_path / "round.npz").symlink_to("round.npz")
    with pytest.raises(errors.InvalidArgument, match="must be a file in a folder that exists"):
        agent.save(tmp_path / "round.npz")


def test_leftovers_of_writers_that_were_killed(folder, tmp_path):
    """Those that nobody holds are removed, whatever process they are said to be of; nothing else is."""
    agent, path = Agent.load(folder / "fixed.npz"), tmp_path / "agent.npz"
    kept = [".agent.npz.1.2.tmp", ".other.npz.1.2.tmp", ".agent.npz.old.tmp", "agent.npz.1.2.tmp"]
    for name in (*kept, ".agent.npz.1.1.tmp", ".agent.npz.123456.140000000000000.tmp"):
        (tmp_path / name).write_bytes(b"half")
    with open(tmp_path / kept[0], "ab") as writing:
        assert files.acquire(writing.fileno())
        agent.save(path)
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted([*kept, "agent.npz"])
    agent.save(path)  # the writer is gone
    assert not (tmp_path / kept[0]).exists()


def test_a_temporary_file_that_is_removed_before_it_is_held(tmp_path, monkeypatch):
    acquire, removed = files.acquire, []

    def late(descriptor, **settings):
        if not removed:
            removed.extend(each.unlink() or each for each in list(tmp_path.iterdir()))
        return acquire(descriptor, **settings)

    monkeypatch.setattr(files, "acquire", late)
    with files.temporary(tmp_path / "a") as beside:
        assert removed == [beside]
        assert beside.exists()
    assert not list(tmp_path.iterdir())


def test_archives_are_those_of_numpy(folder):
    """What is read without NumPy's own reader is what NumPy reads."""
    _, arrays = read(folder / "context.npz")
    with np.load(io.BytesIO((folder / "context.npz").read_bytes()), allow_pickle=False) as plain:
        assert {*arrays, "schema"} == set(plain.files)
        for name, array in arrays.items():
            assert array.dtype == plain[name].dtype
            np.testing.assert_array_equal(array, plain[name])
