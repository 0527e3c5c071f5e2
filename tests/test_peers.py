"""What the comparison with other libraries does without them: problems, tuning, tables, figure, and explorax itself."""

import ast
import importlib
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from tests.statistics import FALSE_ALARM, assert_standard_normal

PEERS = Path(__file__).parents[1] / "benchmarks/peers"
sys.path.append(str(PEERS))
asking, common, contenders, environments, explorax_adapter, labels, picture, results, tables = map(
    importlib.import_module,
    ["asking", "common", "contenders", "environments", "explorax_adapter", "labels", "picture", "results", "tables"],
)

SMALL = contenders.Size({"shared": (4, 3), "disjoint": (3, 2)}, rounds=5, held_out=range(7, 9), tested=range(3))
VERSIONS = dict.fromkeys(["explorax", *environments.PEERS], "1.0")
CLICKS, NUMBERS = contenders.Kind("logistic", "shared"), contenders.Kind("linear", "disjoint")
EVERYBODY = [player for kind in contenders.KINDS for player in contenders.contenders(kind)]


def task(**settings):
    usual = {"algorithm": "", "rewards": "linear", "shape": "shared", "arms": 4, "features": 3, "seed": 0, "scale": 0.5}
    return common.Task(**(usual | {"rounds": 40} | settings))


# Problems


@pytest.mark.parametrize("kind", contenders.KINDS, ids=str)
def test_rounds_depend_on_the_seed_alone(kind):
    first, again, other = (common.Problem(*kind, 4, 3, seed) for seed in (5, 5, 6))
    for one, same, different in zip(first.rounds(3), again.rounds(3), other.rounds(3), strict=True):
        np.testing.assert_array_equal(one.context, same.context)
        np.testing.assert_array_equal(one.means, same.means)
        assert one.luck == same.luck != different.luck
        assert one.context.shape == ((4, 3) if kind.shape == "shared" else (3,))


@pytest.mark.parametrize("kind", contenders.KINDS, ids=str)
def test_rewards_have_the_stated_laws(kind):
    rounds = [next(common.Problem(*kind, 2, 3, seed).rounds(1)) for seed in range(3000)]
    means, rewards = np.array([(shown.means[1], shown.reward(1, kind.rewards)) for shown in rounds]).T
    scores = means if kind.rewards == "linear" else np.log(means / (1 - means))
    for squares, mean in ((scores**2, 1.0), (scores, 0.0)):  # by the central limit theorem
        assert 2 * stats.norm.sf(abs(np.mean(squares) - mean) / stats.sem(squares)) > FALSE_ALARM
    if kind.rewards == "linear":
        assert_standard_normal(((rewards - means) / common.NOISE)[:, None])
    else:
        assert set(rewards) == {0, 1}
        surprise = np.sum(rewards - means) / np.sqrt(np.sum(means * (1 - means)))
        assert 2 * stats.norm.sf(abs(surprise)) > FALSE_ALARM


def test_blocks_are_the_context_at_each_arm():
    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(common.blocks(x, 2), np.kron(np.eye(2), x))


class Scripted(common.Adapter):
    """Pulls arm 2 always, and remembers."""

    def __init__(self, played):
        self.learned = []

    def choose(self, context):
        return 2, 0.25

    def learn(self, context, arm, reward, propensity):
        self.learned.append((arm, reward, propensity))


def test_a_run_counts_what_was_lost_after_the_warm_up():
    played = task(rewards="logistic", rounds=30, warmup=10, center=0.5)
    rounds = list(common.Problem("logistic", "shared", 4, 3, 0).rounds(40))
    adapter = Scripted(played)
    answer = common.play(adapter, played)
    assert adapter.learned == [(2, float(shown.luck < shown.means[2]) - 0.5, 0.25) for shown in rounds]
    assert answer["regret"] == pytest.approx(sum(max(r.means) - r.means[2] for r in rounds[10:]), abs=1e-4)
    assert answer["uniform_regret"] == pytest.approx(sum(max(r.means) - r.means.mean() for r in rounds[10:]), abs=1e-4)
    assert 0 < answer["processor_us"]["median"] <= answer["processor_us"]["p99"]


# explorax


