"""What software a process has is told without importing it."""

import subprocess
import sys
import types

import numpy as np

import explorax
from explorax import software
from explorax.software import source_digest, version_of


def test_versions_of_packages_installed_imported_and_unknown(monkeypatch):
    assert version_of("numpy") == np.__version__
    monkeypatch.setitem(sys.modules, "from_a_checkout", types.SimpleNamespace(__version__="1.2"))
    assert version_of("from_a_checkout") == "1.2 (from source)"
    assert version_of("no_such_package") == "not installed"


def test_it_is_told_before_jax_and_numpy_are_imported():
    code = "import sys; from explorax import remote, software; print(software.software().jax, *sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert told[0] == version_of("jax")
    assert not {"jax", "jaxlib", "numpy"} & set(told[1:])


def test_the_digest_changes_with_each_source_file_that_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(software, "SOURCE", tmp_path)
    (tmp_path / "runner").mkdir()
    (tmp_path / "runner" / "ray.py").write_text("one")
    (tmp_path / "keys.py").write_text("two")

    def digests():
        source_digest.cache_clear()
        return source_digest(), source_digest(("runner",))

    before = digests()
    (tmp_path / "runner" / "ray.py").write_text("other")
    after = digests()
    assert after[0] != before[0]
    assert after[1] == before[1]
    (tmp_path / "keys.py").write_text("other")
    assert digests()[1] != after[1]
    source_digest.cache_clear()


def test_software_of_this_process():
    found = software.software()
    assert found.explorax.startswith(f"{explorax.__version__} with source ")
    assert found.python == f"{sys.version_info.major}.{sys.version_info.minor}"
