"""Infinite sets of arms.

GLM-TSL and GLM-FPL draw a parameter θ̃ and pull the arm of largest xᵀθ̃: the set of arms enters through this one
maximization only (Section 3.3 of the paper).  So any set will do that can tell where a linear function is largest:

    ball        ‖x − c‖ ≤ r                    c + r θ/‖θ‖
    ellipsoid   (x − c)ᵀ S⁻¹ (x − c) ≤ 1       c + Sθ/√(θᵀSθ)
    box         low ≤ x ≤ high                 in each coordinate the bound that the sign of θ points to
    polytope    Ax ≤ b                         a vertex, found by a linear program

If θ = 0, all arms are equally good: ball, ellipsoid and box answer with their center, a polytope with some point.
Corners of a box and of a polytope have propensities; no single point of a ball or an ellipsoid has one.

Only the direction of θ matters; its length may be whatever float64 can hold.  All of this is NumPy in float64: JAX
rounds to float32 unless told otherwise, and two equal vertices must have equal bits.
"""

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from explorax.checks import check_positive
from explorax.errors import InvalidArgument, InvalidFeatures, InvalidShape, check_names
from explorax.extras import optional

TOLERANCE = 1e-8  # what passes for rounding, relative to the size of the numbers
LARGEST = np.finfo(np.float64).max / 4  # so that a few of them can be added up
CONSTANT, VARYING = 1e-12, 1e-9  # what a coordinate of a polytope may vary by and be constant, or must if it is not
FRAMES = 10  # looks at a polytope to find its place and size; one is usual


class ArmSet(NamedTuple):
    """A compact set of arms with d features.

    Attributes:
        kind: "ball", "ellipsoid", "box" or "polytope".
        n_features: The number d of features.
        parameters: What it was made of; `make(kind, parameters)` is the same set again.
        countable: Whether almost all directions lead to one of finitely many arms, so that each has a probability.
        maximize: From (M, d) directions θ to (M, d) arms of largest xᵀθ, row by row.
        contains: Whether an arm (d,) is in the set, up to rounding.
    """

    kind: str
    n_features: int
    parameters: dict[str, np.ndarray]
    countable: bool
    maximize: Callable[[ArrayLike], np.ndarray]
    contains: Callable[[ArrayLike], bool]


def make(kind: str, parameters: Mapping[str, ArrayLike]) -> ArmSet:
    """Return the set of arms of a kind, by its name.

    Args:
        kind: "ball", "ellipsoid", "box" or "polytope".
        parameters: The arguments of the function of that name.

    Raises:
        InvalidArgument: If there is no such kind, or it cannot have these parameters.
    """
    makers: dict[str, Callable[..., ArmSet]] = {"ball": ball, "ellipsoid": ellipsoid, "box": box, "polytope": polytope}
    check_names("kind of arm set", [kind], makers)
    needed = list(inspect.signature(makers[kind]).parameters)
    check_names(f"parameter of a set of kind {kind!r}", parameters, needed)
    missing = [name for name in needed if name not in parameters]
    if missing:
        raise InvalidArgument(f"a set of kind {kind!r} needs {', '.join(needed)}: give {', '.join(missing)} too")
    return makers[kind](**parameters)


def ball(center: ArrayLike, radius: float) -> ArmSet:
    """Return the set of all x with ‖x − center‖ ≤ radius.

    Args:
        center: (d,) The middle of the ball.
        radius: A number above 0.

    Raises:
        InvalidArgument: If center or radius is no such thing, or the ball reaches too far for float64.
    """
    middle = numbers("center", center, (None,))
    radius = radius.item() if hasattr(radius, "item") and np.ndim(radius) == 0 else radius
    check_positive("radius", radius)
    parameters = {"center": middle, "radius": numbers("radius", radius, ())}
    return ellipsoidal("ball", parameters, middle, np.full(len(middle), float(radius)), np.eye(len(middle)))


