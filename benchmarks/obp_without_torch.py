"""The Open Bandit Pipeline (obp) without PyTorch, which it imports for estimates of tensors, and which nothing here needs.

To be imported in obp's own environment (`obp_environment.py`): `from obp_without_torch import BernoulliTS, ope`.
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


sys.modules |= {name: Torch for name in ("torch", "torch.nn", "torch.optim")}  # type: ignore[misc]

from obp import ope  # type: ignore[import-not-found]  # noqa: E402
from obp.policy import BernoulliTS  # type: ignore[import-not-found]  # noqa: E402

__all__ = ["BernoulliTS", "ope"]
