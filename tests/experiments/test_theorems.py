"""What the theorems promise is computed for each instance as they say it, and the claims notice when it is broken."""

import json
import math

import numpy as np
import pytest

import explorax.runner
from explorax import cli, plot, summarize, theory
from explorax.errors import InvalidArgument, TheoryNotApplicable, UnknownName
from explorax.experiments import theorems
from explorax.experiments.settings import from_settings
from explorax.experiments.study import curve
from explorax.glm import families
from explorax.record import Records, Result
from explorax.simulation import draw

TSL, FPL = theorems.LABELS.values()
UNDER_1, UNDER_2 = "glm_tsl_under_theorem_1", "glm_fpl_under_theorem_2"


def result(study, label, regret, rounds=None, panel=0):
    """A result with that regret of each instance at each checkpoint, numbered as if some came before."""
    regret = np.atleast_2d(np.asarray(regret, float))
    count = len(regret)
    policy = next(one.policy for one in study.curves if one.label == label)
    rounds = np.array([study.rounds] if rounds is None else rounds)
    records = Records(
        instances=np.arange(2, 2 + count),
        rounds=rounds,
        regret=regret,
        reward=np.zeros_like(regret),
        digest=np.zeros(count, np.uint32),
        unconverged=np.zeros(count, np.int64),
    )
    return Result(label, policy, "theory", study.environment, study.panels[panel].label, records, seconds=1.0)


SMALL = theorems.quick(environment="gaussian", instances=4, n_arms=20)
STUDIES = [build(environment=name) for name in theorems.KINDS for build in (theorems.study, theorems.quick)]


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: f"{study.environment} {study.rounds}")
def test_problems_are_those_that_the_theorems_are_about(study):
    kind = theorems.KINDS[study.environment]
    slope = families.get(kind.family).slope
    for number, panel in enumerate(study.panels):
        environment = study.make_environment(panel)
        world = draw(environment, range(50), study.seed)
        arms, theta = np.asarray(world.arms), np.asarray(world.theta)
        assert np.all(np.count_nonzero(arms, axis=2) == 1)
        assert np.max(np.abs(arms)) <= 1
        np.testing.assert_allclose(np.linalg.norm(theta, axis=1), kind.norm, rtol=1e-6)
        for label in (TSL, FPL):
            settings = study.arguments(next(one for one in study.curves if one.label == label), panel)
            assert (settings["design"], settings["warmup"]) == ("theory", "theory")
            assert settings["horizon"] == study.rounds
            # μ̇min is that of the unit ball around θ*, whose ends are scores of ±(‖θ*‖ + 1).
            assert settings["min_slope"] == pytest.approx(float(slope(np.float64(kind.norm + 1))))
            promised = study.promise(result(study, label, np.zeros((48, 1)), panel=number))
            assert np.all(promised.explored < study.rounds)


@pytest.mark.parametrize("study", [theorems.study(), SMALL], ids=["logistic", "gaussian"])
def test_a_promise_is_the_theorem_of_that_instance(study):
    """With one feature to an arm λ_min is the least over features of the largest x², so all can be done by hand."""
    panel = study.panels[1]
    kind, d, n = theorems.KINDS[study.environment], panel.environment_settings["n_features"], study.rounds
    world = draw(study.make_environment(panel), range(2, 5), study.seed)
    family = families.get(kind.family)
    low, high = float(family.slope(np.float64(kind.norm + 1))), family.max_slope
    c1 = kind.noise_std / low * math.sqrt(d * math.log(n / d) + 2 * math.log(n))
    reach = math.sqrt(2 * math.log(world.arms.shape[1] * n))
    radius = math.sqrt(d) + math.sqrt(2 * math.log(n))
    of_theorem = {
        TSL: (c1 * math.sqrt(high / low) * reach, max(c1**2, 1), 1),
        FPL: (c1 * high / low * reach, max(4 * c1**2, (2 * c1 * high / low * radius) ** 2, 1), 2),
    }
    for label, (c2, eigenvalue, p) in of_theorem.items():
        found = study.promise(result(study, label, np.zeros((3, 1)), panel=1))
        smallest = np.min(np.max(np.asarray(world.arms) ** 2, axis=1), axis=1)
        tau = d * np.ceil(eigenvalue / smallest)
        gap = np.max(world.means, axis=1) - np.min(world.means, axis=1)
        growth = high * (c1 + c2) * (1 + 2 / (0.15 - p / n)) * math.sqrt(2 * d * n * math.log(2 * n / d))
        np.testing.assert_array_equal(found.explored, tau)
        played = study.make(next(one for one in study.curves if one.label == label), panel)
        assert [int(played.init(arms).exploration.rounds) for arms in world.arms] == list(tau)
        np.testing.assert_allclose(found.max_gap, gap, rtol=1e-6)
        np.testing.assert_allclose(found.regret[:, 0], growth + (tau + p + 2) * gap, rtol=1e-6)


