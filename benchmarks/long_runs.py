"""An agent that decides a million times: does its memory hold, its matrix stay positive definite, its fit stay right?

    python benchmarks/long_runs.py [--decisions 1000000] [--features 50] [--modes constant …] [--memory]

For each mode of memory an agent plays a logistic bandit with fresh arms in every decision (fixed ones, where the mode
says so), a thousand decisions at a time, and learns their rewards in random order.  Ten times on the way its estimate
is compared with an exact fit to the rewards that it should remember, which are kept apart:

    drift      the largest error of a score xᵀθ̄ on 1000 test rows, in standard deviations ‖x‖_{H⁻¹} of the exact fit
    least      the smallest eigenvalue of Wᵀ H W, the kept root against the exact curvature; 1 where it is exact
    most       the largest one; both positive and finite means that positive definiteness was never lost

The last line of each mode says what the worst of all ten was, and the size of a snapshot.  With --memory nothing is
kept apart or compared, and what is printed is the memory of the process, in MiB.
"""

import argparse
import resource
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from explorax import Agent, fit, make
from explorax.glm import families
from explorax.glm.fit import hessian, posed
from explorax.glm.history import Grouped

BATCH, ARMS, WINDOW, DISCOUNT = 1000, 20, 200, 0.999


@dataclass(frozen=True)
class Mode:
    """A kind of memory, and the weights that it gives to past rewards, the newest last."""

    settings: dict[str, Any]
    fixed: bool = False

    def weights(self, count: int) -> np.ndarray:
        """Of the rewards in the order they were learned."""
        ages = np.arange(count)[::-1]
        if "window" in self.settings:
            return (ages < self.settings["window"]).astype(float)
        return float(self.settings.get("discount", 1.0)) ** ages


MODES = {
    "fixed": Mode({}, fixed=True),
    "fixed, discount": Mode({"discount": DISCOUNT}, fixed=True),
    "fixed, window": Mode({"window": 10 * WINDOW, "tolerance": 1e-6}, fixed=True),
    "constant": Mode({"memory": "constant"}),
    "constant, discount": Mode({"memory": "constant", "discount": DISCOUNT}),
    "refitted": Mode({"memory": "refitted", "window": 10 * WINDOW}),
    "rows, window": Mode({"window": WINDOW // 4}),
}


def play(name: str, decisions: int, features: int, only_memory: bool) -> None:
    """One mode."""
    mode, rng = MODES[name], np.random.default_rng(0)
    theta = rng.normal(0, (3 / features) ** 0.5, features)
    arms = rng.uniform(-1, 1, (2 * features, features))
    policy = make("glm_tsl", warmup="none", **mode.settings)
    agent = Agent(policy, draws=0, **({"arms": arms} if mode.fixed else {"features": features}))
    test = rng.uniform(-1, 1, (1000, features))
    rows, rewards = (np.zeros((0 if only_memory else decisions, size)) for size in (features, 1))
    worst: list[tuple[float, float, float]] = []
    began, learned = time.perf_counter(), 0
    while learned < decisions:
        made = agent.choose_many(BATCH if mode.fixed else rng.uniform(-1, 1, (BATCH, ARMS, features)))
        order = rng.permutation(BATCH)
        paid = (rng.random(BATCH) < 1 / (1 + np.exp(-made.features @ theta))).astype(float)
        agent.learn(np.asarray(made.ids)[order], paid[order])
        if not only_memory:
            rows[learned : learned + BATCH], rewards[learned : learned + BATCH, 0] = made.features[order], paid[order]
        learned += BATCH
        if learned % (decisions // 10) == 0 and only_memory:
            print(
                f"{name:20} {learned:9}  memory {resident():6.0f} MiB, {len(agent.pending)} decisions wait", flush=True
            )
        elif learned % (decisions // 10) == 0:
            worst.append(check(mode, agent, rows[:learned], rewards[:learned, 0], test))
            each = (time.perf_counter() - began) / learned * 1e6
            line = f"drift {worst[-1][0]:8.1e}  least {worst[-1][1]:6.3f}  most {worst[-1][2]:6.3f}"
            print(f"{name:20} {learned:9}  {line}  {each:6.1f} us each", flush=True)
    if only_memory:
        return
    drift, least, most = np.max(worst, axis=0)[0], np.min(worst, axis=0)[1], np.max(worst, axis=0)[2]
    print(
        f"{name:20}     worst  drift {drift:8.1e}  least {least:6.3f}  most {most:6.3f}  state {state_size(agent)} KiB"
    )


def check(
    mode: Mode, agent: Agent, rows: np.ndarray, rewards: np.ndarray, test: np.ndarray
) -> tuple[float, float, float]:
    """Drift, and how far the kept root is off."""
    weights = mode.weights(len(rows))
    seen = weights > 1e-12
    with jax.enable_x64(True):
        history = Grouped(rows[seen], weights[seen], weights[seen] * rewards[seen])  # type: ignore[arg-type]
        exact = fit("bernoulli", history, ridge=1.0, start=agent.state.theta_hat)
        curvature = np.asarray(hessian(families.bernoulli, posed(history, ridge=1.0), exact.theta))
    deviations = np.sqrt(np.einsum("id,id->i", test @ np.linalg.inv(curvature), test))
    drift = np.max(np.abs(test @ (np.asarray(agent.state.theta_hat) - np.asarray(exact.theta))) / deviations)
    state = agent.state
    root = state.warm.root if state.warm is not None else getattr(state.history, "root", None)
    if root is None:  # built anew for every decision
        return float(drift), 1.0, 1.0
    eigenvalues = np.linalg.eigvalsh(np.asarray(root).T @ curvature @ np.asarray(root))
    return float(drift), float(eigenvalues[0]), float(eigenvalues[-1])


def resident() -> float:
    """MiB of memory that this process has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def state_size(agent: Agent) -> int:
    """KiB of a snapshot."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "agent.npz"
        agent.save(path)
        return path.stat().st_size // 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--decisions", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--memory", action="store_true", help="print the memory of the process in place of drift")
    parser.add_argument("--modes", nargs="+", choices=list(MODES), default=list(MODES))
    options = parser.parse_args()
    if options.decisions % (10 * BATCH):
        parser.error(f"--decisions must be a multiple of {10 * BATCH}")
    for name in options.modes:
        play(name, options.decisions, options.features, options.memory)


if __name__ == "__main__":
    main()
