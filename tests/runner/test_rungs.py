"""Which tasks come next: choices against a slow oracle, and the same ones after any interruption."""

import csv
import io
import math

import numpy as np
import pytest

from explorax import runner
from explorax.experiments.settings import from_settings, study_in
from explorax.runner import Outcome, outputs, rebuild, run, this_process, worker
from explorax.runner.here import alike
from explorax.runner.rungs import Plan
from explorax.runner.tasks import expand
from tests import fabricate
from tests.runner.inline import Inline
from tests.runner.small import Hook, manifest, parts, rows, study

SWEEP = from_settings(
    {"environment": "logistic", "dims": [2, 3], "rounds": 20, "checkpoints": 4, "instances": 230, "name": "halved"}
    | {"halving": {"instances": 50, "keep": 2}, "environment_settings": {"n_arms": 5}}
    | {
        "curves": [
            {"policy": "lin_ts", "label": "L", "settings": {"scale": [0.1, 0.5, 1, 2, 4]}},
            {"policy": "epsilon_greedy", "label": "E", "settings": {"epsilon": [0.1, 0.3]}},
            {"policy": "uniform"},
        ]
    }
)
L, E = ([curve.label for curve in SWEEP.curves if curve.label.startswith(name)] for name in ("L", "E"))
# Rungs of 5, 3, 2 and 1 settings to instance 50, 100, 200 and 230; of 2 and 1 to 50 and 230; and 230 instances.
TASKS = 2 * ((5 * 1 + 3 * 1 + 2 * 2 + 1 * 1) + (2 * 1 + 1 * 4) + 5)


def final(curve, panel, instance):
    """The regret at the end of one instance: noise of the problem and of the pair, so that leads change."""
    seed = [ord(letter) for letter in curve + panel]
    return 50 + 10 * np.random.default_rng([instance]).normal() + np.random.default_rng([*seed, instance]).normal()


def played(task):
    """The outcome of a task without playing it."""
    found = []
    for curve in task.curves:
        records = fabricate.records("sqrt", 5.0, rounds=20, checkpoints=4, instances=task.instances, first=task.first)
        ends = np.array([final(curve.label, task.panel.label, one) for one in records.instances])
        found.append(records._replace(regret=records.regret / records.regret[:, -1:] * ends[:, None]))
    return Outcome(found, 1.0, 0.5)


@pytest.fixture
def unplayed(quick_maker, monkeypatch):
    """Runs on a CPU whose workers play nothing, and figures that take no time."""
    monkeypatch.setattr(runner, "default_executor", lambda: Inline(lambda study, task: played(task)))
    monkeypatch.setattr(outputs, "draw", lambda *about: ([], []))


def oracle(labels, panel, keep=2, first=50, instances=230):
    """What a race comes to, slowly: how many instances each setting has played."""
    reached, alive, until = {}, list(labels), first
    while len(alive) > 1:
        reached |= dict.fromkeys(alive, until)
        means = [sum(final(label, panel, one) for one in range(until)) / until for label in alive]
        order = sorted(range(len(alive)), key=lambda place: (means[place], place))
        alive = [alive[place] for place in sorted(order[: math.ceil(len(alive) / keep)])]
        until *= keep
    return reached | {alive[0]: instances}


def reached(found):
    return {(one.panel, one.curve): len(one.records.instances) for one in found.results}


def test_a_run_makes_the_choices_of_the_oracle_and_tells_what_came_of_them(unplayed, tmp_path):
    stream = io.StringIO()
    found = run(SWEEP, tmp_path, stream=stream)
    wanted = {
        (panel.label, label): count
        for panel in SWEEP.panels
        for label, count in (oracle(L, panel.label) | oracle(E, panel.label) | {"Uniform": 230}).items()
    }
    assert reached(found) == wanted
    assert sorted(wanted.values()) == sorted(2 * [50, 50, 50, 100, 200, 230, 230, 230])
    assert len({label for (_, label), count in wanted.items() if count == 230}) > 3  # panels choose by themselves
    assert (found.done, found.tasks, found.complete) == (TASKS, TASKS, True)
    assert manifest(tmp_path)["tasks"] == {"done": TASKS, "all": TASKS}
    assert len(parts(tmp_path)) == TASKS
    assert stream.getvalue().startswith(f"Running {TASKS} tasks inline. ")
    assert [line.split("]")[0] for line in stream.getvalue().splitlines()[1:]] == [
        f"[{number}/{TASKS}" for number in range(1, TASKS + 1)
    ]
    everyone, fresh = found.tables
    assert len(everyone.rows) == 8
    for label, *cells in fresh.rows:
        first = 200 if label in L else 50
        for panel, cell in zip(SWEEP.panels, cells, strict=True):
            if wanted[panel.label, label] == 230:
                ends = np.array([final(label, panel.label, one) for one in range(first, 230)])
                error = ends.std(ddof=1) / len(ends) ** 0.5
                assert cell == f"{ends.mean():.1f} ± {error:.1f} ({len(ends)})"
            else:
                assert cell == "-"
    assert study_in(tmp_path) == SWEEP
    page = (tmp_path / "report.html").read_text()
    assert all(table.caption in page and table.note in page for table in found.tables)
    summary = list(csv.DictReader((tmp_path / "summary.csv").read_text().splitlines()))
    assert {(f"d = {row['dim']}", row["curve"]): int(row["instances"]) for row in summary} == wanted
    assert sorted(int(row["fresh_instances"]) for row in summary) == [0] * 12 + [30, 30, 180, 180]


