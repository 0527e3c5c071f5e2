"""Answers: what is shown, what the log cannot tell, and on which condition."""

import numpy as np
import pytest

from explorax import LoggedData
from explorax.evaluation.answer import ESTIMATED, MODEL_ALONE, NEVER_RANDOM, answer
from explorax.evaluation.diagnostics import diagnose
from explorax.evaluation.scores import scored
from explorax.evaluation.values import LOGGING
from tests.evaluation.test_values import row

LOG = row(target=LOGGING, estimator="on_policy", gain=None, gain_low=None, gain_high=None, value=0.4)
WORSE = {"gain_low": -0.2, "gain_high": -0.1}
OPEN = {"gain_low": -0.2, "gain_high": 0.1}


def diagnosis(rows, chance):
    """Return the diagnosis of a log of two arms in which the target's arm has a chance."""
    rng = np.random.default_rng(0)
    arms, every = (rng.random(rows) > chance).astype(int), np.tile([chance, 1 - chance], (rows, 1))
    log = LoggedData.of(arms, np.zeros(rows), names=[0, 1], all_propensities=every)
    return diagnose(log, scored(log.rewards, arms, log.propensities, np.tile([1.0, 0.0], (rows, 1)), None, every))


GOOD, NEAR, BAD = diagnosis(5000, 0.5), diagnosis(600, 0.5), diagnosis(500, 0.01)


def test_the_diagnoses_of_these_tests():
    assert [each.verdict for each in (GOOD, NEAR, BAD)] == ["yes", "barely", "no"]


@pytest.mark.parametrize(
    ("gain", "said"), [({}, "shown better"), (WORSE, "shown worse"), (OPEN, "not shown to differ")]
)
def test_of_one_policy_the_values_are_told(gain, said):
    told = answer([LOG, row(**gain), row(estimator="dm")], {"new": GOOD}, True, False)
    assert told.startswith("new would have earned 0.5000 per decision, where the logging policy earned 0.4000: it is ")
    assert said in told
    assert told.endswith("anytime interval).")


def test_several_policies_are_sorted_by_what_is_shown():
    rows = [LOG, row(target="a"), row(target="b", **WORSE), row(target="c"), row(target="d", **OPEN)]
    told = answer(rows, {}, True, False)
    assert "a and c are shown better" in told
    assert "b is shown worse" in told
    assert "d is not shown to differ" in told


def test_the_first_estimator_counts():
    told = answer([LOG, row(**WORSE), row(estimator="snips")], {"new": GOOD}, True, False)
    assert "shown worse" in told


def test_a_log_that_cannot_tell():
    told = answer([LOG, row(target="dark"), row(target="seen")], {"dark": BAD, "seen": NEAR}, True, False)
    assert told.startswith("The log cannot answer for dark: ")
    assert "seen would have earned" in told
    assert told.endswith("The log is barely enough to tell about seen.")
    assert "dark would" not in told


def test_conditions_come_first():
    assert answer([LOG, row()], {"new": GOOD}, True, True).startswith(ESTIMATED)
    assert answer([LOG, row(estimator="dm")], {}, True, False).startswith(MODEL_ALONE)
    assert answer([LOG, row()], {"new": GOOD}, False, False).startswith(NEVER_RANDOM)
