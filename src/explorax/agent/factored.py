"""The arms on offer in one context, whose features are products of factors (`by_column.py`).

The factors of the arms stay on the device as long as the arms do not change.  A decision is given the factors of its
context only, two vectors, and the compiled program makes the features of all arms.
"""

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from explorax.agent.arm_tables import Pick, kept_among, picked
from explorax.agent.by_column import multiplied
from explorax.agent.compiled import compiled
from explorax.agent.own_arms import OnOffer
from explorax.agent.packing import Packed, Packing, on_packed
from explorax.agent.rule import Rule
from explorax.checks import largest_size
from explorax.policies.base import State
from explorax.programs import kept


class Factored(NamedTuple):
    """An offer of arms in a context."""

    offered: OnOffer
    context: np.ndarray  # (2d,) the factors of the context
    dtype: str

    @property
    def choices(self) -> int:
        """The number of arms that may be pulled."""
        return len(self.offered.names)

    def are_small(self) -> bool:
        """Tell whether no feature of an arm can be too large, by a bound; False if some might be."""
        factor = self.offered.largest + float(np.abs(self.context).max())
        return factor * factor <= largest_size(self.dtype)

    def decide(self, rule: Rule, keys: Array, packed: Packed, t: int) -> Pick:
        """Make decision t by a rule."""
        factors, mask = self.offered.factors
        program = decision(rule, packed.packing, factors.shape)
        numbers, known = program(keys, packed.arrays, factors, self.context, t, mask)
        whole = np.asarray(numbers).tolist()
        features = multiplied(self.offered.rows[whole[0]] + self.context).astype(self.dtype, copy=False)
        return picked(rule, whole, known, self.offered.names, features)

    def on_offer(self, i: int) -> tuple[list[Any], np.ndarray]:
        """Return the names and the rows of the arms that may be pulled."""
        return self.offered.names, np.arange(len(self.offered.names))

    def table(self, i: int) -> np.ndarray:
        """Return (K, d) the features of all arms."""
        return multiplied(self.offered.rows + self.context).astype(self.dtype, copy=False)

    def as_played(self) -> tuple[Any, Any]:
        """Return (K or more, d) the features and the mask of the arms, as the policy is given them."""
        factors, mask = self.offered.factors
        return multiplied_alike(factors, self.context), mask

    def without(self, names: Collection[Any]) -> "Factored":
        """Return the offer without some of its arms."""
        return self._replace(offered=self.offered.some(np.flatnonzero(kept_among(self.offered.names, names))))


@kept
def decision(rule: Rule, packing: Packing, shape: tuple[int, ...]) -> Callable[..., Any]:
    """Return the compiled `rule.decide` of arms in a context, on a packed state."""

    def decide(keys: Array, state: State, factors: Array, context: Array, t: Array, mask: Array) -> Any:
        return rule.decide(keys, state, multiplied_alike(factors, context), t, mask)

    return compiled(on_packed(decide, packing))


def multiplied_alike(factors: Any, context: Any) -> Any:
    """Return the features of all arms from their two factors (K, d) each, and those of their context (2d,)."""
    first, second = jnp.asarray(factors) + context.reshape(2, 1, -1)
    return first * second
