"""Every error that explorax raises on purpose.

    ExploraxError
    ├── InvalidArgument            an argument or setting cannot be used (also a ValueError)
    │   ├── UnknownName            a name is not in the list of known names; the nearest is suggested
    │   ├── InvalidShape           an array does not have the shape that it must have
    │   ├── InvalidFeatures        features are not finite or too large, or arms do not span the space
    │   ├── InvalidReward          the family cannot produce the reward, or the reward is too large
    │   ├── UnknownDecision        the decision to be rewarded does not wait for a reward
    │   │   └── AlreadyRewarded    … because its reward is already known
    │   ├── InvalidSnapshot        a file is not a snapshot, or cannot be understood
    │   ├── InvalidLog             a file is not a log of decisions, or cannot be understood
    │   └── TheoryNotApplicable    a precondition of a theorem does not hold
    ├── NoMaximumLikelihood        the estimate without a ridge does not exist
    ├── NotFinite                  a state holds NaN or infinity, or an update would have left them there
    ├── HistoryFull                a history of fixed capacity has no room for another reward
    └── RunFailed                  a run stopped before its end; the tasks that it had finished are kept
        ├── CannotRead             … because a shared or object store could not be read
        └── CannotWrite            … because a file could not be written (also an OSError)

A message names the argument, says what it must be, shows the value and ends with what to do.  Errors are raised before
anything changes.  Inside a compiled loop nothing can be raised about values, which are unknown there: shapes and
settings are checked everywhere, values only in calls outside of `jit`, `vmap` and `scan`.
"""

import bisect
import difflib
import reprlib
from collections.abc import Iterable

SHOWN, LETTERS = 50, 60  # names that a message lists, and letters that it shows of a name or value
SHORT = reprlib.Repr()
SHORT.maxstring = SHORT.maxother = LETTERS
FEW = 12  # names that are listed before the value that was given
NEAR = 500  # names on each side, in alphabetical order, among which a similar one is looked for


class ExploraxError(Exception):
    """The base class of all errors that explorax raises on purpose.

    Example:
        >>> import explorax
        >>> try:
        ...     explorax.make("glm_tsl", scale=-1.0)
        ... except explorax.errors.ExploraxError as error:
        ...     print(type(error).__name__)
        InvalidArgument
    """


class InvalidArgument(ExploraxError, ValueError):
    """An argument or setting that cannot be used; also a `ValueError`.

    The message names the argument, says what it must be, and shows the value that was given.

    Example:
        >>> import explorax
        >>> explorax.environments.gaussian(n_features=2, noise_std=0)
        Traceback (most recent call last):
        explorax.errors.InvalidArgument: noise_std must be a finite number above 0, got 0.
    """


class UnknownName(InvalidArgument):
    """A name that is not in a list of known names, such as a policy, a family or a setting.

    The message suggests the nearest of the known names, and lists at most 50 of them.

    Args:
        kind: What the name stands for, as the message calls it, for example "policy".
        name: The name that was given.
        known: The names that could have been given, in any order.

    Example:
        >>> import explorax
        >>> explorax.environments.make("logistc", n_features=5)
        Traceback (most recent call last):
        explorax.errors.UnknownName: environment must be one of classification, from_log, gaussian, logistic, poisson, \
got 'logistc'. Did you mean 'logistic'?
    """

    def __init__(self, kind: str, name: object, known: Iterable[str]):
        known, wanted = sorted(known), str(name)[:LETTERS].lower().replace("-", "_")
        self.given = (kind, name, known)
        place = bisect.bisect(known, wanted)
        near = difflib.get_close_matches(wanted, known[max(0, place - NEAR) : place + NEAR], n=1, cutoff=0.5)
        hint = f" Did you mean {shortened(near[0])!r}?" if near else ""
        more = f" and {len(known) - SHOWN} more" if len(known) > SHOWN else ""
        listed = ", ".join(map(shortened, known[:SHOWN])) + more
        got = f"got {repr(shortened(name)) if isinstance(name, str) else shown(name)}."
        if not known:
            message = f"{kind} must be left out, because there are no names to choose from, {got}"
        elif len(known) <= FEW:
            message = f"{kind} must be one of {listed}, {got}{hint}"
        else:  # a long list comes last, so that nobody has to look for the rest
            message = f"{kind} must be one of {len(known)} names, {got}{hint} The names are {listed}."
        super().__init__(message)

    def __reduce__(self) -> tuple[type["UnknownName"], tuple[str, object, list[str]]]:
        return UnknownName, self.given