def ellipsoid(center: ArrayLike, shape: ArrayLike) -> ArmSet:
    """Return the set of all x with (x − center)ᵀ S⁻¹ (x − center) ≤ 1.

    Args:
        center: (d,) The middle of the ellipsoid.
        shape: (d, d) S, positive definite.  The half-axes are its eigenvectors, as long as the roots of its
            eigenvalues.

    Raises:
        InvalidArgument: If shape is not symmetric or not positive definite, or the set reaches too far for float64.
    """
    middle = numbers("center", center, (None,))
    matrix = numbers("shape", shape, (len(middle), len(middle)))
    variances = np.diagonal(matrix)
    if np.any(variances <= 0):
        worst = int(np.argmin(variances))
        raise InvalidArgument(f"shape is not positive definite: shape[{worst}, {worst}] is {variances[worst]}")
    widths = np.sqrt(variances)
    with np.errstate(over="ignore", invalid="ignore"):  # in units of the widths: no choice of units is then singular
        correlations = matrix / widths[:, None] / widths
        skew = np.abs(correlations - correlations.T)
    if np.any(skew > TOLERANCE):
        i, j = (int(place) for place in np.unravel_index(np.argmax(skew), skew.shape))
        raise InvalidArgument(
            f"shape is not symmetric: shape[{i}, {j}] is {matrix[i, j]} and shape[{j}, {i}] is {matrix[j, i]}"
        )
    eigenvalues = np.linalg.eigvalsh(correlations) if np.all(np.isfinite(correlations)) else np.array([-np.inf, np.inf])
    if not eigenvalues[0] > len(middle) * np.finfo(float).eps * eigenvalues[-1]:
        raise InvalidArgument(
            "shape is not positive definite: with every diagonal entry scaled to 1 its smallest eigenvalue is "
            f"{eigenvalues[0]:.3g}; a set that is flat in some direction can be a box or a polytope"
        )
    parameters = {"center": middle, "shape": matrix}
    return ellipsoidal("ellipsoid", parameters, middle, widths, np.linalg.cholesky(correlations))


def ellipsoidal(
    kind: str, parameters: dict[str, np.ndarray], center: np.ndarray, widths: np.ndarray, root: np.ndarray
) -> ArmSet:
    """Return the ellipsoid of shape S = LLᵀ, where L is `root` with its rows times `widths`, the extents of the set.

    With u = Lᵀθ the maximizer is c + Lu/‖u‖, and x is in the set if ‖L⁻¹(x − c)‖ ≤ 1.
    """
    if np.any(np.abs(center) / 2 + widths / 2 > LARGEST):
        raise InvalidArgument(f"the {kind} reaches too far for float64: scale it down")

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
    """Return the set of all x with low ≤ x ≤ high in every coordinate.

    Args:
        low: (d,) The least value of each feature.
        high: (d,) The largest; the same as low for a feature that all arms share.

    Raises:
        InvalidArgument: If low is above high somewhere, or they are not finite numbers in equal shapes.
    """
    least = numbers("low", low, (None,))
    most = numbers("high", high, least.shape)
    if np.any(least > most):
        place = int(np.argmax(least > most))
        raise InvalidArgument(
            f"low[{place}]={least[place]} is above high[{place}]={most[place]}: no arm is in this box"
        )
    middle = least / 2 + most / 2
    rounding = TOLERANCE * np.maximum(np.abs(least), np.abs(most))

    def maximize(directions: np.ndarray) -> np.ndarray:
        return np.where(directions > 0, most, np.where(directions < 0, least, middle))

    def contains(x: np.ndarray) -> bool:
        return bool(np.all((least - rounding <= x) & (x <= most + rounding)))

    return checked("box", {"low": least, "high": most}, True, maximize, contains)