class NumpyLinUCB(common.Adapter):
    def __init__(self, played):
        self.played = played
        size = played.features * (played.arms if played.shape == "disjoint" else 1)
        self.gram, self.moment = np.eye(size), np.zeros(size)

    def rows(self, context):
        return context if self.played.shape == "shared" else np.kron(np.eye(self.played.arms), context)

    def choose(self, context):
        inverse, rows = np.linalg.inv(self.gram), self.rows(context)
        widths = np.sqrt(np.sum(rows @ inverse * rows, axis=1))
        return int(np.argmax(rows @ inverse @ self.moment + self.played.scale * widths)), None

    def learn(self, context, arm, reward, propensity):
        row = self.rows(context)[arm]
        self.gram += np.outer(row, row)
        self.moment += reward * row


@pytest.mark.parametrize("shape", ["shared", "disjoint"])
def test_explorax_plays_as_numpy_does(shape):
    played = task(algorithm="lin_ucb", shape=shape)
    ours = common.play(explorax_adapter.Deciding(played), played)
    assert ours["regret"] == common.play(NumpyLinUCB(played), played)["regret"] > 0


def test_explorax_keeps_arms_apart_and_does_not_force_exploration():
    played = task(algorithm="glm_tsl", rewards="logistic", shape="disjoint")
    adapter = explorax_adapter.Deciding(played)
    context = np.array([1.0, -0.5, 0.25])
    arm, propensity = adapter.choose(context)
    adapter.learn(context, arm, 1.0, propensity)
    estimate = np.asarray(adapter.agent.state.theta_hat).reshape(4, 3)
    assert propensity is None
    assert not np.any(np.delete(estimate, arm, axis=0))
    np.testing.assert_allclose(estimate[arm] / estimate[arm, 0], context)
    twice = [explorax_adapter.policy("glm_tsl", "logistic", 0.5, fixed=False) for _ in range(2)]
    assert twice[0] is twice[1]


# Who plays what


def test_every_contender_has_as_many_scales():
    for player in EVERYBODY:
        assert len(set(player.scales)) == 5
        assert player.scales == tuple(sorted(player.scales))
        assert len(player.rates) == (5 if player.library == "vowpalwabbit" else 1)


def test_linear_models_of_clicks_are_called_misspecified():
    for player in EVERYBODY:
        logistic = player.algorithm.startswith(("glm", "logistic"))
        assert player.misspecified == (player.kind.rewards == "logistic" and not logistic)
        assert player.task(SMALL, player.settings[0], 0).center == (0.5 if player.misspecified else 0)


def test_all_libraries_play_all_problems():
    for kind in contenders.KINDS:
        players = contenders.contenders(kind)
        assert {player.library for player in players} == {"explorax", *environments.PEERS}
        assert len({(player.library, player.algorithm) for player in players}) == len(players)


def test_adapters_know_the_algorithms_that_they_are_asked_for():
    for player in EVERYBODY:
        tree = ast.parse((PEERS / f"{player.library}_adapter.py").read_text())
        assert player.algorithm in {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}


def test_nothing_is_tuned_on_what_is_reported():
    for size in (contenders.FULL, contenders.QUICK):
        assert not set(size.held_out) & set(size.tested)


# Results


def journal_of(path, kind, regret, microseconds=lambda player: 100.0):
    """A journal of made-up runs on one kind of problem."""
    journal = results.Journal(path, VERSIONS)
    for player in contenders.contenders(kind):
        for setting in player.settings:
            for seed in [*SMALL.held_out, *SMALL.tested]:
                outcome = results.Outcome(regret(player, setting, seed), 50.0, microseconds(player) + seed)
                journal.outcomes[player.library, player.task(SMALL, setting, seed)] = outcome
    return journal


def test_the_best_setting_of_the_held_out_instances_is_taken(tmp_path):
    def regret(player, setting, seed):
        """The third scale is best on the held-out instances, the first on the others."""
        return abs(setting.scale - player.scales[2 if seed in SMALL.held_out else 0]) + abs(setting.rate - 2)

    journal = journal_of(tmp_path / "runs.jsonl", CLICKS, regret)
    for player in contenders.contenders(CLICKS):
        assert results.tuned(journal, player, SMALL) == (player.scales[2], min(player.rates[-1], 2))


