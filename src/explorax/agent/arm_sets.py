"""Infinite sets of arms: balls, ellipsoids, boxes and polytopes.

GLM-TSL and GLM-FPL draw a parameter θ̃ and pull the arm of largest xᵀθ̃: the set of arms enters through this one
maximization only (Section 3.3 of the paper).  So any set will do that can tell where a linear function is largest:

    set         its points x                   its point of largest xᵀθ
    ball        ‖x − c‖ ≤ r                    c + r θ/‖θ‖
    ellipsoid   (x − c)ᵀ S⁻¹ (x − c) ≤ 1       c + Sθ/√(θᵀSθ)
    box         low ≤ x ≤ high                 in each coordinate the bound that the sign of θ points to
    polytope    Ax ≤ b                         a vertex, found by a linear program (`polytopes.py`)

If θ = 0, all arms are equally good: ball, ellipsoid and box answer with their center, a polytope with any of its
points.  Corners of a box and of a polytope have propensities; a single point of a ball or an ellipsoid has none.

Only the direction of θ matters; its length may be whatever float64 can hold.  Sets compute with NumPy in float64,
because JAX rounds to float32 by default, and two equal vertices must have equal bits.
"""

import inspect
import math
import reprlib
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from explorax.agent.polytopes import LARGEST, TOLERANCE, Program, frame, framed, normalized, opposites, scaled
from explorax.checks import check_positive
from explorax.errors import InvalidArgument, InvalidFeatures, InvalidShape, check_names


class ArmSet(NamedTuple):
    """A compact set of arms with d features, for agents that choose among infinitely many arms.

    Build one with `ball`, `ellipsoid`, `box` or `polytope`, and give it to an agent: `Agent(policy, arms=arm_set)`.

    Attributes:
        kind: The kind of set: "ball", "ellipsoid", "box" or "polytope".
        n_features: The number d of features of an arm.
        parameters: The arguments that the set was built with, as read-only float64 arrays;
            `make(kind, parameters)` builds the same set again.
        countable: Whether almost all directions lead to one of finitely many arms, so that each has a probability.
        maximize: The function from (M, d) directions θ to (M, d) arms of largest xᵀθ, row by row.
        contains: The function that tells whether an arm (d,) is in the set, up to rounding.

    Example:
        >>> from explorax import arm_sets
        >>> square = arm_sets.box(low=[-1.0, -1.0], high=[1.0, 1.0])
        >>> square.maximize([[0.2, -3.0]])
        array([[ 1., -1.]])
        >>> square.contains([0.5, 2.0])
        False
    """

    kind: str
    n_features: int
    parameters: dict[str, np.ndarray]
    countable: bool
    maximize: Callable[[ArrayLike], np.ndarray]
    contains: Callable[[ArrayLike], bool]


def make(kind: str, parameters: Mapping[str, ArrayLike]) -> ArmSet:
    """Build a set of arms from the name of its kind, as snapshots and settings files do.

    Args:
        kind: The kind of set: "ball", "ellipsoid", "box" or "polytope".
        parameters: The arguments of the function of that name, all of them.

    Returns:
        The set of arms.

    Raises:
        UnknownName: If there is no such kind, or it has no such parameter.
        InvalidArgument: If a parameter is missing, or cannot be used.

    Example:
        >>> from explorax import arm_sets
        >>> arm_sets.make("ball", {"center": [0.0, 0.0], "radius": 2.0}).n_features
        2
    """
    makers: dict[str, Callable[..., ArmSet]] = {"ball": ball, "ellipsoid": ellipsoid, "box": box, "polytope": polytope}
    check_names("kind of arm set", [kind], makers)
    needed = list(inspect.signature(makers[kind]).parameters)
    check_names(f"parameter of a set of kind {kind!r}", parameters, needed)
    missing = [name for name in needed if name not in parameters]
    if missing:
        raise InvalidArgument(
            f"parameters must have {', '.join(needed)} for a set of kind {kind!r}, got {', '.join(parameters)}. "
            f"Add {', '.join(missing)}."
        )
    return makers[kind](**parameters)


def ball(center: ArrayLike, radius: float) -> ArmSet:
    """Return the ball of all x with ‖x − center‖ ≤ radius.

    Args:
        center: (d,) The middle of the ball.
        radius: The radius, a number above 0.

    Returns:
        The set of arms.

    Raises:
        InvalidArgument: If `radius` is not above 0, or the ball reaches too far for float64.
        InvalidFeatures: If `center` has entries that are not finite numbers.
        InvalidShape: If `center` is not a vector.

    Example:
        >>> from explorax import arm_sets
        >>> arm_sets.ball(center=[1.0, 0.0], radius=2.0).maximize([[0.0, 5.0]])
        array([[1., 2.]])
    """
    middle = numbers("center", center, (None,))
    radius = radius.item() if hasattr(radius, "item") and np.ndim(radius) == 0 else radius
    check_positive("radius", radius)
    parameters = {"center": middle, "radius": numbers("radius", radius, ())}
    return ellipsoidal("ball", parameters, middle, np.full(len(middle), float(radius)), np.eye(len(middle)))


