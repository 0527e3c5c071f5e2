"""Directories of runs."""

import pytest

from explorax.runner import journal
from tests.runner.kept import MAKER, keep, opened


@pytest.fixture
def quick_maker(monkeypatch):
    """The digest of the source files does not change here, and takes a while."""
    monkeypatch.setattr(journal, "maker", lambda study, together: MAKER | {"together": together})


@pytest.fixture
def half(quick_maker, tmp_path):
    """A directory with one of two tasks."""
    keep(opened(tmp_path))
    return tmp_path
