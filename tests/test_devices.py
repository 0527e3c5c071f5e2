"""What XLA is told before it starts: never a flag that it does not know, which would end the process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from explorax import devices
from explorax.experiments import logistic
from explorax.runner.tasks import is_brief

UNKNOWN = "--xla_cpu_no_such_flag=1"
KNOWN = ("--xla_dump_hlo_as_text=false", "--xla_backend_optimization_level=1")


def test_flags_that_xla_does_not_know_are_left_out():
    assert devices.known_flags(UNKNOWN) == ()
    assert devices.known_flags(KNOWN[0], UNKNOWN, KNOWN[1]) == KNOWN


def test_options_that_only_compiling_reads_are_tried_as_well():
    assert devices.known_flags("--xla_backend_extra_options=-no-such-option") == ()
    assert devices.known_flags(devices.QUICK_CODE) == (devices.QUICK_CODE,)


def test_an_unknown_flag_ends_the_process_and_those_of_a_worker_do_not(monkeypatch):
    """The check is worth its time only as long as this is so."""
    assert start_of_jax(XLA_FLAGS=UNKNOWN).returncode != 0
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    for name in ("ONE_THREAD", "QUICK_LOOPS", "QUICK_CODE"):
        monkeypatch.setattr(devices, name, UNKNOWN)
    variables = devices.for_one_core(is_brief(logistic.quick()))
    assert variables["XLA_FLAGS"] == ""
    assert start_of_jax(**variables).returncode == 0


def test_workers_compile_quickly_if_all_tasks_are_short(monkeypatch):
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    monkeypatch.setattr(devices, "known_flags", lambda *flags: flags)
    flags = [devices.for_one_core(is_brief(study))["XLA_FLAGS"] for study in (logistic.quick(), logistic.study())]
    assert flags == [f"{devices.ONE_THREAD} {devices.QUICK_LOOPS} {devices.QUICK_CODE}", devices.ONE_THREAD]


def start_of_jax(**variables):
    code = "import jax; print(jax.numpy.ones(1))"
    return subprocess.run([sys.executable, "-c", code], env=os.environ | variables, check=False, capture_output=True)


def test_the_tests_own_flags_are_known():
    flags = tuple(os.environ["XLA_FLAGS"].split())
    assert devices.known_flags(*flags) == flags


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("", f"{devices.GRAPHS} {devices.SAME_KERNELS} {devices.LIBRARY_PRODUCTS}"),
        (
            "--xla_gpu_autotune_level=4",
            f"--xla_gpu_autotune_level=4 {devices.GRAPHS} {devices.LIBRARY_PRODUCTS}",
        ),  # the user's word counts
    ],
)
def test_flags_are_added_to_the_users(given, expected, monkeypatch):
    monkeypatch.setattr(Path, "exists", lambda path: True)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XLA_FLAGS", given)
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    monkeypatch.setattr(devices, "known_flags", lambda *flags: flags)
    devices.prepare()
    assert devices.os.environ["XLA_FLAGS"] == expected


@pytest.mark.parametrize(("gpu", "platforms"), [(False, ""), (True, "cpu")])
def test_nothing_is_added_without_a_gpu(gpu, platforms, monkeypatch):
    monkeypatch.setattr(Path, "exists", lambda path: gpu)
    monkeypatch.setenv("XLA_FLAGS", "--mine")
    monkeypatch.setenv("JAX_PLATFORMS", platforms)
    devices.prepare()
    assert devices.os.environ["XLA_FLAGS"] == "--mine"


def test_programs_run_in_the_calling_thread_where_that_is_asked_for():
    """A program that takes a good while is done when its call returns, without anyone waiting for it."""
    code = """if True:
        from explorax import devices
        devices.decide_inline()
        import jax
        program = jax.jit(lambda x: jax.lax.fori_loop(0, 2000, lambda i, y: jax.numpy.tanh(y @ y), x))
        matrix = jax.numpy.ones((100, 100))
        jax.block_until_ready(program(matrix))  # compiles
        print(program(matrix).is_ready())
    """
    variables = os.environ | {"JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", code], env=variables, check=True, capture_output=True, text=True)
    assert done.stdout == "True\n"