def ellipsoid(center: ArrayLike, shape: ArrayLike) -> ArmSet:
    """Return the ellipsoid of all x with (x − center)ᵀ S⁻¹ (x − center) ≤ 1.

    Args:
        center: (d,) The middle of the ellipsoid.
        shape: (d, d) The matrix S, symmetric and positive definite.  Its eigenvectors are the directions of the
            half-axes, and the roots of its eigenvalues their lengths.

    Returns:
        The set of arms.

    Raises:
        InvalidArgument: If `shape` is not symmetric or not positive definite, or the set reaches too far for float64.
        InvalidFeatures: If `center` or `shape` has entries that are not finite numbers.
        InvalidShape: If `center` is not a vector, or `shape` is not a square matrix of its length.

    Example:
        >>> from explorax import arm_sets
        >>> arm_sets.ellipsoid(center=[0.0, 0.0], shape=[[4.0, 0.0], [0.0, 1.0]]).maximize([[1.0, 0.0]])
        array([[2., 0.]])
    """
    middle = numbers("center", center, (None,))
    matrix = numbers("shape", shape, (len(middle), len(middle)))
    variances = np.diagonal(matrix)
    if np.any(variances <= 0):
        worst = int(np.argmin(variances))
        raise InvalidArgument(
            f"shape must be positive definite, got shape[{worst}, {worst}] = {variances[worst]}. "
            "Give a matrix with a diagonal above 0."
        )
    widths = np.sqrt(variances)
    with np.errstate(over="ignore", invalid="ignore"):  # in units of the widths: no choice of units is then singular
        correlations = matrix / widths[:, None] / widths
        skew = np.abs(correlations - correlations.T)
    if np.any(skew > TOLERANCE):
        i, j = (int(place) for place in np.unravel_index(np.argmax(skew), skew.shape))
        raise InvalidArgument(
            f"shape must be symmetric, got shape[{i}, {j}] = {matrix[i, j]} and shape[{j}, {i}] = {matrix[j, i]}. "
            "Give (S + Sᵀ) / 2."
        )
    eigenvalues = np.linalg.eigvalsh(correlations) if np.all(np.isfinite(correlations)) else np.array([-np.inf, np.inf])
    if not eigenvalues[0] > len(middle) * np.finfo(float).eps * eigenvalues[-1]:
        raise InvalidArgument(
            "shape must be positive definite, got a smallest eigenvalue of "
            f"{eigenvalues[0]:.3g} (with every diagonal entry scaled to 1). Use a box or a polytope for a flat set."
        )
    parameters = {"center": middle, "shape": matrix}
    return ellipsoidal("ellipsoid", parameters, middle, widths, np.linalg.cholesky(correlations))


def ellipsoidal(
    kind: str, parameters: dict[str, np.ndarray], center: np.ndarray, widths: np.ndarray, root: np.ndarray
) -> ArmSet:
    """Return the ellipsoid with the matrix S = LLᵀ, where L is `root` with its rows multiplied by `widths`.

    With u = Lᵀθ the maximizer is c + Lu/‖u‖, and x is in the set if ‖L⁻¹(x − c)‖ ≤ 1.

    Args:
        kind: The kind of set that was asked for: "ball" or "ellipsoid".
        parameters: The arguments that the set was built with.
        center: (d,) The middle c.
        widths: (d,) How far the set reaches from its middle in each coordinate.
        root: (d, d) The Cholesky factor of S with its diagonal scaled to 1.

    Returns:
        The set of arms.

    Raises:
        InvalidArgument: If the set reaches too far for float64.
    """
    if np.any(np.abs(center) / 2 + widths / 2 > LARGEST):
        raise InvalidArgument(f"The {kind} reaches too far for float64. Scale it down.")

    def maximize(directions: np.ndarray) -> np.ndarray:
        turned = scaled(scaled(scaled(directions) * widths) @ root)
        norms = np.linalg.norm(turned, axis=1, keepdims=True)
        units = np.divide(turned, norms, out=np.zeros_like(turned), where=norms > 0)
        return center + widths * (units @ root.T)

    inverse = np.linalg.inv(root)

    def contains(x: np.ndarray) -> bool:
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is far outside
            rounding = TOLERANCE * np.abs(inverse) @ ((np.abs(center) + widths) / widths)
            return math.hypot(*inverse @ ((x - center) / widths)) <= 1 + math.hypot(*rounding)

    return checked(kind, parameters, False, maximize, contains)