def answer(version="1.0", regret=2.5):
    return {"version": version, "regret": regret, "uniform_regret": 9.0, "processor_us": {"median": 12.5, "p99": 20.0}}


def test_finished_runs_are_found_again(tmp_path):
    path, first, second = tmp_path / "runs.jsonl", task(algorithm="LinTS"), task(algorithm="LinTS", seed=1)
    results.Journal(path, VERSIONS).add("coba", first, answer())
    with path.open("a") as file:
        file.write('\n{"library": "coba", "task": {"algor')  # killed while writing
    results.Journal(path, VERSIONS).add("coba", second, answer(regret=3.5))
    found = results.Journal(path, VERSIONS).outcomes
    assert found == {("coba", first): (2.5, 9.0, 12.5), ("coba", second): (3.5, 9.0, 12.5)}
    assert results.Journal(path, VERSIONS | {"coba": "2.0"}).outcomes == {}
    with pytest.raises(SystemExit, match=r"coba is version 1\.1, where 1\.0 is pinned"):
        results.Journal(path, VERSIONS).add("coba", first, answer(version="1.1"))


def test_an_estimate_is_students():
    values = np.array([3.0, 4.5, 1.0, 7.25, 2.0])
    interval = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    np.testing.assert_allclose(results.estimate(values), (values.mean(), interval.low, interval.high))


def made_up_tables(tmp_path):
    """coba LinUCB loses 2 less than the reference on every instance, mabwiser more, all others the same."""

    def regret(player, setting, seed):
        less = {("coba", "LinUCB"): -2.0, ("mabwiser", "LinUCB"): 1.0 + seed}.get((player.library, player.algorithm), 0)
        return 10.0 + seed + less + abs(setting.scale - player.scales[1])

    def microseconds(player):
        return 300.0 if player.library == "coba" else 100.0

    journal = journal_of(tmp_path / "runs.jsonl", CLICKS, regret, microseconds)
    return results.table(journal, CLICKS, SMALL)


def test_differences_are_paired(tmp_path):
    table = made_up_tables(tmp_path)
    rows = {(row.contender.library, row.contender.algorithm): row for row in table.rows}
    assert table.rows[0] is rows["coba", "LinUCB"]
    assert rows["explorax", "glm_tsl"].more is None
    assert rows["coba", "LinUCB"].more == (-2, -2, -2)  # though regrets differ from instance to instance
    assert rows["coba", "LinUCB"].ratio == pytest.approx((301 / 101, 302 / 102, 300 / 100))
    verdicts = {key: row.verdict for key, row in rows.items()}
    assert verdicts.pop(("coba", "LinUCB")) == "lower"
    assert verdicts.pop(("explorax", "glm_tsl")) == "reference"
    assert set(verdicts.values()) == {"alike"}  # 1, 2 and 3 more are too few to tell


def test_tables_say_what_was_found(tmp_path):
    written = tables.markdown([made_up_tables(tmp_path)], SMALL, VERSIONS, "the command")
    assert all(len(line) <= 100 for line in written.splitlines() if not line.startswith("|"))
    text = " ".join(written.split())
    assert text.startswith("Written by `the command`: 5 rounds; scales tuned on 2 instances, regret and time of 3")
    assert "K = 4, d = 3; uniform choices have a regret of 50." in text
    verdict = (
        "7 contenders next to glm_tsl: lower regret 1 (coba LinUCB), no significant difference 6, higher regret 0."
    )
    assert verdict in text
    assert (
        "| coba | LinUCB, misspecified | alpha 0.1 | 9.0 (6.5 to 11.5) | **−2.0 (−2.0 to −2.0) lower** "
        "| 301 (300–302) | 2.98 (2.96–3.00) |" in text
    )
    assert "| explorax | glm_tsl | scale 0.1 | 11.0 (8.5 to 13.5) | – | 101 (100–102) | 1.00 (1.00–1.00) |" in text
    assert "| vowpalwabbit | RegCB, misspecified | mellowness 0.001, rate 0.25 |" in text


def test_a_scale_at_the_end_of_its_grid_is_marked(tmp_path):
    journal = journal_of(tmp_path / "runs.jsonl", NUMBERS, lambda player, setting, seed: setting.scale + seed)
    table = results.table(journal, NUMBERS, SMALL)
    assert all(row.at_the_end for row in table.rows)
    assert "| scale 0.03 (end of its grid) |" in tables.section(table, SMALL)


