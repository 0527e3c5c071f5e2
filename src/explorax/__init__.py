"""Exploration in generalized linear bandits.

A policy is three pure functions:

    policy = explorax.glm_tsl()                # or glm_fpl, ucb_glm, …: see explorax.list_policies()
    state = policy.init(arms)
    action = policy.act(key, state, arms, t)
    state = policy.update(state, action.arm, arms[action.arm], reward)

A simulation plays a policy in a random environment:

    records = explorax.simulate(policy, explorax.environments.logistic(n_features=5), rounds=1000)

An agent makes decisions with a policy, and learns from rewards that may come late:

    agent = explorax.Agent(policy, arms={"red": [1.0, 0.2], "blue": [0.3, 1.0]})
    decision = agent.choose()
    agent.learn(decision.id, reward)

`__init__.pyi` lists all names.  Each is imported when it is first used, so that the command line can answer before JAX
is imported.
"""

import ast
import importlib
import pkgutil
from typing import Any

__version__ = "0.1.0"

_LIST = ast.parse(pkgutil.get_data(__name__, "__init__.pyi") or b"")
_HOMES = {one.name: line.module for line in _LIST.body if isinstance(line, ast.ImportFrom) for one in line.names}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOMES[name]
    if home == f"explorax.policies.{name}":  # the builder of a policy, which tells the policy how it was made
        found = importlib.import_module("explorax.registry").builder_of(name)
    else:
        module = importlib.import_module(home)
        found = vars(module)[name] if name in vars(module) else importlib.import_module(f"{home}.{name}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