def polytope(A: ArrayLike, b: ArrayLike) -> ArmSet:
    """Return the set of all x with Ax ≤ b, of which there must be some, and none arbitrarily far away.

    Linear programs are solved with each coordinate moved and scaled to [−1, 1], since the tolerances of the solver are
    absolute.  A coordinate that varies at all must not vary 10⁹ times less than the largest number in the set.

    A vertex is computed from the constraints that are equalities there: its bits are the same for all directions that
    lead to it, and equal choices can be counted.

    Args:
        A: (m, d) One row for each constraint.
        b: (m,) Their bounds.

    Raises:
        InvalidArgument: If the set is empty, unbounded, or has features of sizes too far apart.
        ImportError: If SciPy is not installed.
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


class Program(NamedTuple):
    """The largest xᵀθ over a polytope within [−1, 1]ᵈ for many θ."""

    rows: np.ndarray  # (m, d), the largest entry of each between 1/2 and 1
    limits: np.ndarray  # (m,)
    equalities: np.ndarray  # (m,) whether the constraint is one half of an equality

    def maximize(self, directions: np.ndarray) -> np.ndarray:
        """Solve one linear program for each vertex where possible, and not for each direction.

        θ leads to a vertex if θ = Σ λᵢaᵢ with λᵢ ≥ 0 for the constraints i that are equalities at the vertex (and any
        λᵢ where xᵀaᵢ is the same in the whole set).  Where these λᵢ are clearly above 0 no other vertex is as good.
        """
        found = np.zeros_like(directions)
        left = np.arange(len(directions))
        while left.size:
            corner = self.corner(directions[left[0]])
            same = np.arange(len(left)) == 0
            if corner.inverse is not None:
                weights = directions[left] @ corner.inverse
                same |= np.all((weights > TOLERANCE) | self.equalities[corner.tight], axis=1)
            found[left[same]] = corner.point
            left = left[~same]
        return found

    def corner(self, direction: np.ndarray) -> "Corner":
        """Return where the linear program of one direction ends."""
        result = solve(direction, self.rows, self.limits)
        if result.status != 0:
            raise InvalidArgument(f"no maximum found in this polytope: {result.message} Scale A and b to sizes near 1")
        point: np.ndarray = result.x
        tight = np.flatnonzero(self.limits - self.rows @ point <= TOLERANCE)
        rows, limits = self.rows[tight], self.limits[tight]
        inverse, _, rank, _ = np.linalg.lstsq(rows, np.eye(len(tight)), rcond=TOLERANCE)
        if rank < len(point):  # not a vertex: the direction has no single maximizer
            return Corner(point, tight, None)
        vertex = inverse @ limits
        vertex = vertex + inverse @ (limits - rows @ vertex)  # takes away the rounding of the first step
        if np.max(np.abs(vertex - point)) > 100 * TOLERANCE:  # nearly parallel constraints: the solver knows better
            return Corner(point, tight, None)
        return Corner(vertex, tight, inverse)


class Corner(NamedTuple):
    """An end of a linear program; a vertex if it has an inverse."""

    point: np.ndarray  # (d,)
    tight: np.ndarray  # (k,) indices of the constraints that are equalities there
    inverse: np.ndarray | None  # (d, k) pseudo-inverse of their rows


def solve(direction: np.ndarray, rows: np.ndarray, limits: np.ndarray) -> Any:
    """Return SciPy's result of the linear program max xᵀθ such that rows @ x ≤ limits."""
    linprog = optional("scipy.optimize", "a polytope of arms", "agent").linprog
    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}  # the smallest there are
    for presolve in (True, False):  # presolving is faster, but may not tell an empty set from an unbounded one
        options["presolve"] = presolve
        result = linprog(-direction, rows, limits, bounds=(None, None), method="highs-ds", options=options)
        if result.status in (0, 2, 3):
            break
    return result