def test_the_bound_of_a_run_grows_to_that_of_the_theorem():
    at = theory.problem(n_features=5, rounds=50_000, n_arms=100, max_gap=0.3)
    rounds = np.array([1, 2, 3, 50, 4_000, 50_000])
    for policy in theory.THEOREMS:
        within = theory.regret_bounds_of_run(policy, at, rounds, exploration_rounds=70)
        assert within[-1] == theory.regret_bound(policy, at, exploration_rounds=70)
        assert np.all(np.diff(within) >= 0)
        assert within[0] == pytest.approx((70 + theory.THEOREMS[policy] + 2) * 0.3)
        # A run designed for fewer rounds has smaller constants.
        shorter = theory.regret_bounds(policy, at, rounds[3:5], exploration_rounds=70)
        assert np.all(within[3:5] > shorter)
    for rounds in (0, 50_001, [1, 10**9]):
        with pytest.raises(InvalidArgument, match="must lie between 1 and the 50000 rounds"):
            theory.regret_bounds_of_run("glm_tsl", at, rounds)
    with pytest.raises(TheoryNotApplicable, match="rounds must be more than 6 for the bound of glm_tsl, got 6"):
        theory.regret_bounds_of_run("glm_tsl", theory.problem(n_features=2, rounds=6), 3)


@pytest.mark.parametrize("d", [1, 3])
def test_widths_of_pulled_arms_add_up_to_no_more_than_the_proof_says(d):
    """Σ ‖x‖_{G⁻¹} over the rounds τ … t is at most √(2dt log(2t/d)) once λ_min(G) ≥ 1, for each t and any pulls."""
    rng = np.random.default_rng(d)
    basis, widths, t = np.eye(d), 0.0, d
    gram = basis.T @ basis
    for t in range(d + 1, 400):
        one = rng.normal(size=d)
        x = basis[t % d] if rng.random() < 0.5 else one / np.linalg.norm(one)
        widths += math.sqrt(x @ np.linalg.solve(gram, x))
        gram += np.outer(x, x)
        assert widths <= math.sqrt(2 * d * t * math.log(2 * t / d))


def verdicts(study, results):
    return {claim.name: claim.holds for claim in study.claims(results) if claim.panel is None}


def results_of(study, times, rounds=None):
    """Both policies in both panels, each instance with so many times its bound, at each checkpoint."""
    found = []
    for panel in range(len(study.panels)):
        for label in (TSL, FPL):
            empty = result(study, label, np.zeros((3, 1 if rounds is None else len(rounds))), rounds, panel)
            bound = study.promise(empty).regret
            found.append(result(study, label, bound * times(label, panel, bound), rounds, panel))
    return found


