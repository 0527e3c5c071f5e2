"""Decisions in an infinite set of arms: the point of the set that a random θ̃ likes best.

GLM-TSL, GLM-FPL, LinTS and greedy only ever maximize xᵀθ̃, so a set of arms may be anything with an oracle for that
(`sets.py`).  θ̃ is read off a policy as the scores of the unit vectors.  During the forced rounds of `warmup` the
directions are the unit vectors in turn.

A point of a box or a polytope is, with probability 1, one of its corners, and has a propensity.  In a ball or an
ellipsoid every single point has probability 0, and there is none.

Reference: Kveton et al., Randomized Exploration in Generalized Linear Bandits, AISTATS 2020, section 3.3.
"""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from explorax.agent import deciding
from explorax.agent.packing import Packed, Packing
from explorax.agent.sets import ArmSet
from explorax.errors import InvalidArgument
from explorax.policies.base import Policy
from explorax.registry import list_policies


@dataclass(frozen=True)
class Points:
    """A set of arms, and how its points are chosen."""

    set: ArmSet
    rule: deciding.Rule
    dtype: str

    @classmethod
    def of(cls, arms: ArmSet, policy: Policy, rule: deciding.Rule, dtype: str) -> "Points":
        """Raise unless the policy maximizes xᵀθ̃."""
        linear = [name for name, entry in list_policies().items() if entry.linear]
        if policy.recipe is None or policy.recipe.name not in linear:
            name = policy.recipe.name if policy.recipe else "this policy"
            raise InvalidArgument(
                f"{name} does not maximize a linear function, as an infinite set of arms needs: use {', '.join(linear)}"
            )
        if rule.floor:
            raise InvalidArgument(
                f"explore_floor must be 0 for an infinite set of arms, got {rule.floor}. It has no uniform choice of "
                "an arm: give a list of arms, or leave the floor out."
            )
        draws = rule.draws if arms.countable else 0
        return cls(arms, deciding.unique(rule.act, None, None, draws), dtype)

    @property
    def features(self) -> int:
        """d."""
        return self.set.features

    def choose(
        self, keys: Array, packing: Packing, packed: Packed, times: np.ndarray
    ) -> tuple[np.ndarray, Any, np.ndarray | None]:
        """(n, d) points, whether each was forced and its fit converged, and how often each came up in M + 1 draws."""
        units = jnp.eye(self.features, dtype=self.dtype)
        found = []
        for _, room, piece in deciding.pieces(len(times), least=1):
            found.append(deciding.directions(self.rule, packing, room)(keys, packed, units, times[piece]))
        thetas, flags = (np.concatenate([np.asarray(each) for each in column]) for column in zip(*found, strict=True))
        thetas, flags = thetas[: len(times)], flags[: len(times)]
        points = self.set.maximize(thetas.astype(float).reshape(-1, self.features))
        points = points.reshape(len(times), -1, self.features)
        chosen = points[:, 0].astype(self.dtype)
        counts = np.all(points == points[:, :1], axis=2).sum(axis=1) if self.set.countable else None
        return chosen, tuple(flags.T), counts
