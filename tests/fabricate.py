"""A believable run of Figure 1 without playing it: regret like t, √t or log t, with noise over instances."""

import numpy as np

from explorax.experiments import logistic
from explorax.record import Records, Result

ROUNDS, INSTANCES, DIMS = 50_000, 40, (5, 10, 20)


def grow(kind, rounds):
    """A shape that is 1 at the end."""
    t, n = np.asarray(rounds, float), float(rounds[-1])
    return {"linear": t / n, "sqrt": np.sqrt(t / n), "log": np.log1p(t / 50) / np.log1p(n / 50)}[kind]


def records(kind, final, *, rounds=ROUNDS, instances=INSTANCES, checkpoints=100, seed=0, spread=0.3, first=0):
    """Regret of that shape and size; "stuck" is log-like, but one instance in eight pays for ever."""
    rng = np.random.default_rng(seed)
    at = rounds * np.arange(1, checkpoints + 1) // checkpoints
    size = final * np.exp(spread * rng.normal(size=instances) - spread**2 / 2)
    regret = size[:, None] * grow("log" if kind == "stuck" else kind, at)
    # Each stretch of rounds is a little luckier or unluckier than the last, and none pays back.
    luck = rng.gamma(25.0, 1 / 25.0, regret.shape)
    regret = np.cumsum(np.diff(regret, axis=1, prepend=0.0) * luck, axis=1)
    if kind == "stuck":
        regret[::8] = size[::8, None] + 0.1 * at  # and pays exactly the same in every round
    numbers = np.arange(first, first + instances)
    return Records(
        instances=numbers,
        rounds=at,
        regret=regret,
        reward=0.8 * at - regret,
        digest=(numbers * 2654435761 % 2**32).astype(np.uint32),
        unconverged=np.zeros(instances, np.int64),
    )


# Of each policy and design: its shape, and its regret at d = 5 after 50 000 rounds (it grows with d).
SHAPES = {
    ("glm_ucb", "theory"): ("linear", 10_500.0),
    ("ucb_glm", "theory"): ("log", 130.0),
    ("glm_tsl", "theory"): ("sqrt", 1_200.0),
    ("glm_fpl", "theory"): ("sqrt", 1_600.0),
    ("glm_ucb", "informal"): ("stuck", 50.0),
    ("ucb_glm", "informal"): ("linear", 2_000.0),
    ("glm_tsl", "informal"): ("log", 90.0),
    ("glm_fpl", "informal"): ("log", 160.0),
}


def results(shapes=None, *, dims=DIMS, rounds=ROUNDS, instances=INSTANCES):
    """A result for each curve of Figure 1 and each panel; `shapes` replaces some of the usual ones."""
    shapes = SHAPES | (shapes or {})
    found = []
    for dim in dims:
        for index, curve in enumerate(logistic.study().curves):
            kind, final = shapes[curve.policy, curve.design]
            played = records(kind, final * (dim / 5) ** 0.7, rounds=rounds, instances=instances, seed=100 * dim + index)
            who = curve.label, curve.policy, curve.design, "logistic", f"d = {dim}"
            found.append(Result(*who, played, seconds=1.0 + index))
    return found


def tags(dims=DIMS):
    """What tables call the panels."""
    return {f"d = {dim}": {"dim": dim} for dim in dims}


# Of each curve of Figure 2: its policy, and its average reward at the end.
REWARDS = {
    "DeepFPL": ("deep_fpl", 0.535),
    "DeepFL": ("deep_fl", 0.52),
    "repGLM-FPL, m = 1 %": ("rep_glm_fpl", 0.42),
    "repGLM-FPL, m = 5 %": ("rep_glm_fpl", 0.47),
    "repGLM-FPL, m = 10 %": ("rep_glm_fpl", 0.485),
    "repGLM-FPL, m = 20 %": ("rep_glm_fpl", 0.475),
}
DEEP_PANELS = ("MNIST, ReLU", "MNIST, tanh", "Fashion-MNIST, ReLU", "Fashion-MNIST, tanh")


def deep_results(levels=None, *, panels=DEEP_PANELS, rounds=10_000, instances=50, checkpoints=100):
    """A result for each curve of Figure 2 and each panel; `levels` replaces the average rewards of some curves."""
    at = rounds * np.arange(1, checkpoints + 1) // checkpoints
    found = []
    for panel in panels:
        for index, (label, (policy, usual)) in enumerate(REWARDS.items()):
            level = (levels or {}).get(label, usual)
            rng = np.random.default_rng(100 * panels.index(panel) + index)
            learned = 0.3 + (level - 0.3) * at / (at + 0.03 * rounds) * 1.03
            average = learned + rng.normal(0, 0.01, (instances, 1)) * np.sqrt(rounds / at)
            played = Records(
                instances=np.arange(instances),
                rounds=at,
                regret=0.5757 * at - average * at,
                reward=average * at,
                digest=np.arange(instances, dtype=np.uint32),
                unconverged=np.zeros(instances, np.int64),
            )
            found.append(Result(label, policy, "", "classification", panel, played, seconds=1.0 + index))
    return found


def result(curve="a", panel="d = 5", first=0, instances=3, seconds=1.5, seed=0):
    played = records("sqrt", 100.0, rounds=40, checkpoints=4, instances=instances, first=first, seed=seed)
    return Result(curve, "glm_tsl", "theory", "logistic", panel, played, seconds, 0.5)
