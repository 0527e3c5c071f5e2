"""Agents of all kinds that were played once, for all tests of logs."""

import pytest

from tests.log import played


@pytest.fixture(scope="session")
def logs(tmp_path_factory):
    """The logs of agents of all kinds, which are still open, with their diaries."""
    folder = tmp_path_factory.mktemp("logs")
    found = {kind: play(folder / f"{kind}.db") for kind, play in played.KINDS.items()}
    yield found
    for each in found.values():
        each.agent.close()
