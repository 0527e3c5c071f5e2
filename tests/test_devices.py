"""What a GPU's compiler is told."""

from pathlib import Path

import pytest

from explorax import devices


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
    devices.prepare()
    assert devices.os.environ["XLA_FLAGS"] == expected


@pytest.mark.parametrize(("gpu", "platforms"), [(False, ""), (True, "cpu")])
def test_nothing_is_added_without_a_gpu(gpu, platforms, monkeypatch):
    monkeypatch.setattr(Path, "exists", lambda path: gpu)
    monkeypatch.setenv("XLA_FLAGS", "--mine")
    monkeypatch.setenv("JAX_PLATFORMS", platforms)
    devices.prepare()
    assert devices.os.environ["XLA_FLAGS"] == "--mine"
