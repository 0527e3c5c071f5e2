"""Claims about a run: statements that hold or do not, judged by evidence in sentences with numbers.

A `Question` is a statement with a judge, a function from the results of one panel to a `Finding`.  `evaluate` asks it
in every panel and returns a `Claim` for all panels together, then one for each.  A claim that the results cannot decide
says why.  "Beats" is defined in `explorax.summarize`.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from explorax.errors import InvalidArgument
from explorax.files import write_atomically
from explorax.places import Place
from explorax.record import Result
from explorax.summarize import compare, mean_and_stderr, measured
from explorax.text import with_error

Numbers = dict[str, dict[str, float | int | bool | None]]
SAID = {"regret": "regret", "reward": "average reward"}
DIGITS = {"regret": 1, "reward": 4}  # after the point


class Evidence(NamedTuple):
    """One sentence about the results, with numbers, that supports a claim or contradicts it."""

    sentence: str
    holds: bool


class Finding(NamedTuple):
    """What a judge found in one panel: numbers for programs, and evidence for readers."""

    numbers: Numbers
    evidence: tuple[Evidence, ...]

    @property
    def holds(self) -> bool:
        """Whether all evidence supports the claim."""
        return all(one.holds for one in self.evidence)


class Claim(NamedTuple):
    """A statement about a run, judged.

    Attributes:
        name: An identifier, the same in every panel.
        statement: The claim as a sentence.
        holds: Whether the claim holds; None if the results cannot decide.
        numbers: The numbers behind the verdict, by the curves that they are about.
        reason: Why the claim is undecided; empty otherwise.
        panel: The panel that the claim is judged in; None for all panels together.
        evidence: Sentences with numbers that support the claim or contradict it.
    """

    name: str
    statement: str
    holds: bool | None
    numbers: Numbers
    reason: str = ""
    panel: str | None = None
    evidence: tuple[Evidence, ...] = ()

    @property
    def verdict(self) -> str:
        """The verdict in words: "holds", "does not hold" or "undecided"."""
        return {True: "holds", False: "does not hold", None: "undecided"}[self.holds]


class Question(NamedTuple):
    """A claim before it is judged.

    Attributes:
        name: An identifier.
        statement: The claim as a sentence.
        needs: Labels of the curves that the claim is about.
        judge: A function from the results of a panel, by label, to a finding.
    """

    name: str
    statement: str
    needs: tuple[str, ...]
    judge: Callable[[Mapping[str, Result]], Finding]


def beat(pairs: Sequence[tuple[str, str]], measure: str, found: Mapping[str, Result]) -> Finding:
    """Judge whether the first curve of each pair beats the second.

    Args:
        pairs: Labels of curves.
        measure: "regret" or "reward".
        found: The results of a panel, by label.

    Returns:
        One sentence for each pair.
    """
    numbers: Numbers = {}
    evidence = []
    for one, other in pairs:
        comparison = compare(found[one], found[other], measure)
        numbers[f"{one} against {other}"] = {
            name: value for name, value in comparison._asdict().items() if name != "beats"
        }
        means = (_common(found[a], found[b], measure) for a, b in ((one, other), (other, one)))
        gap = with_error(comparison.difference, comparison.stderr, DIGITS[measure], "+")
        verb = "beats" if comparison.beats else "does not beat"
        said = f"{SAID[measure]} {' against '.join(means)}, paired difference {gap}"
        evidence.append(Evidence(f"{one} {verb} {other}: {said}.", comparison.beats))
    return Finding(numbers, tuple(evidence))


def _common(result: Result, other: Result, measure: str) -> str:
    """Return the mean ± standard error of a result at the end, over the instances that both results have."""
    both = np.isin(result.records.instances, other.records.instances)
    mean, stderr = mean_and_stderr(measured(result.records, measure)[both, -1])
    return with_error(float(mean), None if stderr is None else float(stderr), DIGITS[measure])


def evaluate(questions: Sequence[Question], results: Sequence[Result]) -> list[Claim]:
    """Judge questions by the results of a run.

    Args:
        questions: The claims to judge.
        results: The results of all curves in all panels.

    Returns:
        For each question, the claim for all panels together, then one for each panel.
    """
    claims = []
    for question in questions:
        each = [_judge(question, results, panel) for panel in dict.fromkeys(result.panel for result in results)]
        claims += [in_every_panel(question.name, question.statement, each), *each]
    return claims


def _judge(question: Question, results: Sequence[Result], panel: str) -> Claim:
    here = {result.curve: result for result in results if result.panel == panel}
    missing = [label for label in question.needs if label not in here]
    try:
        if missing:
            raise InvalidArgument(f"There is no curve {missing[0]!r}, which the claim is about.")
        finding = question.judge(here)
    except InvalidArgument as error:  # or there are too few instances or checkpoints
        return Claim(question.name, question.statement, None, {}, str(error), panel)
    return Claim(question.name, question.statement, finding.holds, finding.numbers, "", panel, finding.evidence)


def in_every_panel(name: str, statement: str, each: Sequence[Claim]) -> Claim:
    """Combine the verdicts of a claim in each panel into one for all panels.

    Args:
        name: The claim's identifier.
        statement: The claim as a sentence.
        each: The claim in each panel.

    Returns:
        A claim that holds if it holds in every panel, and does not hold if it fails in any; otherwise it is undecided.
    """
    numbers: Numbers = {str(claim.panel): {"holds": claim.holds} for claim in each}
    verdicts = [claim.holds for claim in each]
    if False in verdicts:
        return Claim(name, statement, False, numbers)
    reasons = [f"{claim.panel}: {claim.reason}" for claim in each if claim.holds is None]
    if reasons or not each:
        return Claim(name, statement, None, numbers, " ".join(reasons) or "There are no results.")
    return Claim(name, statement, True, numbers)


def headline(claims: Sequence[Claim]) -> str:
    """Say in one sentence how many claims hold.

    Args:
        claims: Claims as `evaluate` returns them; those about single panels are not counted.

    Returns:
        A sentence such as "3 of 4 claims hold in every panel, 1 does not."
    """
    overall = [claim for claim in claims if claim.panel is None]
    if not overall:
        return "No claims were checked."
    count = {verdict: sum(claim.holds is verdict for claim in overall) for verdict in (True, False, None)}
    text = f"{count[True]} of {len(overall)} claims {'holds' if count[True] == 1 else 'hold'} in every panel"
    if count[False]:
        text += f", {count[False]} {'does' if count[False] == 1 else 'do'} not"
    if count[None]:
        text += f", {count[None]} {'is' if count[None] == 1 else 'are'} undecided"
    return f"{text}."


def write_claims(path: Place, claims: Iterable[Claim]) -> None:
    """Write claims to a JSON file, each with its verdict in words."""
    plain = [
        claim._asdict() | {"verdict": claim.verdict, "evidence": [one._asdict() for one in claim.evidence]}
        for claim in claims
    ]
    write_atomically(path, (json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode())
