"""The name of a study, and the labels of its panels and curves, checked."""

from collections.abc import Sequence

from explorax.errors import InvalidArgument

LONGEST_NAME = 100  # characters


def check_name(name: object) -> None:
    """Raise `InvalidArgument` unless the name of a study can be the name of a directory."""
    plain = isinstance(name, str) and name.isprintable() and 0 < len(name) <= LONGEST_NAME and name == name.strip()
    if not plain or name in (".", "..") or set("/\\:") & set(str(name)):
        raise InvalidArgument(
            f"name must be a plain file name of 1 to {LONGEST_NAME} characters without / \\ and :, got {name!r}. "
            "Choose the directory of the results with --out."
        )


def check_labels(name: str, labels: Sequence[object]) -> None:
    """Raise `InvalidArgument` unless there is at least one label of panels or curves, and all are different texts.

    Args:
        name: What they are the labels of, "panels" or "curves".
        labels: The labels.

    Raises:
        InvalidArgument: If there are no labels, or one is not text, empty, or there twice.
    """
    if not labels:
        raise InvalidArgument(f"{name} must have at least one entry, got none. Add one.")
    seen: set[str] = set()
    for label in labels:
        if not isinstance(label, str) or not label:
            raise InvalidArgument(f"The label of an entry of {name} must be text, got {label!r}. Give it a name.")
        if label in seen:
            raise InvalidArgument(
                f"The labels of {name} must be different, got {label!r} twice. Give each entry a label of its own."
            )
        seen.add(label)
