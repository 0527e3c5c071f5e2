"""The answer of an evaluation: what the log says of each policy, or that it cannot tell, in one or two sentences."""

from collections.abc import Mapping, Sequence

from explorax.evaluation.diagnostics import Diagnosis
from explorax.evaluation.values import LOGGING, PolicyValue, number, percent, span
from explorax.text import listed

NEVER_RANDOM = (
    "The rule that made this log was never random, so what other arms would have paid is not in it. Weights cannot "
    "judge policies that choose differently; only a reward model can, by extrapolation that nothing here confirms."
)
SHOWN = {
    "better": f"shown better than the {LOGGING}",
    "worse": f"shown worse than the {LOGGING}",
    "undecided": f"not shown to differ from the {LOGGING}",
}
MODEL_ALONE = "According to the reward model alone, whose errors the intervals do not know: "
ESTIMATED = "If the estimated propensities are right: "


def answer(rows: Sequence[PolicyValue], diagnoses: Mapping[str, Diagnosis], random: bool, estimated: bool) -> str:
    """Return what the log says, in one or two sentences.

    Args:
        rows: The values, that of the policy that made the log first; of each target the first value counts.
        diagnoses: What is known of the log with respect to the targets, by name.
        random: Whether the policy that made the log left anything to chance.
        estimated: Whether propensities are estimates.

    Returns:
        The sentences.
    """
    if not random:
        return NEVER_RANDOM
    first = {row.target: row for row in reversed(rows) if row.target != LOGGING}
    first = {name: first[name] for name in dict.fromkeys(row.target for row in rows[1:])}
    dark = [name for name in first if name in diagnoses and diagnoses[name].verdict == "no"]
    seen = [row for name, row in first.items() if name not in dark]
    parts = []
    if dark:
        why = diagnoses[dark[0]].sentences()[1]
        parts.append(f"The log cannot answer for {listed(dark)}: {_lowered(why)}")
    if seen:
        condition = MODEL_ALONE if all(row.estimator == "dm" for row in seen) else ESTIMATED if estimated else ""
        told = _one(seen[0], rows[0]) if len(seen) == 1 else _several(seen)
        parts.append(condition + told)
    barely = [row.target for row in seen if row.target in diagnoses and diagnoses[row.target].verdict == "barely"]
    if barely:
        parts.append(f"The log is barely enough to tell about {listed(barely)}.")
    return " ".join(parts)


def _one(row: PolicyValue, logging: PolicyValue) -> str:
    """Return what is shown of a single policy."""
    assert row.gain_low is not None  # only the logging policy has none
    assert row.gain_high is not None
    return (
        f"{row.target} would have earned {number(row.value)} per decision, where the {LOGGING} earned "
        f"{number(logging.value)}: it is {SHOWN[row.verdict]} (difference {span(row.gain_low, row.gain_high, '+')}, "
        f"{percent(row.level)} {row.interval} interval)."
    )


def _several(rows: Sequence[PolicyValue]) -> str:
    """Return which policies are shown better, which worse, and of which nothing is shown."""
    parts = []
    for verdict, words in SHOWN.items():
        names = [row.target for row in rows if row.verdict == verdict]
        if names:
            parts.append(f"{listed(names)} {'is' if len(names) == 1 else 'are'} {words}")
    level, kinds = percent(rows[0].level), listed(list(dict.fromkeys(row.interval for row in rows)))
    return f"{'; '.join(parts)} (each by a {level} {kinds} interval of the difference)."


def _lowered(sentence: str) -> str:
    """Return a sentence as it goes on after a colon."""
    return sentence[0].lower() + sentence[1:]
