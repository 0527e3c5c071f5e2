"""The Open Bandit Pipeline (obp) without PyTorch, which it imports for estimates of tensors; nothing here has any.

To be imported in obp's own environment (`obp_environment.py`): `from obp_without_torch import estimators`.
"""

import sys
from typing import Any


class StandIn(type):
    """A class that has every attribute, which is itself."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return cls


class Torch(metaclass=StandIn):
    """In place of PyTorch and its modules."""


sys.modules |= dict.fromkeys(("torch", "torch.nn", "torch.optim"), Torch)  # type: ignore[arg-type]

from obp import ope  # type: ignore[import-not-found]  # noqa: E402
from obp.policy import BernoulliTS  # type: ignore[import-not-found]  # noqa: E402

__all__ = ["BernoulliTS", "estimators", "ope"]


def estimators(tau: float, lambda_: float) -> dict[str, Any]:
    """The estimators that explorax has, too, by their names there, with the settings of two of them."""
    return {
        "ips": ope.InverseProbabilityWeighting(),
        "snips": ope.SelfNormalizedInverseProbabilityWeighting(),
        "dm": ope.DirectMethod(),
        "dr": ope.DoublyRobust(),
        "sndr": ope.SelfNormalizedDoublyRobust(),
        "switch_dr": ope.SwitchDoublyRobust(tau=tau),
        "dr_shrinkage": ope.DoublyRobustWithShrinkage(lambda_=lambda_),
    }