@pytest.mark.parametrize("stops", [(3, 16, 17), (21, 29)])
def test_a_run_that_was_stopped_between_rungs_or_within_one_makes_the_same_choices(unplayed, tmp_path, stops):
    whole = run(SWEEP, tmp_path / "whole", stream=io.StringIO())
    out = tmp_path / "out"

    def interrupt():
        raise KeyboardInterrupt

    for stop in stops:
        with pytest.raises(KeyboardInterrupt):
            run(SWEEP, out, stream=Hook(stop, interrupt))
        assert manifest(out)["tasks"] == {"done": stop, "all": TASKS}
        half = rebuild(study_in(out), out)
        assert (half.done, half.tasks, half.complete) == (stop, TASKS, False)
    before = parts(out)
    resumed = run(SWEEP, out, stream=io.StringIO())
    assert {name: parts(out)[name] for name in before} == before
    assert parts(out).keys() == parts(tmp_path / "whole").keys()
    assert rows(out).equals(rows(tmp_path / "whole"))
    assert resumed.tables == whole.tables


def test_a_damaged_part_of_the_first_rung_is_played_again_and_the_others_are_kept(unplayed, tmp_path):
    whole = run(SWEEP, tmp_path, stream=io.StringIO())
    (damaged,) = (name for name in parts(tmp_path) if name.startswith("d-2-l-scale-0-1-000000"))
    (tmp_path / "parts" / damaged).write_bytes(b"PAR1")
    before, stream = parts(tmp_path), io.StringIO()
    again = run(SWEEP, tmp_path, stream=stream)
    assert [name for name, time in parts(tmp_path).items() if before[name] != time] == [damaged]
    assert again.tables == whole.tables
    assert again.complete


def test_plain_studies_have_all_their_tasks_at_once():
    for together in (False, True):
        plan = Plan(study(), together)
        assert plan.next_tasks() == plan.left == expand(study(), together)
        for number, task in enumerate(plan.todo):
            assert (plan.done, plan.all) == (number, len(expand(study(), together)))
            plan.note(task.digest, [])
        assert plan.next_tasks() == []


def test_tasks_of_a_sweep_are_those_of_a_study_of_its_curves():
    alone = from_settings(
        {"environment": "logistic", "dims": [3], "rounds": 20, "checkpoints": 4, "instances": 50}
        | {"environment_settings": {"n_arms": 5}}
        | {"curves": [{"policy": "lin_ts", "label": L[2], "settings": {"scale": 1}}]}
    )
    (task,) = expand(alone, False)
    assert task.digest in {one.digest for one in Plan(SWEEP, False).todo}


def test_a_gpu_plays_the_rungs_of_a_curve_together(unplayed, tmp_path, monkeypatch):
    monkeypatch.setattr(worker.Player, "play", lambda player, task, progress: played(task))
    monkeypatch.setattr(worker.Player, "play_together", lambda player, tasks, progress: list(map(played, tasks)))
    stream = io.StringIO()
    found = run(SWEEP, tmp_path, on=this_process(), stream=stream)
    assert (found.done, found.tasks) == (14, 14)
    lines = [line.split(": ")[0].partition(" ")[2] for line in stream.getvalue().splitlines()[1:]]
    assert f"{' + '.join(L)}, d = 2, instances 0 to 49" in lines
    assert sum("instances 50 to 99" in line for line in lines) == 2
    wanted = oracle(L, "d = 3") | oracle(E, "d = 3") | {"Uniform": 230}
    assert {label: count for (panel, label), count in reached(found).items() if panel == "d = 3"} == wanted


def test_tasks_with_other_instances_are_not_stacked():
    one, other = expand(study(), False)[:2]
    assert alike(one) == alike(one._replace(panel=study().panels[1]))
    assert alike(one) != alike(other)
