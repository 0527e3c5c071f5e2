"""Batches of a device: programs are compiled while another batch plays, and errors stop all."""

import tomllib

import pytest

from explorax.errors import InvalidArgument
from explorax.experiments.settings import from_settings
from explorax.runner import worker
from explorax.runner.here import Here
from explorax.runner.tasks import expand
from tests.helpers import assert_same


def heavy_study():
    settings = """
    name = "digits"
    environment = "classification"
    environment_settings = { data = "digits" }
    rounds = 30
    instances = 50
    checkpoints = 3
    curves = [
        { policy = "deep_fl", settings = { hidden = [4] } },
        { policy = "rep_glm_fpl", label = "short", settings = { hidden = [4], horizon = 30, percent = 10.0 } },
        { policy = "rep_glm_fpl", label = "long", settings = { hidden = [4], horizon = 30, percent = 50.0 } },
    ]
    """
    return from_settings(tomllib.loads(settings))


class Keeper:
    """A watcher that keeps the outcomes of tasks by digest."""

    def __init__(self):
        self.outcomes = {}

    def started(self, worker, task):
        pass

    def advanced(self, worker, task, rounds):
        pass

    def finished(self, worker, task, outcome):
        self.outcomes[task.digest] = outcome


def test_programs_are_compiled_while_another_batch_plays_on_a_device_that_holds_one(monkeypatch):
    study = heavy_study()
    tasks, keeper, prepared = expand(study, True), Keeper(), []
    prepare = worker.Player.prepare

    def noted(self, task, curve):
        prepared.append((task.digest, curve.label))
        return prepare(self, task, curve)

    monkeypatch.setattr(worker.Player, "prepare", noted)
    Here(study).run(tasks, keeper)
    assert sorted(prepared) == sorted((task.digest, curve.label) for task in tasks for curve in task.curves)
    assert len(tasks) == 2
    for task in tasks:
        alone = worker.Player(study).play(task, lambda rounds: None)
        for found, expected in zip(keeper.outcomes[task.digest].records, alone.records, strict=True):
            assert_same(found, expected)
        assert keeper.outcomes[task.digest].seconds >= keeper.outcomes[task.digest].compiling > 0


def test_an_error_while_compiling_ahead_is_that_of_the_run(monkeypatch):
    study = heavy_study()

    def fail(self, task, curve):
        raise InvalidArgument("hidden must be smaller.")

    monkeypatch.setattr(worker.Player, "prepare", fail)
    with pytest.raises(InvalidArgument, match="hidden must be smaller"):
        Here(study).run(expand(study, True), Keeper())
