"""Hard fits by the hundred thousand: how many fail, and how many Newton steps they take.

    python benchmarks/fit_stress.py [--cases 100000] [--seed 0] [--kept]

A case is a random history, ridge, tilt and starting point drawn from what breaks naive code:

    histories   ordinary; d single pulls of d arms; separated rewards; only the smallest or largest reward
    counts      log-uniform up to 1e6
    features    of size 1; columns on scales from 1e-3 to 1e3 (in float32, to where the dtype ends); two collinear
    tilts       none, GLM-FPL's with a = 0.5 (informal) and 7 (the theory's at d = 20, n = 50 000)
    ridges      1, 1e-2, 1e-4 and, in float64, 1e-6
    starts      zero, random, and 1000 times too far

A fit fails if it is not finite or its gradient is not at the level of rounding.  The column "unsure" counts those whose
scores need not be right even so, because rounding is too large there (not `Fit.converged`).

Each case is solved twice: by `glm.fit`, and as a round of a bandit with fixed arms does it (`glm.warm`, the column
"kept"), from the estimate without the tilt and the curvature that is kept there.
"""

import argparse
import time
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from explorax.glm import families, warm
from explorax.glm.fit import MAX_STEPS, Fit, fit
from explorax.glm.history import Grouped
from explorax.glm.problem import gradient_error, posed

FAMILIES = ("bernoulli", "gaussian", "poisson")
SHAPES = ((2, 1), (10, 3), (30, 10), (60, 20))  # arms, features
RIDGES = (1.0, 1e-2, 1e-4, 1e-6)
RESOLVED = {"float64": 1e-12, "float32": 1e-4}  # smallest ridge, relative to the largest squared feature; see `glm.fit`


class Cases(NamedTuple):
    """A batch of fits to do."""

    history: Grouped
    tilt: jax.Array
    start: jax.Array


def hard_cases(
    rng: np.random.Generator, family: str, size: int, shape: tuple[int, int], dtype: np.dtype, ridge: float
) -> Cases:
    """Draw `size` random cases."""
    arms, features = shape
    x = rng.uniform(-1, 1, (size, arms, features))
    scaled = rng.random(size) < 0.3
    largest_scale = min(3, 0.5 * np.log10(ridge / RESOLVED[dtype.name]))
    x[scaled] *= 10 ** rng.uniform(-3, largest_scale, (scaled.sum(), 1, features))
    if features > 1:
        collinear = rng.random(size) < 0.2
        x[collinear, :, -1] = x[collinear, :, 0]

    largest = 10 ** rng.uniform(0, 6, (size, 1))
    counts = np.floor(largest ** rng.random((size, arms))) * (
        rng.random((size, arms)) < rng.choice((0.1, 0.5, 1), (size, 1))
    )
    single = rng.random(size) < 0.2
    counts[single] = np.arange(arms) < features

    theta = rng.normal(size=(size, features)) * rng.choice((0.3, 1, 3), (size, 1)) / np.sqrt(features)
    theta /= np.maximum(np.abs(x).max(axis=1), 1e-3)
    scores = np.clip(np.einsum("skd,sd->sk", x, theta), -20, 8)
    sums = rewards(rng, family, counts, scores)
    kind = rng.integers(0, 5, (size, 1))
    if family == "bernoulli":
        sums = np.where(kind == 0, counts * (scores > 0), np.where(kind == 1, counts, sums))
    sums = np.where(kind == 2, 0, sums)

    scale = rng.choice((0, 0.5, 7), (size, 1))
    tilt = scale * np.einsum("skd,sk->sd", x, np.sqrt(counts) * rng.normal(size=counts.shape))
    start = theta * rng.choice((0, 1, 1000), (size, 1)) * rng.normal(size=theta.shape)
    history = Grouped(*(jnp.asarray(value, dtype) for value in (x, counts, sums)))
    return Cases(history, jnp.asarray(tilt, dtype), jnp.asarray(start, dtype))


