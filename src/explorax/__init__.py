"""explorax: exploration in generalized linear bandits.

policy = explorax.make("glm_tsl")          # or "glm_fpl", "ucb_glm", …: see explorax.list_policies()
state = policy.init(arms)
action = policy.act(key, state, arms, t)
state = policy.update(state, action.arm, arms[action.arm], reward)

records = explorax.simulate(policy, explorax.environments.logistic(n_features=5), rounds=1000)

agent = explorax.Agent(policy, arms={"red": [1.0, 0.2], "blue": [0.3, 1.0]})
decision = agent.choose()
agent.learn(decision.id, reward)

What is named below is imported when first asked for, so that the command can answer before JAX is there.
"""

import importlib
import sys
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from explorax import datasets, environments, errors, networks, theory
    from explorax.agent import Agent, Decision, Encoder, sets
    from explorax.glm import families
    from explorax.glm.fit import Fit, fit
    from explorax.policies.base import Action, Policy
    from explorax.record import Records
    from explorax.registry import list_policies, make
    from explorax.simulation import simulate

__version__ = "0.1.0"

__all__ = [
    "Action",
    "Agent",
    "Decision",
    "Encoder",
    "Fit",
    "Policy",
    "Records",
    "datasets",
    "environments",
    "errors",
    "families",
    "fit",
    "make",
    "networks",
    "policies",
    "sets",
    "simulate",
    "theory",
]

MODULES = {name: f"explorax.{name}" for name in ("datasets", "environments", "errors", "networks", "theory")}
MODULES |= {"families": "explorax.glm.families", "sets": "explorax.agent.sets"}
HOMES = {  # of everything else
    "Action": "explorax.policies.base",
    "Agent": "explorax.agent",
    "Decision": "explorax.agent",
    "Encoder": "explorax.agent",
    "Fit": "explorax.glm.fit",
    "Policy": "explorax.policies.base",
    "Records": "explorax.record",
    "fit": "explorax.glm.fit",
    "make": "explorax.registry",
    "policies": "explorax.registry",
    "simulate": "explorax.simulation",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for."""
    if name in MODULES:
        found: Any = importlib.import_module(MODULES[name])
    elif name in HOMES:
        found = getattr(importlib.import_module(HOMES[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class Package(types.ModuleType):
    """A package where a function is not replaced by the module of its name, whenever that is imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in HOMES and isinstance(value, types.ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = Package
