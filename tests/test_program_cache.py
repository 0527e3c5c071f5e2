"""Compiled programs on disk: found again, never half or wrong, never an error, and not too many."""

import os
import subprocess
import sys

import jax
import pytest

import explorax
from explorax import program_cache
from explorax.errors import InvalidArgument
from explorax.program_cache import Shelf
from tests.disk import contents
from tests.runner.small import rows

# These tests start processes of their own: one group at a time.
pytestmark = [pytest.mark.xdist_group("processes"), pytest.mark.usefixtures("on_the_cpu")]

# Prints the directory, how many programs were found in it, and a number that a compiled program has computed.
PROGRAM = """
import sys
import jax, jax.numpy as jnp
import explorax
hits = []
jax.monitoring.register_event_listener(lambda event, **_: hits.append(event.endswith("/cache_hits")))
where = explorax.cache_programs(*sys.argv[1:])
print(float(jax.jit(lambda x: jnp.sum(jnp.sin(x) ** 2))(jnp.arange(100.0))), sum(hits), where)
"""


def environment(**more):
    """The environment variables without the cache of the tests."""
    kept = {name: value for name, value in os.environ.items() if "CACHE" not in name and name != program_cache.VARIABLE}
    return kept | {"JAX_PLATFORMS": "cpu"} | more


def start(*arguments, **more):
    command = [sys.executable, "-W", "error", "-c", PROGRAM, *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, env=environment(**more), text=True, **pipes)


def finished(process):
    """What a process has printed, if it ended well and said nothing else."""
    out, said = process.communicate()
    assert process.returncode == 0, said
    number, hits, where = out.split(maxsplit=2)
    return float(number), int(hits), where.strip()


