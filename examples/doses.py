"""Find the dose of a medicine for each patient, from outcomes graded between 0 (no relief) and 1 (full recovery).

    python examples/doses.py [--rounds 600] [--seed 0] [--figure doses.png]

Too little does not help and too much harms, so the features have the square of the dose; heavier patients need more, so
the features have dose × weight.  The example makes the features itself, and gives the agent a table of the doses for
every patient.  The model is logit(mean grade) = xᵀθ: rewards of the Bernoulli family may be any numbers in [0, 1].

The agent follows the perturbed leader, with a memory of constant size.  It estimates no propensities: draws=0.
"""

import argparse

import numpy as np

from explorax import Agent, glm_fpl

DOSES = [10, 20, 30, 40, 50, 60, 70, 80]  # mg
BEST = 0.6  # mg for each kg
PRECISION = 4.0  # of grades, which are beta distributed


def features(dose: int, weight: float) -> list[float]:
    """Return features of size about 1, with the dose measured from 45 mg and the weight from 75 kg."""
    level, size = (dose - 45) / 20, (weight - 75) / 20
    return [1.0, level, level**2, size, size**2, level * size]


def expected_grade(dose: int, weight: float) -> float:
    """Return the true mean grade, which the agent does not see; it is best at 0.6 mg for each kg."""
    return float(1 / (1 + np.exp(-1.5 + ((dose - BEST * weight) / 15) ** 2)))


def draw(path: str, weights: np.ndarray, given: np.ndarray) -> None:
    """Draw the dose that each patient was given against the weight, beside the best dose."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), dpi=100, layout="constrained")
    axes = figure.add_subplot()
    half = len(weights) // 2
    axes.plot(
        weights[:half], given[:half] - 0.8, "o", ms=4, alpha=0.7, color="#E69F00", label="first half of the patients"
    )
    axes.plot(
        weights[half:], given[half:] + 0.8, "o", ms=4, alpha=0.7, color="#0072B2", label="second half of the patients"
    )
    ends = np.array([45.0, 105.0])
    axes.plot(ends, BEST * ends, color="#666666", linewidth=1.5, label=f"best, {BEST} mg for each kg")
    axes.set(xlabel="weight in kg", ylabel="dose in mg", yticks=DOSES)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(frameon=False, loc="outside upper center", ncols=3)
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=600, help="number of patients (default: 600)")
    parser.add_argument("--seed", type=int, default=0, help="seed of all random numbers (default: 0)")
    parser.add_argument("--figure", metavar="FILE", help="also draw doses against weights into this PNG file")
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    weights = rng.uniform(45, 105, options.rounds)  # kg, of one patient after the other
    agent = Agent(glm_fpl(memory="constant"), n_features=6, seed=options.seed, draws=0)
    given = np.zeros(options.rounds)
    for t, weight in enumerate(weights):
        decision = agent.choose({dose: features(dose, weight) for dose in DOSES})
        mean = expected_grade(decision.arm, weight)
        agent.learn(decision.id, rng.beta(PRECISION * mean, PRECISION * (1 - mean)))
        given[t] = decision.arm

    grades = np.array([[expected_grade(dose, weight) for dose in DOSES] for weight in weights])
    best = np.array(DOSES)[grades.argmax(axis=1)]
    received = grades[np.arange(options.rounds), np.searchsorted(DOSES, given)]
    second_half = np.arange(options.rounds) >= options.rounds // 2
    print("mean dose of the second half of the patients")
    print(f"{'weight':>12s} {'patients':>9s} {'given':>6s} {'best':>6s}")
    for low in (45, 65, 85):
        these = second_half & (weights >= low) & (weights < low + 20)
        if these.any():
            averages = f"{given[these].mean():6.1f} {best[these].mean():6.1f}"
            print(f"{f'{low} to {low + 20} kg':>12s} {these.sum():9d} {averages}")
    agents, random, ideal = received.mean(), grades.mean(), grades.max(axis=1).mean()
    print(f"\nmean grade: {agents:.3f} with the agent, {random:.3f} at random, {ideal:.3f} at best")
    if options.figure:
        draw(options.figure, weights, given)


if __name__ == "__main__":
    main()
