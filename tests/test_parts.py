"""Parts are what a stopped run goes on from: damaged ones count as missing."""

import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from explorax import parts, record
from explorax.errors import InvalidArgument
from explorax.parts import Finished, each_finished, read_parts, write_part
from tests.fabricate import result
from tests.helpers import assert_same


def test_damaged_parts_count_as_absent_and_are_named(tmp_path):
    for name, first in (("a", 0), ("b", 3), ("c", 6), ("d", 9), ("e", 12)):
        write_part(tmp_path / f"{name}.parquet", [result(first=first)], task=name)
    whole = (tmp_path / "b.parquet").read_bytes()
    (tmp_path / "b.parquet").write_bytes(whole[: len(whole) // 2])  # cut off
    (tmp_path / "c.parquet").write_bytes(b"")
    bits = bytearray((tmp_path / "d.parquet").read_bytes())
    bits[len(bits) // 4] ^= 1
    (tmp_path / "d.parquet").write_bytes(bytes(bits))
    (tmp_path / ".f.parquet.123.tmp").write_bytes(whole)  # left by a kill
    found = read_parts(tmp_path)
    assert list(found.tasks) == ["a", "e"]
    assert [warning.split()[0] for warning in found.warnings] == ["b.parquet", "c.parquet", "d.parquet"]


def test_every_single_flipped_byte_is_noticed_or_harmless(tmp_path):
    path = tmp_path / "part.parquet"
    write_part(path, [result(instances=2)], task="t")
    whole = path.read_bytes()
    wanted = record.read(path)
    for position in range(0, len(whole), 37):
        bits = bytearray(whole)
        bits[position] ^= 0x20
        path.write_bytes(bytes(bits))
        found = read_parts(tmp_path)
        if found.tasks:
            assert_same(found.tasks["t"].results, wanted.results)
            assert found.tasks["t"].metadata == wanted.metadata
        else:
            assert len(found.warnings) == 1


def test_no_parts_yet(tmp_path):
    assert read_parts(tmp_path / "parts") == ({}, [])
    with pytest.raises(InvalidArgument, match=r"nowhere\.parquet cannot be used"):
        record.read(tmp_path / "nowhere.parquet")


def test_which_tasks_are_finished_is_read_without_keeping_their_records(tmp_path, monkeypatch):
    class Quick(ThreadPoolExecutor):
        """Threads that have read all that they were asked to read before any of it is used."""

        def map(self, function, values):
            return iter(list(super().map(function, values)))

    monkeypatch.setattr(parts, "READERS", 2)
    monkeypatch.setattr(parts, "ThreadPoolExecutor", Quick)
    for name in "abcdefghijkl":
        write_part(tmp_path / f"{name}.parquet", [result()], task=name, metadata={"maker": name})
    (tmp_path / "b.parquet").write_bytes(b"PAR1")
    alive = most = 0

    def read(path):
        nonlocal alive, most
        stored = record.read(path)
        alive += 1
        weakref.finalize(stored.results[0].records.regret, gone)
        most = max(most, alive)
        return stored

    def gone():
        nonlocal alive
        alive -= 1

    monkeypatch.setattr(parts, "read", read)
    found = Finished({}, [])
    digests = []
    for digest, results in each_finished(tmp_path, found):
        assert results[0].records.regret.shape == result().records.regret.shape
        digests.append(digest)
        del results
    assert digests == list(found.tasks)
    assert found.tasks == {name: {"task": name, "maker": name} for name in "acdefghijkl"}
    assert most <= 4
    assert found.warnings == read_parts(tmp_path).warnings
    assert len(found.warnings) == 1
