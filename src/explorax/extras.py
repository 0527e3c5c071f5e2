"""Packages that only some uses need, imported when they are needed; the library itself needs jax and numpy only."""

import importlib
from typing import Any


def optional(module: str, purpose: str, extra: str = "experiments") -> Any:
    """Import a module of an optional package.

    Args:
        module: The name of the module, for example "sklearn.base".
        purpose: What the module is needed for, as the subject of a sentence: "a figure".
        extra: The extra of explorax that installs the package.  Default: "experiments".

    Returns:
        The module.

    Raises:
        ImportError: If the package is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        subject = purpose[:1].upper() + purpose[1:]
        raise ImportError(f"{subject} needs {module}. Install it with pip install 'explorax[{extra}]'.") from error
