"""Policies that learn alike, merged so that one program plays all of them.

Most of a GLM policy's program is what follows a reward: the fit, the kept curvature, the checks.  Policies that learn
alike (`Part.kind`) do the same there, and differ in the rule that scores the arms.  Merged, they have states of the
same shape and the same function `update`, and each has an `act` of its own (`Policy.siblings`).

A merged policy pulls the arms that the policy alone pulls.  It is there to be simulated: it cannot be saved, extended
or adopted.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from explorax.glm.certificate import tolerated
from explorax.glm.memory.base import Estimator
from explorax.glm.warm import kept_error
from explorax.policies.base import Policy
from explorax.policies.checked import checked_init
from explorax.policies.glm_model import Part, Rule, program
from explorax.policies.glm_state import AnyState, GLMState, learn


class Numbers(NamedTuple):
    """The numbers of a merged policy.

    Attributes:
        root_error: The largest error of a kept curvature that its rule allows, as the r of factors e^±r.
        widths: Whether its rule asks the memory for the widths of arms.
        of_rules: The numbers of each rule; those of the other rules are zeros.
    """

    root_error: Array
    widths: Array
    of_rules: tuple[Any, ...]


class Member(NamedTuple):
    """A rule with what it is given alone.

    Attributes:
        rule: The rule.
        estimator: Its estimator.
        widths: Whether it asks the memory for the widths of arms.
    """

    rule: Rule
    estimator: Estimator
    widths: bool


class Asked(NamedTuple):
    """A rule with what it is given alone, and whether it asks the memory for a root of the inverse curvature."""

    member: Member
    roots: bool


@dataclass(frozen=True)
class OwnRule:
    """The rule of a merged policy.

    Attributes:
        member: The rule, with what it is given alone.
        place: The place of its numbers among those of all rules.
    """

    member: Member
    place: int

    def __call__(
        self, estimator: Estimator, key: Array, state: GLMState[Any, Numbers], arms: Array
    ) -> tuple[Array, Array]:
        """Return the scores of all arms, and whether the fit behind them converged."""
        own = state._replace(numbers=state.numbers.of_rules[self.place])
        return self.member.rule(self.member.estimator, key, own, arms)


def learn_alike(estimator: Estimator, state: AnyState, arm: Array, x: Array, reward: Array) -> AnyState:
    """Record a reward and refit θ̂, and keep what the rule of the policy asks for as exact as it needs it."""
    numbers: Numbers = state.numbers
    return learn(replace(estimator, root_error=numbers.root_error, widths=numbers.widths), state, arm, x, reward)


def merge(policies: Sequence[Policy], arms_change: bool) -> list[Policy]:
    """Merge policies with those among them that learn alike.

    Args:
        policies: The policies.
        arms_change: Whether they are to play with changing arms.

    Returns:
        For each policy in turn, a policy that pulls the same arms.  Those that learn alike share a program.
    """
    kinds = [None if policy.part is None else policy.part.kind(arms_change) for policy in policies]
    groups: dict[Hashable, dict[Asked, Part]] = {}
    for policy, kind in zip(policies, kinds, strict=True):
        if policy.part is not None:
            groups.setdefault(kind, {})[Asked(member_of(policy.part), policy.part.roots)] = policy.part
    return [
        policy if kind is None else merged(policy, groups[kind]) for policy, kind in zip(policies, kinds, strict=True)
    ]


def merged(policy: Policy, parts: Mapping[Asked, Part]) -> Policy:
    """Return a policy as one of those that learn alike, whose parts are given; it stays as it is if it is alone."""
    own: Part = policy.part
    rules = {asked.member: part for asked, part in parts.items()}
    if len(rules) == 1:
        return policy
    place = list(rules).index(member_of(own))
    widths, roots = any(part.widths for part in parts.values()), any(part.roots for part in parts.values())

    def init(arms: Array | int, key: Array) -> AnyState:
        state = own.begin(arms, widths, roots)
        dtype = state.ridge.dtype
        of_rules = [nothing_like(partial(part.numbers, arms), dtype) for part in rules.values()]
        of_rules[place] = state.numbers
        error = kept_error(own.estimator.root_error, tolerated(own.estimator.tolerance, dtype))
        return state._replace(numbers=Numbers(jnp.asarray(error, dtype), jnp.asarray(own.widths), tuple(of_rules)))

    alike = replace(own.estimator, root_error=None)
    programs = [program(OwnRule(member, i), alike, learn_alike) for i, member in enumerate(rules)]
    return policy._replace(
        init=checked_init(init),
        act=programs[place].act,
        update=programs[0].update,
        siblings=tuple(one.act for one in programs),
        probabilities=None,
        extend=None,
        unrewarded=None,
        adopt=None,
        complete=None,
        part=None,
    )


def member_of(part: Part) -> Member:
    """Return the rule of a part with what it is given alone."""
    return Member(part.rule, part.estimator, part.widths)


def nothing_like(make: Callable[[], Any], dtype: jnp.dtype) -> Any:
    """Return zeros in place of the numbers that a function makes, which it need not compute for that."""
    shapes = jax.eval_shape(lambda: jax.tree.map(jnp.asarray, make()))
    return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, dtype), shapes)
