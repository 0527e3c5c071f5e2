"""Every error that explorax raises on purpose.

    ExploraxError
    ├── InvalidArgument            an argument or setting cannot be used (also a ValueError)
    │   ├── UnknownName            no policy, family, option or setting of that name; the nearest is suggested
    │   ├── InvalidShape           an array does not have the shape it must have
    │   ├── InvalidFeatures        features that are not finite, too large, or arms that do not span the space
    │   ├── InvalidReward          a reward that the family cannot produce
    │   ├── UnknownDecision        a reward for a decision that does not wait for one
    │   │   └── AlreadyRewarded    … because it has had its reward
    │   ├── InvalidSnapshot        a file that is no snapshot, or one that cannot be understood
    │   └── TheoryNotApplicable    a theorem's precondition does not hold
    ├── NoMaximumLikelihood        without a ridge the estimate does not exist
    ├── NotFinite                  a state holds NaN or infinity, or an update would have left them there
    ├── HistoryFull                a fixed-capacity history has no room for another reward
    └── RunFailed                  a run stopped before its end; what it had finished is kept
        └── CannotWrite            … because a file could not be written (also an OSError)

A message names the argument, shows the value and says what to do.  Errors are raised before anything changes.
Inside a compiled loop values are unknown and nothing can be raised: shapes and settings are checked there too,
values only in plain calls.
"""

import bisect
import difflib
import reprlib
from collections.abc import Iterable

SHOWN, LETTERS = 50, 60  # names that a message lists, and letters that it shows of a name
NEAR = 500  # names on each side, in alphabetical order, among which a similar one is looked for


class ExploraxError(Exception):
    """Base of all errors raised by explorax."""


class InvalidArgument(ExploraxError, ValueError):
    """An argument or setting cannot be used."""


class UnknownName(InvalidArgument):
    """A name that is not in a list of known names; carries the nearest ones."""

    def __init__(self, kind: str, name: object, known: Iterable[str]):
        known, wanted = sorted(known), str(name)[:LETTERS].lower().replace("-", "_")
        place = bisect.bisect(known, wanted)
        near = difflib.get_close_matches(wanted, known[max(0, place - NEAR) : place + NEAR], n=1, cutoff=0.5)
        hint = f"did you mean {shortened(near[0])!r}? " if near else ""
        more = f" and {len(known) - SHOWN} more" if len(known) > SHOWN else ""
        listed = ", ".join(map(shortened, known[:SHOWN]))
        given = repr(shortened(name)) if isinstance(name, str) else reprlib.repr(name)
        super().__init__(f"unknown {kind} {given}: {hint}known are {listed}{more}")


def shortened(name: str) -> str:
    """A name as a message shows it."""
    return name if len(name) <= LETTERS else f"{name[:LETTERS]}…"


def check_names(kind: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Raise for the first name that is not known."""
    known = list(known)
    for name in names:
        if name not in known:
            raise UnknownName(kind, name, known)


class InvalidShape(InvalidArgument):
    """An array does not have the shape it must have."""


class InvalidFeatures(InvalidArgument):
    """Features are not finite or too large for their dtype, or the arms do not span the feature space."""


class InvalidReward(InvalidArgument):
    """A reward that the family cannot produce."""


class UnknownDecision(InvalidArgument):
    """A reward for a decision that does not wait for one."""


class AlreadyRewarded(UnknownDecision):
    """A second reward for the same decision."""


class InvalidSnapshot(InvalidArgument):
    """A file that is no snapshot of an agent, or one that cannot be understood."""


class NoMaximumLikelihood(ExploraxError):
    """Without a ridge the estimate does not exist, or cannot be shown to exist."""


class NotFinite(ExploraxError):
    """An update would have left NaN or infinity in the state, which stays as it was."""


class HistoryFull(ExploraxError):
    """A fixed-capacity history has no room for another reward."""


class TheoryNotApplicable(InvalidArgument):
    """A theorem's precondition does not hold."""


class RunFailed(ExploraxError):
    """A run stopped before its end; the tasks it had finished are kept."""


class CannotWrite(RunFailed, OSError):
    """A file could not be written; what was there before is still there."""
