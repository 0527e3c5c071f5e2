"""Linear programs over a polytope {x : Ax ≤ b}: where the polytope lies, and its vertex in each direction.

Programs are solved by SciPy with each coordinate moved and scaled to [−1, 1], since the tolerances of the solver are
absolute.  A coordinate that varies at all must vary by at least 10⁻⁹ times the largest number in the polytope.

A vertex is computed from the constraints that are equalities there.  Its bits are then the same for all directions that
lead to it, so equal choices can be counted.
"""

from typing import Any, NamedTuple

import numpy as np

from explorax.errors import InvalidArgument
from explorax.extras import optional

TOLERANCE = 1e-8  # what passes for rounding, relative to the size of the numbers
LARGEST = np.finfo(np.float64).max / 4  # so that a few of them can be added up
CONSTANT, VARYING = 1e-12, 1e-9  # relative widths: a constant coordinate is below the first, any other above the second
FRAMES = 10  # attempts to find the place and the size of a polytope; one is usual


class Program(NamedTuple):
    """The linear programs max xᵀθ over one polytope within [−1, 1]ᵈ, for many directions θ."""

    rows: np.ndarray  # (m, d), the largest entry of each between 1/2 and 1
    limits: np.ndarray  # (m,)
    equalities: np.ndarray  # (m,) whether the constraint is one half of an equality

    def maximize(self, directions: np.ndarray) -> np.ndarray:
        """Return a maximizer of xᵀθ for each direction θ, solving one linear program per vertex where possible.

        θ leads to a vertex if θ = Σ λᵢaᵢ with λᵢ ≥ 0 for the constraints i that are equalities at the vertex (and any
        λᵢ where xᵀaᵢ is the same in the whole set).  If these λᵢ are clearly above 0, no other vertex is as good.

        Args:
            directions: (M, d) The directions θ.

        Returns:
            (M, d) The maximizers.
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
        """Return the point at which the linear program of one direction ends."""
        result = solve(direction, self.rows, self.limits)
        if result.status != 0:
            raise InvalidArgument(
                f"The solver found no maximum in this polytope: {result.message} Scale A and b to sizes near 1."
            )
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
    """The end of a linear program; a vertex if it has an inverse."""

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
    """Return the middle and the half-width of each coordinate of a polytope.

    In units that are much too large the solver sees only where the polytope is, so the search is repeated in smaller
    units around that place.

    Args:
        rows: (m, d) The normals of the half-spaces, A.
        limits: (m,) Their bounds, b.

    Returns:
        (d,) The middle, and (d,) the half-widths; a constant coordinate has the size of the whole polytope.

    Raises:
        InvalidArgument: If the polytope is empty, unbounded, too large or too small, or if the widths of its
            coordinates are too different.
    """
    middle = np.zeros(rows.shape[1])
    unit = np.ldexp(1.0, scale_of(limits[None])[0] - 1)
    for _ in range(FRAMES):
        low, high = bounding_box(*framed(rows, limits, middle, unit))
        with np.errstate(over="ignore"):
            middle, widths = middle + unit * (low / 2 + high / 2), unit * (high / 2 - low / 2)
            size = np.max(np.abs(middle) + widths)
        if not size < LARGEST / len(middle):
            raise InvalidArgument("The polytope Ax ≤ b reaches too far for float64. Scale b down.")
        if size > unit / 8:
            constant = widths <= CONSTANT * size
            unclear = ~constant & (widths <= VARYING * size)
            if np.any(unclear):
                place = int(np.argmax(unclear))
                raise InvalidArgument(
                    f"The constraints Ax ≤ b let x[{place}] vary by {widths[place]:.3g} only, in a polytope that "
                    f"reaches to {size:.3g}. Measure features in comparable units, from a point near the polytope."
                )
            return middle, np.where(constant, size, widths)
        unit = 2 * size + 1e-9 * unit
    raise InvalidArgument(
        "The polytope Ax ≤ b is too small compared with b, or is x = 0 alone. Leave out constraints that are far away."
    )


def framed(
    rows: np.ndarray, limits: np.ndarray, middle: np.ndarray, unit: np.ndarray | float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the half-spaces of x in the coordinates y = (x − middle) / unit."""
    return normalized(rows * unit, limits - rows @ middle)


def bounding_box(rows: np.ndarray, limits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the largest value of each coordinate; raise if the polytope is empty or unbounded."""
    features = rows.shape[1]
    ends = []
    for direction in [np.zeros(features), *-np.eye(features), *np.eye(features)]:
        result = solve(direction, rows, limits)
        if result.status == 2:
            raise InvalidArgument(
                "No x satisfies Ax ≤ b: the polytope is empty. Look for constraints that contradict each other."
            )
        if result.status == 3:
            place = int(np.argmax(np.abs(direction)))
            way = "large" if direction[place] > 0 else "small"
            raise InvalidArgument(
                f"The constraints Ax ≤ b let x[{place}] be arbitrarily {way}. Add bounds on all coordinates to A and b."
            )
        if result.status != 0:
            raise InvalidArgument(
                f"The solver cannot use the constraints Ax ≤ b: {result.message} Scale A and b to sizes near 1."
            )
        ends.append(direction @ result.x)
    return -np.array(ends[1 : features + 1]), np.array(ends[features + 1 :])


def normalized(rows: np.ndarray, limits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the same half-spaces with the largest entry of each row between 1/2 and 1."""
    exponents = scale_of(rows)
    with np.errstate(over="ignore"):  # limits beyond the numbers that float64 holds
        limits = np.clip(np.ldexp(limits, -exponents), -LARGEST, LARGEST)
    return np.ldexp(rows, -exponents[:, None]), limits


def opposites(rows: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """Tell for each constraint aᵀx ≤ β whether its opposite, aᵀx ≥ β, is a constraint too."""
    constraints = np.column_stack([rows, limits]) + 0.0  # bytes are compared: there must be no -0.0
    negatives = {(0.0 - constraint).tobytes() for constraint in constraints}
    return np.array([constraint.tobytes() in negatives for constraint in constraints])


def scale_of(rows: np.ndarray) -> np.ndarray:
    """Return the exponent of the power of two just above the largest entry of each row."""
    return np.frexp(np.max(np.abs(rows), axis=1))[1]


def scaled(rows: np.ndarray) -> np.ndarray:
    """Return each row times a power of two, which rounds nothing, so that its largest entry is from 1/2 to 1, or 0."""
    return np.ldexp(rows, -scale_of(rows)[:, None])