def test_tables_go_between_their_marks():
    page = f"before\n{tables.BEGIN}\nold\n{tables.END}\nafter\n"
    new = tables.inserted(page, "new")
    assert new == f"before\n{tables.BEGIN}\n\nnew\n\n{tables.END}\nafter\n"
    assert tables.inserted(new, "new") == new
    with pytest.raises(SystemExit, match="has no place for the tables"):
        tables.inserted("before\nafter\n", "new")


def test_names_in_the_figure_cover_nothing(tmp_path, monkeypatch):
    random = np.random.default_rng(3)
    table = made_up_tables(tmp_path)
    rows = []
    for row in table.rows:
        time, regret = 10 ** random.uniform(1.5, 3.2), 10 ** random.uniform(1, 2)
        rows.append(
            row._replace(
                microseconds=results.Spread(time, 0.97 * time, 1.05 * time),
                regret=results.Estimate(regret, 0.92 * regret, 1.08 * regret),
            )
        )
    written = []
    monkeypatch.setattr(picture, "write", lambda *given: written.append((given, labels.write(*given))))
    drawn = picture.picture([table._replace(rows=rows)] * 2)
    assert len(written) == 2
    for (axes, names, taken), texts in written:
        boxes = [text.get_window_extent() for text in texts]
        room = axes.get_window_extent()
        assert sorted(text.get_text() for text in texts) == sorted(name.text for name in names)
        assert all(room.x0 <= box.x0 and box.x1 <= room.x1 and room.y0 <= box.y0 and box.y1 <= room.y1 for box in boxes)
        for index, box in enumerate(boxes):
            assert not box.count_overlaps([*taken, *boxes[:index]])
    assert [text.get_text() for text in drawn.legends[0].get_texts()][:6] == picture.LIBRARIES


# Asking

FAKE = """
import sys
sys.path.append({peers!r})
from common import Adapter, serve

class Fake(Adapter):
    def __init__(self, task):
        print("noise")
        self.arm = int(task.scale)

    def choose(self, context):
        return self.arm, None

    def learn(self, context, arm, reward, propensity):
        if self.arm == 3:
            raise ValueError("no arm 3 today")

serve("numpy", {{"fake": Fake}})
"""


def test_a_library_answers_from_a_process_of_its_own(tmp_path):
    adapter, log = tmp_path / "fake_adapter.py", tmp_path / "fake.log"
    adapter.write_text(FAKE.format(peers=str(PEERS)))
    with asking.Library(Path(sys.executable), adapter, log) as library:
        for arm in (0, 2):
            rounds = list(common.Problem("linear", "shared", 4, 3, 0).rounds(40))
            found = library.play(task(algorithm="fake", scale=arm))
            assert found["version"] == np.__version__
            assert found["regret"] == pytest.approx(sum(max(r.means) - r.means[arm] for r in rounds), abs=1e-4)
        assert log.read_text() == "noise\nnoise\n"
        with pytest.raises(SystemExit, match=r"(?s)fake failed at Task.*no arm 3 today"):
            library.play(task(algorithm="fake", scale=3))


class Player:
    """In the place of a library."""

    def __init__(self, python, adapter, log):
        self.name = adapter.stem

    def play(self, played):
        if played.seed == 13:
            raise SystemExit("bad luck")
        return {"by": self.name, "seed": played.seed}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def test_all_work_is_done_once_and_stops_at_a_failure(tmp_path, monkeypatch):
    monkeypatch.setattr(asking, "Library", Player)
    monkeypatch.setattr(asking.os, "sched_setaffinity", lambda *_: None)
    done = []

    def play(seeds, cores):
        works = [("coba", task(algorithm="LinTS", seed=seed)) for seed in seeds]
        asking.play_all(works, cores, tmp_path, tmp_path, lambda name, played, answer: done.append(answer))

    play(range(10), [0, 1])
    assert sorted(answer["seed"] for answer in done) == list(range(10))
    assert {answer["by"] for answer in done} == {"coba_adapter"}
    done.clear()
    with pytest.raises(SystemExit, match="bad luck"):
        play([11, 12, 13, 14, 15], [0])
    assert [answer["seed"] for answer in done] == [11, 12]