def played(*arguments, **more):
    return finished(start(*arguments, **more))


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A directory with programs, and the number that they compute."""
    root = tmp_path_factory.mktemp("programs")
    number, hits, where = played(root)
    assert hits == 0
    assert os.path.dirname(where) == str(root)
    return root, number


def test_the_next_process_finds_the_programs(filled):
    root, number = filled
    again, hits, _ = played(root)
    assert again == number
    assert hits == len(contents(root)) > 0


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[: len(content) // 2],
        lambda content: content[:-1],
        lambda content: content[:-50] + bytes(255 - one for one in content[-50:]),
        lambda content: bytes([content[0] ^ 1]) + content[1:],
        lambda content: content + b"more",
    ],
    ids=["empty", "half", "cut off", "flipped", "another checksum", "longer"],
)
def test_a_damaged_file_is_compiled_again(filled, tmp_path, damage):
    root, number = filled
    for path, content in contents(root).items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(damage(content))
    assert played(tmp_path)[:2] == (number, 0)
    assert played(tmp_path)[:2] == (number, len(contents(root)))  # the damage is repaired


def test_a_program_under_the_name_of_another_is_not_used(tmp_path):
    shelf = Shelf(tmp_path)
    shelf.put("one", b"program")
    shelf.path_of("one").rename(shelf.path_of("other"))
    assert shelf.get("other") is None


def test_processes_at_once_leave_whole_files(filled, tmp_path):
    _, number = filled
    at_once = [start(tmp_path) for _ in range(3)]
    assert {finished(one)[0] for one in at_once} == {number}
    assert all(path.suffix == program_cache.ENDING for path in contents(tmp_path))
    assert played(tmp_path)[1] == len(contents(tmp_path))


def test_a_directory_that_cannot_be_written_is_no_error(filled, tmp_path):
    _, number = filled
    (tmp_path / "file").write_text("not a directory")
    assert played(tmp_path / "file" / "programs")[:2] == (number, 0)


def test_a_full_disk_is_no_error(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    shelf = Shelf(tmp_path)
    shelf.put("key", b"program")
    assert shelf.get("key") is None
    assert contents(tmp_path) == {}


def test_a_read_only_file_is_used(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    shelf = Shelf(tmp_path)
    shelf.put("key", b"program")
    monkeypatch.setattr(os, "utime", refuse)
    assert shelf.get("key") == b"program"


def test_other_versions_and_other_cpus_have_other_directories(tmp_path, monkeypatch):
    ours = program_cache.fingerprint()
    with monkeypatch.context() as patch:
        patch.setattr(jax, "__version__", "0.0.0")
        assert program_cache.fingerprint() != ours
    found = set()
    for flags in ("sse4_2 avx2", "sse4_2 avx2 avx512f"):
        for megahertz in ("2500.000", "3100.000"):
            (tmp_path / "cpuinfo").write_text(f"model\t\t: 85\nflags\t\t: {flags}\ncpu MHz\t\t: {megahertz}\n")
            monkeypatch.setattr(program_cache, "CPU_INFO", tmp_path / "cpuinfo")
            found.add(program_cache.fingerprint())
    monkeypatch.setattr(program_cache, "CPU_INFO", tmp_path / "nothing")  # as on other systems
    assert len(found | {program_cache.fingerprint()}) == 3


def test_programs_that_were_not_used_for_long_make_room(tmp_path, monkeypatch):
    monkeypatch.setattr(program_cache, "LARGEST", 3 * (program_cache.CHECKSUM + 100))
    old, new = Shelf(tmp_path / "old version"), Shelf(tmp_path / "new version")
    for time, (shelf, key) in enumerate([(old, "a"), (new, "b"), (new, "c")]):
        shelf.put(key, bytes(100))
        os.utime(shelf.path_of(key), (time, time))
    assert old.get("a") is not None  # and is the last used now
    new.put("d", bytes(100))
    kept = [(shelf is old, key) for shelf in (old, new) for key in "abcd" if shelf.get(key)]
    assert kept == [(True, "a"), (False, "c"), (False, "d")]


def test_the_users_directory_follows_the_system(tmp_path, monkeypatch):
    for name in (program_cache.VARIABLE, "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(program_cache.Path, "home", lambda: tmp_path)
    for system, there in (
        ("linux", (".cache",)),
        ("darwin", ("Library", "Caches")),
        ("win32", ("AppData", "Local")),
    ):
        monkeypatch.setattr(sys, "platform", system)
        assert program_cache.chosen(None) == tmp_path.joinpath(*there, "explorax", "programs")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
    assert program_cache.chosen(None) == tmp_path / "elsewhere" / "explorax" / "programs"
    monkeypatch.setenv(program_cache.VARIABLE, str(tmp_path / "named"))
    assert program_cache.chosen(None) == tmp_path / "named"
    assert program_cache.chosen(tmp_path) == tmp_path


def test_a_user_without_a_home_has_no_cache(monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(program_cache.Path, "home", homeless)
    assert program_cache.user_cache() is None


def test_a_cache_that_jax_has_already_stays(tmp_path):
    _, _, where = played(tmp_path / "ours", JAX_COMPILATION_CACHE_DIR=str(tmp_path / "own"))
    assert where == str(tmp_path / "own")
    assert not (tmp_path / "ours").exists()


def test_a_wrong_directory_is_explained():
    with pytest.raises(InvalidArgument, match="directory must be a path, got 3"):
        explorax.cache_programs(3)


def test_the_command_and_its_workers_keep_programs_unless_told_not_to(tmp_path):
    """The second run finds all programs of the first, with the same results."""
    settings = tmp_path / "small.toml"
    settings.write_text(
        'name = "small"\nenvironment = "logistic"\ndims = [2]\nrounds = 20\ninstances = 2\n'
        'environment_settings = { n_arms = 3 }\ncurves = [{ policy = "lin_ucb" }]\n'
    )

    def run(out, *options, programs):
        command = [sys.executable, "-m", "explorax", "run", str(settings), "--out", str(tmp_path / out), *options]
        more = {program_cache.VARIABLE: str(tmp_path / programs)}
        subprocess.run(command, env=environment(**more), check=True, capture_output=True)
        return rows(tmp_path / out), contents(tmp_path / programs)

    first, compiled = run("one", programs="kept")
    second, found = run("two", programs="kept")
    third, nothing = run("three", "--no-cache", programs="none")
    assert first.equals(second)
    assert first.equals(third)
    assert len(compiled) > 10
    assert found == compiled
    assert nothing == {}