def box(low: ArrayLike, high: ArrayLike) -> ArmSet:
    """Return the box of all x with low ≤ x ≤ high in every coordinate.

    Args:
        low: (d,) The least value of each feature.
        high: (d,) The largest value of each feature, which may equal the least.

    Returns:
        The set of arms.

    Raises:
        InvalidArgument: If `low` is above `high` in some coordinate.
        InvalidFeatures: If `low` or `high` has entries that are not finite numbers.
        InvalidShape: If `low` and `high` are not vectors of equal length.

    Example:
        >>> from explorax import arm_sets
        >>> arm_sets.box(low=[0.0, 0.0], high=[1.0, 3.0]).maximize([[2.0, 1.0], [-1.0, 1.0]])
        array([[1., 3.],
               [0., 3.]])
    """
    least = numbers("low", low, (None,))
    most = numbers("high", high, least.shape)
    if np.any(least > most):
        place = int(np.argmax(least > most))
        raise InvalidArgument(
            f"low must be at most high, got low[{place}] = {least[place]} and high[{place}] = {most[place]}. "
            "Give bounds that leave arms in the box."
        )
    middle = least / 2 + most / 2
    rounding = TOLERANCE * np.maximum(np.abs(least), np.abs(most))

    def maximize(directions: np.ndarray) -> np.ndarray:
        return np.where(directions > 0, most, np.where(directions < 0, least, middle))

    def contains(x: np.ndarray) -> bool:
        return bool(np.all((least - rounding <= x) & (x <= most + rounding)))

    return checked("box", {"low": least, "high": most}, True, maximize, contains)


def polytope(A: ArrayLike, b: ArrayLike) -> ArmSet:
    """Return the polytope of all x with Ax ≤ b, which must not be empty and must be bounded.

    Args:
        A: (m, d) The normals of the constraints, one in each row.
        b: (m,) The bounds of the constraints.

    Returns:
        The set of arms.

    Raises:
        InvalidArgument: If the polytope is empty or unbounded, or the sizes of its features are too different.
        InvalidFeatures: If `A` or `b` has entries that are not finite numbers.
        InvalidShape: If `A` is not a matrix, or `b` is not a vector with one bound for each row of `A`.
        ImportError: If SciPy is not installed.

    Example:
        All x ≥ 0 with x₁ + x₂ ≤ 1:

        >>> from explorax import arm_sets
        >>> triangle = arm_sets.polytope(A=[[-1.0, 0.0], [0.0, -1.0], [1.0, 1.0]], b=[0.0, 0.0, 1.0])
        >>> (triangle.maximize([[2.0, 1.0]]) + 0.0).round(6)
        array([[1., 0.]])
    """
    given = numbers("A", A, (None, None))
    bounds = numbers("b", b, (len(given),))
    rows, limits = normalized(given, bounds)
    middle, unit = frame(rows, limits)
    rounding = TOLERANCE * np.abs(rows) @ (np.abs(middle) + unit)
    program = Program(*framed(rows, limits, middle, unit), opposites(rows, limits))

    def maximize(directions: np.ndarray) -> np.ndarray:
        return middle + unit * program.maximize(scaled(scaled(directions) * unit))

    def contains(x: np.ndarray) -> bool:
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is far outside
            return bool(np.all(rows @ x <= limits + rounding))

    return checked("polytope", {"A": given, "b": bounds}, True, maximize, contains)


def numbers(name: str, values: ArrayLike, shape: tuple[int | None, ...]) -> np.ndarray:
    """Return a read-only float64 copy of finite numbers that have this shape, where None is any length above 0."""
    try:
        array = np.asarray(values)
        if array.dtype.kind in "cmMSU":  # complex numbers, times and text, which NumPy would convert
            raise TypeError
        array = np.array(array, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidFeatures(
            f"{name} must be an array of numbers, got {reprlib.repr(values)}. Give a list or an array of floats."
        ) from None
    fits = array.ndim == len(shape) and all(
        n == m or (m is None and n > 0) for n, m in zip(array.shape, shape, strict=True)
    )
    if not fits:
        needed = ", ".join("at least 1" if length is None else str(length) for length in shape)
        raise InvalidShape(
            f"{name} must have shape ({needed}{',' * (len(shape) == 1)}), got {array.shape}. "
            "Give one number for each feature, and one row for each direction or constraint."
        )
    if not np.all(np.isfinite(array)):
        raise InvalidFeatures(f"{name} must be finite, got NaN or infinity. Give finite numbers.")
    array.setflags(write=False)
    return array


def checked(
    kind: str,
    parameters: dict[str, np.ndarray],
    countable: bool,
    maximize: Callable[[np.ndarray], np.ndarray],
    contains: Callable[[np.ndarray], bool],
) -> ArmSet:
    """Return the set of arms whose functions check their arguments before they use them."""
    size = next(iter(parameters.values())).shape[-1]
    return ArmSet(
        kind,
        size,
        parameters,
        countable,
        lambda directions: maximize(numbers("directions", directions, (None, size))),
        lambda x: contains(numbers("x", x, (size,))),
    )
