"""Claims hold in every panel, fail in any, or are undecided; their evidence is said with the numbers of the results."""

import json

import numpy as np
import pytest

from explorax import claims
from explorax.claims import Claim, Evidence, Finding, Question
from explorax.record import Records, Result


def result(final, curve="a", panel="d = 5", reward=None):
    """A result of ten rounds with these regrets at the end, and average rewards of `reward`."""
    regret = np.asarray(final, float)[:, None]
    count = len(regret)
    paid = np.zeros_like(regret) if reward is None else 10 * np.asarray(reward, float)[:, None]
    records = Records(np.arange(count), np.array([10]), regret, paid, np.zeros(count, np.uint32), np.zeros(count, int))
    return Result(curve, "glm_tsl", "theory", "logistic", panel, records, 2.5)


def judged(answers, needs=("a",)):
    """A claim whose answer depends on the panel."""

    def judge(found):
        return Finding({"x": {"value": 1.0}}, (Evidence("It is 1.", answers[found["a"].panel]), Evidence("Yes.", True)))

    results = [result([1.0, 2.0], panel=panel) for panel in ("wide", "narrow")]
    return claims.evaluate([Question("name", "Statement.", needs, judge)], results)


def test_a_claim_holds_overall_if_it_holds_in_every_panel():
    overall, wide, narrow = judged({"wide": True, "narrow": True})
    assert (overall.holds, overall.panel, wide.panel, narrow.panel) == (True, None, "wide", "narrow")
    overall, wide, narrow = judged({"wide": True, "narrow": False})
    assert (overall.holds, wide.holds, narrow.holds) == (False, True, False)
    assert overall.numbers == {"wide": {"holds": True}, "narrow": {"holds": False}}
    assert (overall.verdict, wide.verdict) == ("does not hold", "holds")
    assert narrow.evidence == (Evidence("It is 1.", False), Evidence("Yes.", True))


def test_a_claim_about_a_curve_that_is_missing_is_undecided():
    overall, wide, _ = judged({}, needs=("a", "b"))
    assert (overall.holds, wide.holds, wide.verdict) == (None, None, "undecided")
    assert wide.reason == "There is no curve 'b', which the claim is about."
    assert overall.reason == f"wide: {wide.reason} narrow: {wide.reason}"
    (overall,) = claims.evaluate([Question("n", "S.", (), lambda found: Finding({}, ()))], [])
    assert (overall.holds, overall.reason) == (None, "There are no results.")


@pytest.mark.parametrize(
    ("measure", "said"),
    [
        ("regret", "a beats b: regret 3.0 ± 1.2 against 13.0 ± 1.2, paired difference -10.0 ± 0.0."),
        ("reward", "a does not beat b: average reward 0.2000 ± 0.0577 against 0.4000 ± 0.0577, paired difference "
         "-0.2000 ± 0.0000."),
    ],
)  # fmt: skip
def test_who_beats_whom_is_said_with_means_and_the_paired_difference(measure, said):
    ours = result([1, 3, 5], reward=[0.1, 0.2, 0.3])
    theirs = result([11, 13, 15], "b", reward=[0.3, 0.4, 0.5])
    found = claims.beat([("a", "b")], measure, {"a": ours, "b": theirs})
    assert found.evidence == (Evidence(said, measure == "regret"),)
    assert found.holds == (measure == "regret")
    assert found.numbers["a against b"].keys() == {"difference", "stderr", "z", "instances"}


def test_means_are_over_the_instances_that_both_have_played():
    more = result([1, 3, 5, 1000])
    found = claims.beat([("a", "b")], "regret", {"a": more, "b": result([11, 13, 15], "b")})
    assert "regret 3.0 ± 1.2 against 13.0 ± 1.2" in found.evidence[0].sentence


def test_the_headline_counts_claims_and_not_panels():
    three = [Claim("a", "A.", True, {}), Claim("a", "A.", True, {}, panel="x"), Claim("b", "B.", False, {})]
    assert claims.headline(three) == "1 of 2 claims holds in every panel, 1 does not."
    assert claims.headline([*three, Claim("c", "C.", None, {}, "Why.")]).endswith("1 does not, 1 is undecided.")
    assert claims.headline(three[:1] * 4) == "4 of 4 claims hold in every panel."
    assert claims.headline([]) == "No claims were checked."


def test_claims_as_json(tmp_path):
    numbers = {"A against B": {"difference": -1234.56, "z": None, "instances": 3}}
    written = [
        Claim("n", "S.", True, numbers, panel="d = 5", evidence=(Evidence("A beats B.", True),)),
        Claim("m", "T.", None, {}, "Why."),
    ]
    claims.write_claims(tmp_path / "claims.json", written)
    read = json.loads((tmp_path / "claims.json").read_text())
    assert [one["verdict"] for one in read] == ["holds", "undecided"]
    assert read[0]["numbers"]["A against B"]["difference"] == -1234.56
    assert read[0]["evidence"] == [{"sentence": "A beats B.", "holds": True}]
