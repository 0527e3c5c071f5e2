"""Packages that only some uses need, imported when they are: the library itself needs jax and numpy."""

import importlib
from typing import Any


def optional(module: str, purpose: str, extra: str = "experiments") -> Any:
    """A module of an extra; where it is missing, the error says what it is needed for and how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{purpose} needs {module}: pip install 'explorax[{extra}]'") from error
