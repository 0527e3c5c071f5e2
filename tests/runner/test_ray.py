"""Workers on a real Ray cluster of two nodes: the same records as on this machine, whatever is lost on the way."""

import io
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from explorax import environments
from explorax.errors import InvalidArgument
from explorax.experiments.settings import from_settings
from explorax.experiments.study import Study
from explorax.runner import RunFailed, local_processes, ray_cluster, ray_connection, ray_crew, run
from explorax.software import software
from tests.runner.nodes import cluster, environment
from tests.runner.processes import wait_until
from tests.runner.small import SETTINGS, TASKS, Hook, manifest, parts, rows, study

pytestmark = pytest.mark.usefixtures("on_the_cpu")


@pytest.fixture(scope="module")
def nodes():
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment().items():
            patch.setenv(name, value)
        pytest.importorskip("ray")  # which reads them when it is imported
        with cluster() as made:
            yield made


@pytest.fixture
def address(nodes):
    return nodes.address


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """What the study gives in a process of this machine."""
    out = tmp_path_factory.mktemp("local")
    run(study(), out, on=local_processes(1), stream=io.StringIO())
    return rows(out)


def workers():
    """The processes of workers, by the name that Ray gives them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().startswith(b"ray::Remote"):
                found.append(int(path.parent.name))
        except OSError:
            pass
    return found


def test_the_same_as_on_this_machine(address, expected, tmp_path):
    stream = io.StringIO()
    outputs = run(study(), tmp_path, on=ray_cluster(address), stream=stream)
    assert rows(tmp_path).equals(expected)
    assert outputs.complete
    assert manifest(tmp_path)["device"] == "cpu"
    assert manifest(tmp_path)["tasks"] == {"done": TASKS, "all": TASKS}
    assert stream.getvalue().startswith(f"Running {TASKS} tasks on a Ray cluster. Programs are compiled first")
    wait_until(lambda: not workers())


def test_a_node_is_lost_and_the_rest_is_played_on_the_other(nodes, expected, tmp_path):
    run(study(), tmp_path, on=ray_cluster(nodes.address), stream=Hook(3, lambda: nodes.tell("lose")))
    nodes.tell("add")
    assert rows(tmp_path).equals(expected)
    assert manifest(tmp_path)["status"] == "finished"


def test_interrupted_and_killed_five_times_then_resumed(address, expected, tmp_path):
    """No part that is there is written again, and nothing goes on in the cluster without its driver."""

    def interrupt():
        raise KeyboardInterrupt

    out, settings = tmp_path / "out", tmp_path / "small.toml"
    settings.write_text(SETTINGS)
    with pytest.raises(KeyboardInterrupt):
        run(study(), out, on=ray_cluster(address), stream=Hook(1, interrupt))
    wait_until(lambda: not workers())
    command = [sys.executable, "-m", "explorax", "run", str(settings), "--out", str(out), "--cluster", address]
    for _ in range(5):
        before = parts(out)
        with subprocess.Popen([*command, "--workers", "1"], stdout=subprocess.PIPE, text=True) as driver:
            while not driver.stdout.readline().startswith("["):  # the first task that it finishes
                assert driver.poll() is None
            driver.kill()
        assert driver.returncode == -signal.SIGKILL
        assert {name: parts(out)[name] for name in before} == before
        assert len(parts(out)) > len(before)
    wait_until(lambda: not workers())
    run(study(), out, on=ray_cluster(address), stream=io.StringIO())
    assert rows(out).equals(expected)
    assert len(parts(out)) == TASKS


class Deadly(Study):
    """A study whose second panel kills the process that plays it."""

    def make_environment(self, panel, **more):
        if panel.label == "d = 3" and threading.current_thread() is not threading.main_thread():
            os.kill(os.getpid(), signal.SIGKILL)
        return super().make_environment(panel, **more)


def test_a_task_that_kills_its_worker_three_times_is_given_up_by_name_and_the_rest_goes_on(address, tmp_path):
    plain = study(curves=[{"policy": "uniform"}], instances=100)
    settings = {name: getattr(plain, name) for name in plain.settings() if name != "family"}
    stream = io.StringIO()
    with pytest.raises(RunFailed) as failed:
        run(Deadly(**settings), tmp_path, on=ray_cluster(address), stream=stream)
    assert "2 tasks lost 3 workers each and were given up; all others are finished." in str(failed.value)
    for first in (0, 50):
        named = f"Uniform, d = 3, instances {first} to {first + 49}"
        assert f"\n{named}: " in str(failed.value)
        assert stream.getvalue().count(f"A worker is gone at {named}: it is played again.") == 2
        assert stream.getvalue().count(f"A worker is gone at {named}: it has lost 3 workers and is given up.") == 1
    assert [name[:12] for name in parts(tmp_path)] == ["d-2-uniform-"] * 2


def test_data_is_read_once_by_the_driver(nodes, tmp_path, monkeypatch):
    """The driver is a client from elsewhere here, and the file a relative name, which means nothing to workers."""
    monkeypatch.chdir(tmp_path)
    Path("flowers.csv").write_text("petal,label\n" + "1,rose\n" * 3 + "2,daisy\n")
    panels = [
        {"label": f"{count} on offer", "environment_settings": {"data": "flowers.csv", "n_arms": count}}
        for count in (2, 3)
    ]
    own = from_settings(
        {"environment": "classification", "panels": panels, "rounds": 40, "instances": 4}
        | {"curves": [{"policy": "uniform"}]}
    )
    reads = []
    of = environments.data_of

    def counted(name, given):
        data = of(name, given)
        return data._replace(read=lambda: reads.append(data.source) or data.read())

    monkeypatch.setattr(environments, "data_of", counted)
    run(own, "there", on=ray_cluster(nodes.client_address), stream=io.StringIO())
    assert reads == [("flowers.csv", "None")]
    run(own, "here", on=local_processes(1), stream=io.StringIO())
    assert rows(Path("there")).equals(rows(Path("here")))


def test_workers_with_other_software_are_refused(address, tmp_path, monkeypatch):
    ours = software()
    monkeypatch.setattr(ray_crew, "software", lambda: ours._replace(jax="0.0.1"))
    with pytest.raises(
        InvalidArgument,
        match=rf"software than this process: on \S+ jax is {ours.jax} there and 0\.0\.1 here\. Install the same",
    ):
        run(study(), tmp_path, on=ray_cluster(address), stream=io.StringIO())
    assert not parts(tmp_path)


def test_a_cluster_without_a_free_core_or_enough_memory_says_so(address, tmp_path, monkeypatch):
    """Here this process is connected already, and that connection is used and kept."""
    import ray

    for module in (ray_crew, ray_connection):
        monkeypatch.setattr(module, "TICK", 0.1)
    ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    try:
        with pytest.raises(InvalidArgument, match=r"address must be left out while .* connected .*, got 'local'"):
            run(study(), tmp_path, on=ray_cluster("local"), stream=io.StringIO())
        holders = [ray.remote(dict).options(num_cpus=1).remote() for _ in range(2)]
        ray.get([holder.__ray_ready__.remote() for holder in holders])
        stream = io.StringIO()
        said = "a worker needs 1 of the 2 cores of the cluster, of which 0 are free"
        with pytest.raises(RunFailed, match=rf"No worker has started in .*: {said}\. Stop what else runs there"):
            run(study(), tmp_path, on=ray_cluster(patience=0.1), stream=stream)
        assert f"Waiting for a worker to start, for at most 0.1 s: {said}." in stream.getvalue()
        vast = study(dims=[500], environment_settings={"n_arms": 4_000_000})
        with pytest.raises(RunFailed, match=rf"{said}, and 372\.5 GiB of memory, of which the largest node has \d"):
            run(vast, tmp_path / "vast", on=ray_cluster(patience=0.1), stream=stream)
        assert ray.is_initialized()
    finally:
        ray.shutdown()


def test_settings_that_cannot_be_used():
    for given, said in (
        ({"address": ""}, r"address must be 'auto', 'local' or the address of a cluster, got ''"),
        ({"workers": 0}, "workers must be a whole number of at least 1, got 0"),
        ({"gpus": 1.5}, r"gpus must be a number from 0 to 1, got 1\.5"),
        ({"ship_source": "yes"}, "ship_source must be True or False, got 'yes'"),
        ({"patience": 0}, "patience must be"),
    ):
        with pytest.raises(InvalidArgument, match=said):
            ray_cluster(**given)
    assert not ray_cluster().together
    assert ray_cluster(gpus=0.5).together


def test_a_cluster_that_is_not_there(tmp_path):
    with pytest.raises(RunFailed, match=r"The Ray cluster at 'nowhere' cannot be used: .*`ray status`"):
        run(study(), tmp_path, on=ray_cluster("nowhere"), stream=io.StringIO())


LOST = """
import io, os, sys, time
from explorax.runner import RunFailed, ray_cluster, ray_connection, run
from tests.runner.small import study

