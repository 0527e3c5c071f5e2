"""Models of rewards: what each arm would have paid in each row of a log, learned from other rows of the log.

An estimate may use a prediction for row t only if the reward of row t had no part in it.  There are two ways:

    past    Row t is predicted by a model of rows before it.  Models are fitted to the first 64, 128, 256, … rows, and
            each predicts the rows up to the next fit, so that a log of n rows takes about log₂(n / 64) fits, which
            together have less than 2 n rows.  A row before the first fit is predicted by the mean of the rows before
            it.  This is right for every log, also if the policy that made it was learning.
    cross   The rows are dealt into five parts, and each part is predicted by a model of the four others.  This uses
            more of the log, and is right if its rows are independent: if the policy that made it was not learning.

A fit uses the latest 131 072 of its rows.  Predictions are cut to the range of rewards if it is known, and otherwise to
the range of the rewards that the model was fitted to.

A GLM has a constant, which the ridge hardly penalizes: where rewards are rare, a model of few rows predicts that they
are, and not that they are as likely as not.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from explorax.errors import InvalidArgument, InvalidReward, InvalidShape, NotFinite, UnknownName, shown
from explorax.extras import optional
from explorax.glm import families
from explorax.glm.fit import fit
from explorax.glm.history import Grouped
from explorax.log.data import LoggedData
from explorax.log.features import ContextFeatures, Features, FixedFeatures

FITTED = ("past", "cross")
FIRST = 64  # rows of the first fit to the past
FOLDS = 5
MOST = 2**17  # rows of a fit
SIZES = (512, 4096, 32768, MOST)  # to which the rows of a GLM fit are padded, so that few programs are compiled
LEAST_SIZE = 1024  # to which scores are padded
RIDGE, TOLERANCE = 1.0, 1e-4
CONSTANT = 10.0  # the constant feature of a GLM: the ridge penalizes its effect 100 times less than others

Range = tuple[float, float]
Predictor = Callable[[Features, np.ndarray], np.ndarray]  # predictions (m, K) for some rows of a log


class Regression(Protocol):
    """The fit of a reward model to some rows of a log."""

    def __call__(self, log: LoggedData, features: Features, rows: np.ndarray) -> Predictor:
        """Return what predicts all arms in any rows, fitted to the rewards of the given ones."""


class Predictions(NamedTuple):
    """Models of rewards, and which of them predicts each row of a log.

    Attributes:
        about: What the predictions are, as a part of a sentence.
        at: The function that returns the predictions (m, K) of all arms in some rows.
    """

    about: str
    at: Callable[[np.ndarray], np.ndarray]


def predictions(
    log: LoggedData, model: Any = "glm", fitted: str = "past", reward_range: Range | None = None
) -> Predictions | None:
    """Return what a reward model predicts for all arms in each row of a log, from other rows of the log.

    Args:
        log: The log.
        model: "glm" for a GLM of the family that suits the rewards, or the name of a reward family; a scikit-learn
            regressor or classifier, which is cloned; an array (n, K) of predictions; None for no model.
            Default: "glm".
        fitted: "past" for models of the rows before each row, or "cross" for models of other parts of the log.
            Default: "past".
        reward_range: The least and the largest reward that can ever be.  Default: unknown.

    Returns:
        The predictions, or None without a model.

    Raises:
        UnknownName: If there is no model or way to fit it of that name.
        InvalidShape: If an array of predictions does not have a row for each decision and a column for each arm.
        InvalidArgument: If the model is something else, or predictions are not finite.
        InvalidReward: If the family of the model cannot produce a reward of the log.
    """
    if fitted not in FITTED:
        raise UnknownName("fitted", fitted, FITTED)
    if model is None:
        return None
    if not (isinstance(model, str) or hasattr(model, "fit")):
        return _given(log, model)
    features = described(log)
    parts = list((past if fitted == "past" else cross)(len(log)))
    which = np.zeros(len(log), int)
    for number, (_, predicted) in enumerate(parts):
        which[predicted] = number
    regression, name = _regression(log, model)
    models: dict[int, Predictor] = {}

    def predictor(number: int) -> Predictor:
        """Return one of the models, fitted when it is first needed."""
        if number not in models:
            models[number] = _fitted(log, features, regression, parts[number][0], reward_range)
        return models[number]

    def at(rows: np.ndarray) -> np.ndarray:
        """Return the predictions of all arms in some rows."""
        found = np.empty((len(rows), log.n_arms))
        for number in np.unique(which[rows]):
            here = which[rows] == number
            found[here] = predictor(int(number))(features, rows[here])
        return found

    on = "the rows before each row" if fitted == "past" else f"the other parts of {FOLDS}"
    return Predictions(f"{name}, fitted to {on}", at)


def past(count: int) -> Iterator[tuple[np.ndarray, Any]]:
    """Yield the rows of each fit to the past, and the slice of later rows that it predicts.

    Args:
        count: The number n of rows in the log.

    Yields:
        The places of the latest rows before the slice, none for the first, and the slice.
    """
    start, stop = 0, min(FIRST, count)
    while start < count:
        yield np.arange(max(start - MOST, 0), start), slice(start, stop)
        start, stop = stop, min(2 * stop, count)


def cross(count: int) -> Iterator[tuple[np.ndarray, Any]]:
    """Yield the rows of each cross-fit, and the slice of other rows that it predicts.

    Args:
        count: The number n of rows in the log.

    Yields:
        The places of the rows that are in other parts, and the slice of a part.
    """
    rows = np.arange(count)
    for fold in range(min(FOLDS, count)):
        yield rows[rows % FOLDS != fold][-MOST:], slice(fold, None, FOLDS)


def described(log: LoggedData) -> Features:
    """Return what is known of the arms in each row: their features, or else their names, with the context if any."""
    if log.features is not None:
        return log.features
    names = np.eye(log.n_arms)
    return FixedFeatures(names) if log.contexts is None else ContextFeatures(log.contexts, names)


def fixed_arms(features: Features) -> np.ndarray | None:
    """Return the (K, d) features of the arms if they are the same in every row of a log, else None."""
    return np.asarray(features.matrix, float) if isinstance(features, FixedFeatures) else None


def suitable_family(rewards: np.ndarray) -> str:
    """Return the family of rewards by their values: "bernoulli" if all are 0 or 1, "gaussian" otherwise."""
    return "bernoulli" if np.isin(rewards, (0, 1)).all() else "gaussian"


def cloned(model: Any, purpose: str) -> Any:
    """Return an unfitted copy of a scikit-learn model, whose random numbers are the same in every call."""
    copy: Any = optional("sklearn.base", purpose, "agent").clone(model)
    seeds = {name: 0 for name, value in copy.get_params().items() if name.endswith("random_state") and value is None}
    return copy.set_params(**seeds)


def _fitted(
    log: LoggedData, features: Features, regression: Regression, rows: np.ndarray, reward_range: Range | None
) -> Predictor:
    """Return a model of some rows whose predictions are cut to the range of rewards; means so far without rows."""
    if not len(rows):
        return lambda features, rows: np.tile(means_so_far(log, rows, reward_range)[:, None], log.n_arms)
    seen = log.rewards[rows]
    low, high = reward_range or (seen.min(), seen.max())
    predict = regression(log, features, rows)

    def cut(features: Features, rows: np.ndarray) -> np.ndarray:
        """Return predictions within the range."""
        found = np.asarray(predict(features, rows), float)
        if np.isnan(found).any():
            raise NotFinite("The reward model predicts NaN. Give another one, or None.")
        return np.clip(found, low, high)

    return cut


def means_so_far(log: LoggedData, rows: np.ndarray, reward_range: Range | None) -> np.ndarray:
    """Return for each of the first rows the mean of the rewards before it, with one in the middle of their range."""
    middle = 0.0 if reward_range is None else sum(reward_range) / 2
    sums = middle + np.concatenate([[0.0], np.cumsum(log.rewards[:FIRST])])
    return sums[rows] / (1 + rows)


def _given(log: LoggedData, model: Any) -> Predictions:
    """Return predictions that are given as an array."""
    try:
        table = np.asarray(model, float)
    except (TypeError, ValueError):
        raise InvalidArgument(
            f"reward_model must be 'glm', a reward family, a scikit-learn model, an array or None, got {shown(model)}. "
            "Give, for example, sklearn.ensemble.HistGradientBoostingRegressor()."
        ) from None
    if table.shape != (len(log), log.n_arms):
        raise InvalidShape(
            f"reward_model must have shape {(len(log), log.n_arms)} if it is an array, got {table.shape}. Give the "
            "prediction for each arm in each row."
        )
    if not np.isfinite(table).all():
        raise InvalidArgument("reward_model must be finite, got NaN or infinity. Predict something for all arms.")
    return Predictions("given as an array", lambda rows: table[rows])


def _regression(log: LoggedData, model: Any) -> tuple[Regression, str]:
    """Return how a model is fitted, and its name."""
    if not isinstance(model, str):
        return Sklearn(model), type(model).__name__
    known = ("glm", *families.FAMILIES)
    if model not in known:
        raise UnknownName("reward_model", model, known)
    family = families.get(suitable_family(log.rewards) if model == "glm" else model)
    if not np.all(family.valid(log.rewards)):
        row = int(np.argmin(family.valid(log.rewards)))
        raise InvalidReward(
            f"rewards must be {family.rewards} for reward_model={model!r}, got {log.rewards[row]:g} in row {row}. "
            "Give reward_model='gaussian'."
        )
    return GLM(family), f"a {family.name} GLM"


class GLM(NamedTuple):
    """The fit of a GLM to the features of the arms and a constant, with a ridge."""

    family: families.Family

    def __call__(self, log: LoggedData, features: Features, rows: np.ndarray) -> Predictor:
        """Return what predicts all arms in any rows, fitted to the rewards of the given ones."""
        with jax.enable_x64(True):
            found = fit(self.family, _history(log, features, rows), ridge=RIDGE, tolerance=TOLERANCE)
            theta = np.asarray(found.theta)
        if not np.isfinite(theta).all():
            raise NotFinite("The reward model has no finite fit. Scale features and rewards to sizes of about 1.")

        def predict(features: Features, rows: np.ndarray) -> np.ndarray:
            """Return the mean of each arm in some rows."""
            return _alike(features, rows, lambda table: means(self.family, table @ theta[1:] + CONSTANT * theta[0]))

        return predict


def means(family: families.Family, scores: np.ndarray) -> np.ndarray:
    """Return the means of scores of any shape, computed in a vector of one of a few lengths, each of which compiles."""
    room = 1 << max(scores.size - 1, LEAST_SIZE - 1).bit_length()
    with jax.enable_x64(True):
        padded = jnp.asarray(np.pad(scores.reshape(-1), (0, room - scores.size)))
        return np.asarray(family.mean(padded))[: scores.size].reshape(scores.shape)


class Sklearn(NamedTuple):
    """The fit of a scikit-learn regressor or classifier to the features of the arms."""

    model: Any

    def __call__(self, log: LoggedData, features: Features, rows: np.ndarray) -> Predictor:
        """Return what predicts all arms in any rows, fitted to the rewards of the given ones."""
        model = cloned(self.model, "a reward model of scikit-learn")
        model.fit(features.chosen(rows, log.arms[rows]), log.rewards[rows])

        def mean(table: np.ndarray) -> np.ndarray:
            """Return the mean of each of some rows of features."""
            flat = table.reshape(-1, table.shape[-1])
            found = (
                model.predict_proba(flat) @ model.classes_ if hasattr(model, "predict_proba") else model.predict(flat)
            )
            return np.asarray(found).reshape(table.shape[:-1])

        return lambda features, rows: _alike(features, rows, mean)


def _alike(features: Features, rows: np.ndarray, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return a function (…, K, d) → (…, K) of the features in some rows, computed once if they are always the same."""
    matrix = fixed_arms(features)
    if matrix is not None:
        return np.broadcast_to(function(matrix), (len(rows), len(matrix)))
    return function(features.table(rows))


def _history(log: LoggedData, features: Features, rows: np.ndarray) -> Grouped:
    """Return the rewards of some rows, grouped by arm if features are fixed, else padded to one of a few sizes."""
    arms, rewards, table = log.arms[rows], log.rewards[rows], fixed_arms(features)
    if table is not None:
        counts, sums = np.bincount(arms, minlength=len(table)), np.bincount(arms, rewards, len(table))
    else:
        room = next(size for size in SIZES if size >= len(rows)) - len(rows)
        table = np.pad(features.chosen(rows, arms).astype(float), ((0, room), (0, 0)))
        counts, sums = np.pad(np.ones(len(rows)), (0, room)), np.pad(rewards.astype(float), (0, room))
    known = np.pad(table, ((0, 0), (1, 0)), constant_values=CONSTANT)
    return Grouped(*(jnp.asarray(each, float) for each in (known, counts, sums)))