def test_claims_notice_one_instance_above_its_bound():
    assert verdicts(SMALL, results_of(SMALL, lambda *about: 0.99)) == {UNDER_1: True, UNDER_2: True}

    def one_above(label, panel, bound):
        return np.where((label == FPL) & (panel == 1) & (np.arange(3)[:, None] == 1), 1.01, 0.9)

    claims = SMALL.claims(results_of(SMALL, one_above))
    assert [(claim.name, claim.panel, claim.holds) for claim in claims] == [
        (UNDER_1, None, True),
        (UNDER_1, "d = 2", True),
        (UNDER_1, "d = 5", True),
        (UNDER_2, None, False),
        (UNDER_2, "d = 2", True),
        (UNDER_2, "d = 5", False),
    ]
    assert "GLM-FPL" in claims[3].statement
    assert "Theorem 2" in claims[3].statement


def test_claims_look_at_every_checkpoint_after_exploration():
    rounds = [1, 1000, SMALL.rounds]
    for above, holds in ((0, True), (1, False), (2, False)):  # before exploration ends a bound says nothing
        times = np.where(np.arange(3) == above, 1.01, 0.9)
        found = verdicts(SMALL, results_of(SMALL, lambda *about, times=times: times, rounds))
        assert found == {UNDER_1: holds, UNDER_2: holds}


def test_numbers_of_a_claim():
    claims = SMALL.claims(results_of(SMALL, lambda *about: np.array([[0.5], [0.25], [0.1]])))
    numbers = next(one for one in claims if (one.name, one.panel) == (UNDER_2, "d = 2")).numbers[FPL]
    promised = SMALL.promise(result(SMALL, FPL, np.zeros((3, 1))))
    bound = promised.regret[:, 0]
    assert numbers["worst_regret"] == pytest.approx(np.max(bound * [0.5, 0.25, 0.1]))
    assert numbers["mean_regret"] == pytest.approx(np.mean(bound * [0.5, 0.25, 0.1]))
    assert numbers["lowest_bound"] == pytest.approx(bound.min())
    assert numbers["bound_over_worst_regret"] == pytest.approx(bound.min() / numbers["worst_regret"])
    trivial = SMALL.rounds * promised.max_gap
    assert numbers["bound_over_largest_possible_regret"] == pytest.approx(np.min(bound / trivial))
    assert (numbers["exploration_rounds"], numbers["rounds"]) == (promised.explored.max(), SMALL.rounds)
    flat = SMALL.claims([result(SMALL, TSL, np.zeros((3, 1)))])
    assert flat[1].numbers[TSL]["bound_over_worst_regret"] is None  # and no division by 0


def test_what_cannot_be_judged_says_why():
    missing = SMALL.claims([result(SMALL, TSL, [[1.0]])])
    assert (missing[0].holds, missing[2].holds) == (True, None)
    assert "There is no curve 'GLM-FPL (theory)'" in missing[2].reason
    short = theorems.study(rounds=50_000, dims=[2])
    both = [result(short, label, [[1.0]]) for label in (TSL, FPL)]
    found = short.claims(both)
    assert [one.holds for one in found] == [True, True, None, None]
    assert "of 50000 rounds, and the theorem is about longer runs. Play more rounds." in found[-1].reason
    assert [bound.policy for bound in short.bounds(both)] == ["glm_tsl"]  # the other has nothing to draw
    with pytest.raises(UnknownName, match="Did you mean 'gaussian'"):
        theorems.study(environment="gausian")
    with pytest.raises(UnknownName, match="theorems must be one of gaussian, logistic, got 'poisson'"):
        theorems.quick(environment="poisson")


def test_a_study_of_the_same_name_may_have_other_curves():
    plain = [curve("glm_tsl", "theory")._asdict(), curve("uniform")._asdict()]
    own = from_settings(SMALL.settings() | {"curves": plain})
    assert own.stem == "theorems"
    results = [result(own, TSL, [[1.0]]), result(own, "Uniform", [[1.0]])]
    assert own.bounds(results) == []
    assert {claim.holds for claim in own.claims(results)} == {None}
    assert (
        "warmup must be 'theory', the exploration that the theorems ask for, got None for GLM-TSL (theory)."
        in own.claims(results)[0].reason
    )