def frame(rows: np.ndarray, limits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the middle and the half-width of each coordinate in the set; the set's size where one is constant.

    From afar, in units that are much too large, the solver sees only where the set is: it goes closer and looks again.
    """
    middle = np.zeros(rows.shape[1])
    unit = np.ldexp(1.0, scale_of(limits[None])[0] - 1)
    for _ in range(FRAMES):
        low, high = bounding_box(*framed(rows, limits, middle, unit))
        with np.errstate(over="ignore"):
            middle, widths = middle + unit * (low / 2 + high / 2), unit * (high / 2 - low / 2)
            size = np.max(np.abs(middle) + widths)
        if not size < LARGEST / len(middle):
            raise InvalidArgument("Ax ≤ b reaches too far for float64: scale b down")
        if size > unit / 8:
            constant = widths <= CONSTANT * size
            unclear = ~constant & (widths <= VARYING * size)
            if np.any(unclear):
                place = int(np.argmax(unclear))
                raise InvalidArgument(
                    f"Ax ≤ b lets x[{place}] vary by {widths[place]:.3g} only, in a set that reaches to {size:.3g}: "
                    "measure features in units that make them comparable, from a point near the set"
                )
            return middle, np.where(constant, size, widths)
        unit = 2 * size + 1e-9 * unit
    raise InvalidArgument(
        "the set of all x with Ax ≤ b is too small beside b, or x = 0 alone: leave out constraints that are far away"
    )


def framed(
    rows: np.ndarray, limits: np.ndarray, middle: np.ndarray, unit: np.ndarray | float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the half-spaces as y = (x − middle) / unit sees them."""
    return normalized(rows * unit, limits - rows @ middle)


def bounding_box(rows: np.ndarray, limits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the largest value of each coordinate; raise for an empty set and for an unbounded one."""
    features = rows.shape[1]
    ends = []
    for direction in [np.zeros(features), *-np.eye(features), *np.eye(features)]:
        result = solve(direction, rows, limits)
        if result.status == 2:
            raise InvalidArgument("no x has Ax ≤ b: the polytope is empty; look for constraints that contradict others")
        if result.status == 3:
            place = int(np.argmax(np.abs(direction)))
            way = "large" if direction[place] > 0 else "small"
            raise InvalidArgument(
                f"Ax ≤ b lets x[{place}] be arbitrarily {way}: add bounds on all coordinates to A and b"
            )
        if result.status != 0:
            raise InvalidArgument(f"A and b cannot be used: {result.message} Scale them to sizes near 1")
        ends.append(direction @ result.x)
    return -np.array(ends[1 : features + 1]), np.array(ends[features + 1 :])


def normalized(rows: np.ndarray, limits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the same half-spaces with the largest entry of each row between 1/2 and 1."""
    exponents = scale_of(rows)
    with np.errstate(over="ignore"):  # limits beyond the numbers that float64 holds
        limits = np.clip(np.ldexp(limits, -exponents), -LARGEST, LARGEST)
    return np.ldexp(rows, -exponents[:, None]), limits


def opposites(rows: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """Tell of which constraints aᵀx ≤ β the opposite, aᵀx ≥ β, is a constraint too."""
    constraints = np.column_stack([rows, limits]) + 0.0  # bytes are compared: there must be no -0.0
    negatives = {(0.0 - constraint).tobytes() for constraint in constraints}
    return np.array([constraint.tobytes() in negatives for constraint in constraints])


def scale_of(rows: np.ndarray) -> np.ndarray:
    """Return the power of two just above the largest entry of each row."""
    return np.frexp(np.max(np.abs(rows), axis=1))[1]


def scaled(rows: np.ndarray) -> np.ndarray:
    """Return rows with the largest entry of each between 1/2 and 1, or 0: by powers of two, so without rounding."""
    return np.ldexp(rows, -scale_of(rows)[:, None])


def numbers(name: str, values: ArrayLike, shape: tuple[int | None, ...]) -> np.ndarray:
    """Return a read-only float64 copy of finite numbers in this shape, where None is any length above 0."""
    try:
        array = np.asarray(values)
        if array.dtype.kind in "cmMSU":  # complex numbers, times and text, which NumPy would convert
            raise TypeError
        array = np.array(array, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidFeatures(f"{name} cannot be read as an array of numbers: {values!r}") from None
    fits = array.ndim == len(shape) and all(
        n == m or (m is None and n > 0) for n, m in zip(array.shape, shape, strict=True)
    )
    if not fits:
        needed = ", ".join("at least 1" if length is None else str(length) for length in shape)
        raise InvalidShape(f"{name} has shape {array.shape} where ({needed}{',' * (len(shape) == 1)}) is needed")
    if not np.all(np.isfinite(array)):
        raise InvalidFeatures(f"{name} contains NaN or infinity: give finite numbers")
    array.setflags(write=False)
    return array


def checked(
    kind: str,
    parameters: dict[str, np.ndarray],
    countable: bool,
    maximize: Callable[[np.ndarray], np.ndarray],
    contains: Callable[[np.ndarray], bool],
) -> ArmSet:
    """Return the set, with its functions looking at their arguments first."""
    size = next(iter(parameters.values())).shape[-1]
    return ArmSet(
        kind,
        size,
        parameters,
        countable,
        lambda directions: maximize(numbers("directions", directions, (None, size))),
        lambda x: contains(numbers("x", x, (size,))),
    )