ray_connection.HEAD_PATIENCE = 0.5


class Held(io.StringIO):
    # After two tasks the driver waits for its input, and after that half a second for each task.
    done = 0

    def write(self, text):
        self.done += text.startswith("[")
        if text.startswith("[2/"):
            print("begun", flush=True)
            sys.stdin.readline()
        elif self.done > 2:
            time.sleep(0.5)
        return super().write(text)


if __name__ == "__main__":
    try:
        run(study(), sys.argv[2], on=ray_cluster(sys.argv[1]), stream=Held())
    except RunFailed as error:
        print(error, flush=True)
        os._exit(1)  # Ray would look for the head node for a while
"""


def test_the_head_is_lost(nodes, expected, tmp_path):
    """The last test of this cluster: what is finished is kept, and played by other means it ends as ever."""
    (tmp_path / "lost.py").write_text(LOST)
    command = [sys.executable, str(tmp_path / "lost.py"), nodes.address, str(tmp_path / "out")]
    found_in = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, env=found_in, **pipes) as driver:
        assert driver.stdout.readline() == "begun\n"
        nodes.tell("behead")
        printed, _ = driver.communicate("\n")
    kept = parts(tmp_path / "out")
    assert "The head node of the Ray cluster does not answer" in printed
    assert 2 <= len(kept) < TASKS
    run(study(), tmp_path / "out", on=local_processes(1), stream=io.StringIO())
    assert rows(tmp_path / "out").equals(expected)
    assert {name: parts(tmp_path / "out")[name] for name in kept} == kept
