"""What a study is cut into covers it, and its parts are told apart by what decides them."""

from collections import Counter
from dataclasses import replace

from explorax.runner.tasks import BLOCK, expand
from tests.runner.small import THREE, study


def test_tasks_cover_every_instance_once():
    for instances in (1, BLOCK, 2 * BLOCK + 1):
        for together in (False, True):
            tasks = expand(study(instances=instances, curves=THREE), together)
            played = Counter(
                (task.panel.label, curve.label, instance)
                for task in tasks
                for curve in task.curves
                for instance in range(task.first, task.first + task.instances)
            )
            assert len(played) == 2 * 3 * instances
            assert set(played.values()) == {1}
            assert len({task.digest for task in tasks}) == len({task.filename for task in tasks}) == len(tasks)
    assert [len(task.curves) for task in expand(study(curves=THREE), True)] == [1, 2, 1, 2]


def test_digests_change_with_what_decides_the_outcome():
    first = expand(study(), False)[0]
    same = expand(study(dims=[2], curves=[{"policy": "uniform"}], name="other"), False)[0]
    assert first.digest == same.digest
    renamed = study(dims=[2])
    other = replace(renamed, panels=(renamed.panels[0]._replace(curve_settings={"ridge": 2.0}),))
    assert first.digest != expand(other, False)[0].digest
    for changes in ({"seed": 1}, {"rounds": 90}, {"checkpoints": 4}, {"environment_settings": {"n_arms": 7}}):
        assert first.digest != expand(study(**changes), False)[0].digest
