"""Results go to a store as they go to a directory, and what is said of an address tells no secrets."""

import io
from dataclasses import replace
from pathlib import Path

import pyarrow.fs
import pyarrow.parquet as pq
import pytest

from explorax import cli, parts, record, runner
from explorax.errors import CannotRead, CannotWrite, InvalidArgument
from explorax.experiments.settings import study_in
from explorax.places import RemotePath, place
from explorax.runner import kept, run
from explorax.runner.lock import LEASE
from tests.fabricate import result
from tests.runner.small import Hook, study

STUDY = study(dims=[2], instances=60, curves=[{"policy": "uniform"}, {"policy": "lin_ts"}])


def rows(out):
    return pq.read_table(io.BytesIO((out / "regret.parquet").read_bytes())).replace_schema_metadata(None)


def test_a_study_is_run_interrupted_resumed_and_reported_on_a_store(bucket, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(runner, "on_accelerator", lambda: True)  # spares processes
    address = bucket("deep/run")
    out = place(address)

    def interrupt():
        raise KeyboardInterrupt

    assert kept(out).startswith("Nothing was finished yet.")
    with pytest.raises(KeyboardInterrupt):
        run(STUDY, address, stream=Hook(1, interrupt))
    assert kept(address).startswith(f"1 of 2 tasks are kept in {address}.")
    assert len((out / record.PARTS).glob("*.parquet")) == 1
    assert not (out / LEASE).exists()

    stream = io.StringIO()
    found = run(STUDY, address, stream=stream)
    assert stream.getvalue().startswith("1 of 2 tasks are done already.")
    assert rows(out).equals(rows(run(STUDY, tmp_path, stream=io.StringIO()).out))
    names = {path.name for path in found.files}
    assert names == {path.name for path in tmp_path.glob("*.*")} - {".lock"}
    assert {path.name for path in out.glob("*")} == names | {record.PARTS}

    assert cli.main(["report", address]) == 0
    printed = capsys.readouterr().out
    assert printed.splitlines()[-1] == f"  {out / 'report.html'}"
    assert printed.splitlines()[-1].endswith(address.partition("deep/run")[2])
    assert study_in(address) == STUDY


def test_a_bucket_that_is_not_there_is_explained(bucket, capsys):
    with pytest.raises(
        CannotWrite, match=r"^s3://none/x/\.lease\?.* could not be written: .*does not exist\. .* bucket"
    ):
        run(STUDY, bucket("x", "none"), stream=io.StringIO())
    with pytest.raises(SystemExit, match="2"):
        cli.main(["report", "ftp://host/x"])
    assert "argument DIR: out must be a directory or an address" in capsys.readouterr().err
    assert cli.main(["report", bucket("x", "none")]) == 2


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("ftp://host/x", "must begin with one of abfs://"),
        (Path("s3://bucket/x"), "lacks a slash"),
        ("s3:/bucket/x", "lacks a slash"),
        ("s3://", "bucket"),
        ("s3://bucket/x?nonsense=1", "nonsense"),
        ("s3://bucket/x#y", "%23"),
        ("s3://KEY:SECRET@buc ket/x", "Cannot parse"),
        ("s3://KEY:SEC/RET@bucket/x", "Cannot parse"),
        ("abfs://a@b.example.com/x?client_secret=SECRET", r"Azure|authority|credential"),
        ("file://host/x", "host or options"),
    ],
)
def test_addresses_that_cannot_be_used(given, why):
    with pytest.raises(InvalidArgument, match=rf"^out must be a directory or an address .*{why}.*\.$") as caught:
        place(given)
    assert "SEC" not in str(caught.value)
    assert "KEY" not in str(caught.value)


def test_secrets_of_an_address_are_used_but_not_shown():
    options = "region=eu-west-1&scheme=http&endpoint_override=localhost:1"
    found = place(f"s3://KEY:SEC%2FRET@bucket/a%20b?{options}")
    assert found.filesystem == pyarrow.fs.S3FileSystem(
        access_key="KEY",
        secret_key="SEC/RET",
        region="eu-west-1",
        scheme="http",
        endpoint_override="localhost:1",
        allow_delayed_open=True,
    )
    assert found.path == "bucket/a b"
    assert str(found / "c") == f"s3://bucket/a%20b/c?{options}"
    assert "SEC" not in repr(found)
    assert place(str(found)).path == found.path


def test_directories_are_paths(tmp_path):
    assert place(tmp_path) == place(str(tmp_path)) == place(f"file://{tmp_path}") == tmp_path
    assert place("file:///a%20b") == Path("/a b")
    assert place("results/s3") == Path("results/s3")


def test_where_files_grow_they_are_written_beside_and_moved(tmp_path):
    """As on HDFS, whose place the local file system of pyarrow takes here."""
    seen = []

    class Watched(pyarrow.fs.LocalFileSystem):
        def move(self, source, target):
            seen.append((Path(source).read_bytes(), Path(target).exists()))
            super().move(source, target)

    out = RemotePath(Watched(), str(tmp_path / "new"), "hdfs://host/new")
    (out / "file").write_whole(b"whole")
    assert seen == [(b"whole", False)]
    assert [path.name for path in out.glob("*")] == ["file"]
    assert (out / "file").read_text("utf-8") == "whole"
    (out / "file").unlink()
    (out / "file").unlink(missing_ok=True)
    with pytest.raises(FileNotFoundError, match="hdfs://host/new/file"):
        (out / "file").read_bytes()


def test_parts_that_cannot_be_reached_do_not_count_as_damaged(bucket):
    out = place(bucket("unreached"))
    parts.write_part(out / "a.parquet", [result()], task="a")

    class Away:
        def get_file_info(self, what):
            return out.filesystem.get_file_info(what)

        def open_input_stream(self, path):
            raise OSError("AWS Error at http://b/c?sig=SECRET (Request ID: 3)")

    found = parts.Finished({}, [])
    assert [digest for digest, _ in parts.each_finished(out, found)] == ["a"]
    assert found.tasks == {"a": {"task": "a"}}
    with pytest.raises(CannotRead, match=r"a\.parquet\?.* could not be read: AWS Error at http://b/c\. Check"):
        list(parts.each_finished(replace(out, filesystem=Away()), found))
    assert kept(replace(out, filesystem=Away())).startswith("What was finished is kept in s3://bucket/unreached?")