def shortened(name: str) -> str:
    """Return a name as a message shows it: whole, or its first 60 letters and an ellipsis."""
    return name if len(name) <= LETTERS else f"{name[:LETTERS]}…"


def shown(value: object) -> str:
    """Return a value as a message shows it: an array by its shape and dtype, anything else by a short line."""
    if getattr(value, "ndim", 0):
        return f"an array of shape {getattr(value, 'shape', None)} and dtype {getattr(value, 'dtype', None)}"
    return " ".join(SHORT.repr(value).split())


def check_names(kind: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Raise `UnknownName` for the first name that is not known.

    Args:
        kind: What the names stand for, as the message calls it, for example "setting of glm_tsl".
        names: The names to check.
        known: The names that are allowed.

    Raises:
        UnknownName: If one of the names is not known.
    """
    known = list(known)
    for name in names:
        if name not in known:
            raise UnknownName(kind, name, known)


class InvalidShape(InvalidArgument):
    """An array whose shape is not the one that it must have, for example features with a column too many.

    Example:
        >>> import explorax
        >>> explorax.environments.logistic(theta=[[1.0, 2.0]])
        Traceback (most recent call last):
        explorax.errors.InvalidShape: theta must be a vector with one number for each feature, got shape (1, 2).
    """


class InvalidFeatures(InvalidArgument):
    """Features that are not finite or too large for their dtype, or arms that do not span the feature space.

    Example:
        >>> import explorax
        >>> explorax.environments.logistic(theta=[1.0, float("nan")])
        Traceback (most recent call last):
        explorax.errors.InvalidFeatures: theta must be finite, got NaN or infinity. Clean the data first.
    """


class InvalidReward(InvalidArgument):
    """A reward that the reward family cannot produce, such as 2 for "bernoulli", or that is too large for its dtype."""


class UnknownDecision(InvalidArgument):
    """A reward for a decision that does not wait for one: the agent never made it, or has dropped it."""


class AlreadyRewarded(UnknownDecision):
    """A second reward for a decision whose reward is already known; the first one counts."""


class InvalidSnapshot(InvalidArgument):
    """A file that is not a snapshot of an agent, or that is damaged or cannot be understood."""


class InvalidLog(InvalidArgument):
    """A file that is not a log of decisions, or that is truncated, damaged, or of a newer format."""


class NoMaximumLikelihood(ExploraxError):
    """An estimate without a ridge that does not exist, or cannot be shown to exist: give `ridge` above 0."""


class NotFinite(ExploraxError):
    """An update that would have left NaN or infinity in a state; the state stays as it was."""


class HistoryFull(ExploraxError):
    """A history of fixed capacity without room for another reward.

    Give the policy a larger `capacity`, or `when_full="forget"` to keep the newest rewards.
    """


class TheoryNotApplicable(InvalidArgument):
    """A theorem that says nothing here, because one of its preconditions does not hold; the message names it."""


class RunFailed(ExploraxError):
    """A run that stopped before its end; the tasks that it had finished are kept, and running it again goes on."""


class CannotRead(RunFailed):
    """A shared or object store that could not be read; what is there is unknown, and still there."""


class CannotWrite(RunFailed, OSError):
    """A file that could not be written; what was there before is still there.  Also an `OSError`."""