def rewards(rng: np.random.Generator, family: str, counts: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Sums of that many rewards with these scores."""
    if family == "bernoulli":
        return rng.binomial(counts.astype(int), 1 / (1 + np.exp(-scores)))
    if family == "poisson":
        return rng.poisson(counts * np.exp(scores))
    return counts * scores + np.sqrt(counts) * rng.normal(size=scores.shape)


def solve(family: str, cases: Cases, ridge: float) -> Fit:
    """Fit all cases in one batch."""

    def one(history: Grouped, tilt: jax.Array, start: jax.Array) -> Fit:
        return fit(family, history, ridge=ridge, tilt=tilt, start=start)

    return jax.vmap(one)(cases.history, cases.tilt, cases.start)


def is_solved(found: Fit) -> np.ndarray:
    """Which fits are finite, with a gradient at the level of rounding."""
    level = float(jnp.finfo(found.theta.dtype).eps) ** (2 / 3)
    return np.isfinite(found.theta).all(axis=1) & (np.asarray(found.gradient_error) <= level)


class Kept(NamedTuple):
    """What a round of a bandit with fixed arms finds."""

    theta: jax.Array
    claimed: jax.Array  # whether it says that it converged
    good: jax.Array  # whether it is finite and its gradient at the level of rounding


def solve_kept(family: str, cases: Cases, ridge: float) -> Kept:
    """Fit all cases in one batch, from the estimates without a tilt and the curvature there."""
    nothing = jnp.zeros_like(cases.tilt)
    begin = solve(family, cases._replace(tilt=nothing, start=nothing), ridge).theta
    return descend(family, cases, begin, jnp.asarray(ridge, nothing.dtype))


@partial(jax.jit, static_argnames="family")
@jax.default_matmul_precision("highest")
def descend(family: str, cases: Cases, begin: jax.Array, ridge: jax.Array) -> Kept:
    """The tilted estimates from those without a tilt."""
    glm, level = families.get(family), float(jnp.finfo(begin.dtype).eps) ** (2 / 3)

    def one(history: Grouped, tilt: jax.Array, theta: jax.Array) -> Kept:
        kept = warm.afresh(glm, history, theta, ridge)
        found = warm.descend(glm, kept, kept.posed(history, ridge=ridge, tilt=tilt), theta, level)
        error = gradient_error(glm, posed(history, ridge=ridge, tilt=tilt), found.theta)
        return Kept(found.theta, found.converged, jnp.all(jnp.isfinite(found.theta)) & (error <= level))

    return jax.vmap(one)(cases.history, cases.tilt, begin)


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--kept", action="store_true", help="also fit with a kept curvature (glm.warm)")
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    cells = [
        (dtype, family, ridge)
        for dtype in (np.dtype("float64"), np.dtype("float32"))
        for family in options.families
        for ridge in RIDGES
        if ridge >= RESOLVED[dtype.name]
    ]
    size = -(-options.cases // (len(cells) * len(SHAPES)))
    head = f"{'dtype':8s} {'family':10s} {'ridge':>6s} {'cases':>7s} {'failures':>8s} {'kept':>6s} {'unsure':>6s}"
    print(f"{head}   steps: median, 99 %, most")
    total, failures, kept_failures, most, began = 0, 0, 0, 0, time.perf_counter()
    for dtype, family, ridge in cells:
        cases = [hard_cases(rng, family, size, shape, dtype, ridge) for shape in SHAPES]
        fits = [solve(family, batch, ridge) for batch in cases]
        steps = np.concatenate([np.asarray(f.iterations) for f in fits])
        good = np.concatenate([is_solved(f) for f in fits])
        unsure = sum(int(np.sum(~f.converged)) for f in fits)
        kept_bad = sum(int(np.sum(~solve_kept(family, batch, ridge).good)) for batch in cases if options.kept)
        middle, high, top = np.percentile(steps, (50, 99, 100))
        row = f"{dtype.name:8s} {family:10s} {ridge:6.0e} {len(good):7d} {np.sum(~good):8d} {kept_bad:6d} {unsure:6d}"
        print(f"{row}   {middle:.0f}, {high:.0f}, {top:.0f}", flush=True)
        total, failures, most = total + len(good), failures + int(np.sum(~good)), max(most, int(top))
        kept_failures += kept_bad
    seconds = time.perf_counter() - began
    print(f"{total} cases, {failures} failures, at most {most} of {MAX_STEPS} steps, {seconds:.0f} s")
    if options.kept:
        print(f"with kept curvature: {kept_failures} failures")


if __name__ == "__main__":
    main()
