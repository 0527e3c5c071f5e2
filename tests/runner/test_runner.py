"""A study gives the same records however it is spread, stopped, killed and resumed."""

import io
import multiprocessing
import os
import platform
import random
import re
import signal
import subprocess
import sys
import time
import tomllib
from dataclasses import replace

import pytest

from explorax import environments, make, record, runner, simulate
from explorax.errors import InvalidArgument, UnknownName
from explorax.experiments.settings import from_settings, study_in
from explorax.parts import read_parts
from explorax.runner import Figure, RunFailed, journal, kept, local_processes, rebuild, run, this_process
from explorax.runner.here import stacks
from explorax.runner.lock import LOCK, locked
from explorax.runner.tasks import expand
from tests.runner.processes import alive, children, is_worker, wait_until
from tests.runner.small import SETTINGS, TASKS, THREE, Hook, manifest, parts, rows, study

pytestmark = pytest.mark.usefixtures("on_the_cpu")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The study, run without trouble in one worker process: what it printed, and its directory."""
    out, stream = tmp_path_factory.mktemp("finished"), io.StringIO()
    return run(study(), out, on=local_processes(1), command="explorax run small.toml", stream=stream), stream.getvalue()


def test_a_run_leaves_everything(finished):
    outputs, printed = finished
    names = {path.name for path in outputs.files}
    assert names == {
        "regret.parquet", "summary.csv", "claims.json", "manifest.json", "figure1.png", "figure1.pdf", "report.html",
    }  # fmt: skip
    assert all(path.stat().st_size > 0 for path in outputs.files)
    assert outputs.complete
    assert outputs.warnings == []
    assert rows(outputs.out).num_rows == 2 * 2 * 200 * 8
    assert [(one.panel, one.curve, one.instances) for one in outputs.summaries] == [
        (panel, curve, 200) for panel in ("d = 2", "d = 3") for curve in ("Uniform", "LinTS (informal)")
    ]
    assert all(one.compile_seconds > 0 and one.run_seconds >= 0 for one in outputs.summaries)
    about = manifest(outputs.out)
    assert about["status"] == "finished"
    assert about["tasks"] == {"done": TASKS, "all": TASKS}
    assert about["device"] == "cpu"
    assert about["command"] == "explorax run small.toml"
    first, *lines = printed.splitlines()
    assert first == f"Running {TASKS} tasks on 1 process. Programs are compiled first, which may take a minute or more."
    assert [line.split("]")[0] for line in lines] == [f"[{number}/{TASKS}" for number in range(1, TASKS + 1)]
    assert all(re.search(r": [\d.]+ s compiling, [\d.]+ s running, [\d,]+ rounds/s", line) for line in lines)


class AtOnce(io.StringIO):
    """A stream that notes what was said before there was any worker, and how often it was flushed."""

    early, flushed = "", 0

    def write(self, text):
        if not multiprocessing.active_children():
            self.early += text
        return super().write(text)

    def flush(self):
        self.flushed += 1


def test_two_processes_give_the_same(finished, tmp_path):
    stream = AtOnce()
    run(study(), tmp_path, on=local_processes(2), stream=stream)
    assert stream.early.startswith(f"Running {TASKS} tasks on 2 processes. Programs are compiled first")
    assert stream.flushed == stream.getvalue().count("\n") == TASKS + 1
    assert rows(tmp_path).equals(rows(finished[0].out))
    assert parts(tmp_path).keys() == parts(finished[0].out).keys()


def test_a_finished_run_is_not_played_again(finished):
    before, started = parts(finished[0].out), manifest(finished[0].out)
    stream = io.StringIO()
    run(study(), finished[0].out, stream=stream)
    assert stream.getvalue() == f"{TASKS} of {TASKS} tasks are done already.\n"
    assert parts(finished[0].out) == before
    assert manifest(finished[0].out) == started


def test_seconds_are_those_of_the_parts(finished):
    stored = [result for part in read_parts(finished[0].out / record.PARTS).tasks.values() for result in part[0]]
    for row in finished[0].summaries:
        here = [one for one in stored if (one.curve, one.panel) == (row.curve, row.panel)]
        assert len(here) == 4
        assert row.compile_seconds == pytest.approx(sum(one.compile_seconds for one in here))
        assert row.compile_seconds + row.run_seconds == pytest.approx(sum(one.seconds for one in here))


def test_interrupted_with_a_damaged_part_and_resumed(finished, tmp_path):
    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(study(), tmp_path, on=local_processes(2), stream=Hook(3, interrupt))
    assert multiprocessing.active_children() == []
    assert manifest(tmp_path)["status"] == "running"
    assert manifest(tmp_path)["tasks"]["done"] == len(parts(tmp_path)) == 3
    assert kept(tmp_path).startswith(f"3 of {TASKS} tasks are kept")

    half_way = rebuild(study(), tmp_path)
    assert (half_way.done, half_way.tasks, half_way.complete) == (3, TASKS, False)
    assert "unfinished, 3 of 16 tasks" in (tmp_path / "report.html").read_text()
    assert not (tmp_path / "regret.parquet").exists()

    damaged, *sound = sorted(parts(tmp_path))
    path = tmp_path / record.PARTS / damaged
    path.write_bytes(path.read_bytes()[:-100])
    (tmp_path / record.PARTS / ".half-written.parquet.12.34.tmp").write_bytes(b"PAR1")
    before, stream = parts(tmp_path), io.StringIO()
    outputs = run(study(), tmp_path, on=local_processes(1), stream=stream)
    assert stream.getvalue().startswith(f"2 of {TASKS} tasks are done already.\n")
    assert any(damaged in warning for warning in outputs.warnings)
    assert {name: parts(tmp_path)[name] for name in sound} == {name: before[name] for name in sound}
    assert not list((tmp_path / record.PARTS).glob(".*"))
    assert rows(tmp_path).equals(rows(finished[0].out))
    assert manifest(tmp_path)["status"] == "finished"


def test_a_worker_that_dies_is_reported(tmp_path):
    def kill():
        for child in multiprocessing.active_children():
            os.kill(child.pid, signal.SIGKILL)

    with pytest.raises(RunFailed, match=r"was killed by SIGKILL at .*, d = \d, instances \d+ to \d+\. .*processes"):
        run(study(), tmp_path, on=local_processes(1), stream=Hook(1, kill))
    assert multiprocessing.active_children() == []
    assert len(parts(tmp_path)) == 1
    with locked(tmp_path):
        pass  # the directory is free again


def test_killed_at_random_moments_and_resumed(finished, tmp_path):
    """Killed alone or with its workers, after some finished tasks and a random while: no part is lost or redone."""
    out, settings = tmp_path / "out", tmp_path / "small.toml"
    settings.write_text(SETTINGS)
    command = [sys.executable, "-m", "explorax", "run", str(settings), "--out", str(out), "--processes", "2"]
    rng = random.Random(5)
    known = {}
    for finished_tasks, whole_group in ((0, False), (2, True), (3, False)):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
            if finished_tasks == 0:  # while workers start
                wait_until(lambda pid=process.pid: len(children(pid)) >= 2)
            while finished_tasks > 0:
                line = process.stdout.readline()
                assert line
                finished_tasks -= line.startswith("[")
            time.sleep(rng.uniform(0, 0.2))
            workers = children(process.pid)
            (os.killpg if whole_group else os.kill)(process.pid, signal.SIGKILL)
        wait_until(lambda pids=workers: not any(map(alive, pids)))
        assert len(workers) >= 2
        found = parts(out)
        assert {name: found.get(name) for name in known} == known
        known = {path.name: found[path.name] for path in (out / record.PARTS).glob("*.parquet") if record.read(path)}
    assert len(known) >= 5
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"{len(known)} of {TASKS} tasks are done already.\n")
    assert {name: parts(out)[name] for name in known} == known
    assert len(parts(out)) == TASKS
    assert rows(out).equals(rows(finished[0].out))


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("way", ["parent killed", "worker killed", "Ctrl-C", "SIGTERM"])
def test_the_end_of_a_run_that_would_take_hours(way, tmp_path):
    """Workers in the middle of a task end with their parent, and the parent with its workers."""
    settings = SETTINGS.replace("rounds = 80", "rounds = 100_000_000").replace("instances = 200", "instances = 50")
    (tmp_path / "long.toml").write_text(settings)
    command = [sys.executable, "-m", "explorax", "run", "long.toml", "--out", "out", "--processes", "1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True, cwd=tmp_path) as process:
        wait_until(lambda: any(map(is_worker, children(process.pid))))
        started = children(process.pid)
        (busy,) = filter(is_worker, started)
        wait_until(lambda: len(os.listdir(f"/proc/{busy}/task")) > 8)  # JAX has started its threads
        match way:
            case "parent killed":
                process.kill()
            case "worker killed":
                os.kill(busy, signal.SIGKILL)
            case "Ctrl-C":  # which a terminal sends to all processes
                os.killpg(process.pid, signal.SIGINT)
            case "SIGTERM":  # which a scheduler sends to all
                os.killpg(process.pid, signal.SIGTERM)
        said = process.stderr.read()
    wait_until(lambda: not any(map(alive, started)))
    match way:
        case "parent killed":
            assert process.returncode == -signal.SIGKILL
        case "worker killed":
            assert process.returncode == 1
            assert "was killed by SIGKILL at Uniform, d = 3" in said
        case "Ctrl-C" | "SIGTERM":
            assert process.returncode == (130 if way == "Ctrl-C" else 143)
            assert said.startswith("explorax: Stopped. 0 of 4 tasks are kept in out. Run the same command again")
            assert said.count("\n") == 1


def test_other_settings_are_refused(finished):
    for changes, named in (
        ({"seed": 1}, "seed is 0 there, 1 now"),
        ({"rounds": 81}, "rounds is 80 there, 81 now"),
        ({"curves": [{"policy": "uniform"}]}, r"curves\[1\].policy is 'lin_ts' there, absent now"),
    ):
        with pytest.raises(InvalidArgument, match=f"{named}.*--out"):
            run(study(**changes), finished[0].out)


def test_other_software_is_refused(finished, monkeypatch):
    monkeypatch.setattr(journal, "maker", lambda study, together: {"code": "other", "jax": "0", "together": together})
    with pytest.raises(InvalidArgument, match=r"code is '\w{16}' there, 'other' now.*--out"):
        run(study(), finished[0].out)


def test_a_run_on_a_cpu_is_not_continued_on_a_gpu(finished):
    with pytest.raises(InvalidArgument, match="together is False there, True now"):
        run(study(), finished[0].out, on=this_process())


def test_one_run_at_a_time(tmp_path):
    (tmp_path / LOCK).write_text("999999999\n")  # left behind by a process that is gone
    with (
        locked(tmp_path),
        pytest.raises(InvalidArgument, match=rf"in use by process {os.getpid()} on {platform.node()}\. Wait"),
    ):
        run(study(), tmp_path, stream=io.StringIO())
    assert not (tmp_path / record.MANIFEST).exists()
    with locked(tmp_path):
        pass


def test_bad_arguments(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidArgument, match=r"is a file\. Choose another directory\."):
        run(study(), tmp_path / "file")
    with pytest.raises(InvalidArgument, match=r"on must be an executor, got 'auto'\. Build one, .*ray_cluster"):
        run(study(), tmp_path / "out", on="auto")
    with pytest.raises(UnknownName, match=r"environment must be one of .*, got 'logistics'. Did you mean 'logistic'"):
        run(replace(study(), environment="logistics"), tmp_path / "out")
    with pytest.raises(InvalidArgument, match=r"manifest\.json cannot be used.*directory of a run"):
        study_in(tmp_path / "nowhere")
    assert not (tmp_path / "out").exists()
    assert kept(tmp_path).startswith("Nothing was finished yet.")


def test_a_gpu_takes_all_curves_of_a_policy_at_once(tmp_path, monkeypatch):
    """Played here on the CPU: one task for each policy and dimension, in this process."""
    monkeypatch.setattr(runner, "on_accelerator", lambda: True)  # which decides where there is no other wish
    small = study(dims=[2], rounds=30, instances=4, curves=THREE)
    stream = io.StringIO()
    outputs = run(small, tmp_path, figure=Figure(bound=True), stream=stream)
    assert [line.split(":")[0].split(".")[0] for line in stream.getvalue().splitlines()] == [
        "Running 2 tasks in this process",
        "[1/2] Uniform, d = 2, instances 0 to 3",
        "[2/2] LinTS (informal) + LinTS (theory), d = 2, instances 0 to 3",
    ]
    assert manifest(tmp_path)["maker"]["together"]
    assert {one.instances for one in outputs.summaries} == {4}
    for name in ("compile_seconds", "run_seconds"):
        assert getattr(outputs.summaries[1], name) == getattr(outputs.summaries[2], name) >= 0
    assert (tmp_path / "figure1-log.png").exists()
    assert rebuild(small, tmp_path).complete


def test_panels_that_differ_in_settings_of_curves_are_played_and_resumed(tmp_path):
    """In this process, as on a GPU: each panel with the policies that it asks for, whatever was finished before."""
    settings = tomllib.loads(SETTINGS)
    settings |= {
        "rounds": 40,
        "instances": 4,
        "measure": "reward",
        "environment_settings": {"n_arms": 6, "n_features": 2},
    }
    del settings["dims"]
    settings["panels"] = [
        {"label": "Much", "curve_settings": {"ridge": 1e6}, "tags": {"ridge": "1e6"}},
        {"label": "Little", "curve_settings": {"ridge": 0.1}, "tags": {"ridge": "0.1"}},
    ]
    own = from_settings(settings)
    assert not any(stacks(own, task) for task in expand(own, True))

    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(own, tmp_path, on=this_process(), stream=Hook(1, interrupt))
    assert len(parts(tmp_path)) == 1
    stream = io.StringIO()
    outputs = run(own, tmp_path, on=this_process(), stream=stream)
    assert stream.getvalue().startswith("1 of 4 tasks are done already.\n")
    found = {(one.panel, one.curve): one.records for one in outputs.results}
    assert list(found) == [(panel, curve) for panel in ("Much", "Little") for curve in ("Uniform", "LinTS (informal)")]
    for (panel, curve), records in found.items():
        ridge = {"ridge": {"Much": 1e6, "Little": 0.1}[panel]}
        policy = make("uniform") if curve == "Uniform" else make("lin_ts", design="informal", **ridge)
        alone = simulate(policy, environments.logistic(n_features=2, n_arms=6), rounds=40, instances=4, checkpoints=8)
        assert list(records.digest) == list(alone.digest)
    assert list(found["Much", "LinTS (informal)"].digest) != list(found["Little", "LinTS (informal)"].digest)
    header, *body = (tmp_path / "summary.csv").read_text().splitlines()
    assert header.startswith("policy,design,ridge,rounds,instances,reward_mean,reward_stderr")
    assert [row.split(",")[2] for row in body] == ["1e6", "1e6", "0.1", "0.1"]
    assert "Average reward in the study" in (tmp_path / "report.html").read_text()
    assert len({path.split("-")[0] for path in parts(tmp_path)}) == 2
    with pytest.raises(InvalidArgument, match="Figures of average reward have no --log and --bound"):
        rebuild(own, tmp_path, Figure(log=True))