def test_the_figure_shows_what_the_bounds_are_compared_with():
    rounds = np.unique(np.geomspace(1, SMALL.rounds, 40).round().astype(int))
    results = results_of(SMALL, lambda *about: np.array([[0.001], [0.002], [0.01]]), rounds)
    bounds = SMALL.bounds(results)
    assert [(bound.panel, bound.policy) for bound in bounds] == [
        (panel, policy) for panel in ("d = 2", "d = 5") for policy in ("glm_tsl", "glm_fpl")
    ]
    for bound, played in zip(bounds, results, strict=True):
        promised = SMALL.promise(played)
        assert bound.explored == promised.explored.max()
        np.testing.assert_array_equal(bound.rounds, rounds[rounds >= bound.explored])
        np.testing.assert_array_equal(bound.regret, promised.regret.min(axis=0)[rounds >= bound.explored])
        np.testing.assert_array_equal(bound.worst, played.records.regret.max(axis=0))
        assert bound.max_gap == promised.max_gap.max()
    drawn = plot.figure(summarize.series(results, "regret"), scale="log", bounds=bounds)
    (legend,) = drawn.legends
    shown = [TSL, FPL, "bound of Theorem 1", "bound of Theorem 2", "worst instance", "n Δmax, largest possible"]
    assert [text.get_text() for text in legend.get_texts()] == shown
    for axes, here in zip(drawn.axes, (bounds[:2], bounds[2:]), strict=True):
        assert [text.get_text() for text in axes.texts] == [r"$\tau$", r"$\tau$"]
        lines = [line for line in axes.lines if line.get_marker() == "None"]
        assert len(lines) == 2 * 3 + 1  # of each: its bound, τ and the worst instance
        np.testing.assert_array_equal(lines[-1].get_ydata(), here[0].max_gap * np.array([1, SMALL.rounds]))
        assert axes.get_ylim()[1] > here[0].max_gap * SMALL.rounds
    inside, renderer = legend.get_window_extent(), drawn.canvas.get_renderer()
    assert drawn.bbox.x0 <= inside.x0
    assert inside.x1 <= drawn.bbox.x1
    assert not any(inside.overlaps(axes.get_tightbbox(renderer)) for axes in drawn.axes)


@pytest.mark.usefixtures("on_the_cpu")
def test_reproduce_theorems(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(explorax.runner, "on_accelerator", lambda: True)  # spares a process
    command = ["reproduce", "theorems", "--quick", "--environment", "gaussian", "--dims", "2", "--rounds", "400"]
    assert cli.main([*command, "--instances", "3", "--checkpoints", "20", "--strict"]) == 0
    out = tmp_path / "results" / "theorems-gaussian-quick"
    printed = capsys.readouterr().out
    assert "Claims of the paper: 2 of 2 claims hold in every panel." in printed
    assert "  holds          The regret of GLM-FPL is under the bound of Theorem 2 in every instance.\n" in printed
    assert {path.name for path in out.glob("theorems*")} == {"theorems.png", "theorems.pdf"}
    assert not list(out.glob("figure*"))
    page = (out / "report.html").read_text()
    assert "Regret and the bounds of Theorems 1 and 2 (gaussian rewards)" in page
    assert "Thin lines are the worst instance." in page
    assert "The regret of GLM-FPL (theory) is under its bound in 3 of 3 instances." in page
    judged = json.loads((out / "claims.json").read_text())
    assert [(one["name"], one["holds"]) for one in judged if one["panel"]] == [(UNDER_1, True), (UNDER_2, True)]
    # After its τ rounds of the two arms of a basis in turn a policy is free, and not before.
    played = judged[-1]["numbers"][FPL]
    assert 0 < played["exploration_rounds"] < 40
    assert 0 < played["mean_regret"] <= played["worst_regret"] < played["lowest_bound"]
    assert cli.main(["report", str(out), "--bound"]) == 0
    assert {path.name for path in out.glob("theorems*")} == {"theorems.png", "theorems.pdf"}
