"""The kinds of arms, and which of them an agent is made with."""

import reprlib
from collections.abc import Mapping
from typing import Any

from explorax.agent.arm_sets import ArmSet
from explorax.agent.arm_tables import read_table
from explorax.agent.encoding import Encoder
from explorax.agent.own_arms import Arms
from explorax.agent.sources import ArmSource, Changing, Fixed, InContext, Infinite
from explorax.checks import check_whole
from explorax.errors import InvalidArgument, UnknownName

KINDS: dict[str, type[ArmSource]] = {each.kind: each for each in (Fixed, InContext, Changing, Infinite)}


def read_source(given: Any, n_features: int | None, encoder: Encoder | None, dtype: str) -> tuple[ArmSource, Arms]:
    """Return the source of arms of an agent that is made with these arguments, and the agent's own arms."""
    if encoder is not None and not isinstance(encoder, Encoder):
        raise InvalidArgument(
            f"encoder must be an Encoder, got {reprlib.repr(encoder)}. Make one with Encoder.fit(sample) or "
            "Encoder.from_transformer(transformer, columns)."
        )
    size = getattr(encoder, "n_features", None)
    if isinstance(given, ArmSet):
        if encoder is not None:
            raise InvalidArgument(
                "encoder must be None for an infinite set of arms, got an Encoder. Points of the set are features "
                "already."
            )
        size = given.n_features
    if size is not None and n_features not in (None, size):
        what = "the set of arms has" if isinstance(given, ArmSet) else "the encoder makes"
        raise InvalidArgument(f"n_features must be {size}, as {what}, got {n_features}. Leave it out.")
    if isinstance(given, ArmSet):
        return Infinite(given.n_features, dtype, set=given), Arms.none()
    if given is None:
        if n_features is None and encoder is None:
            raise InvalidArgument(
                "arms must be a table or a set of arms, got None. Give arms, or n_features=d (or an encoder) for arms "
                "that differ every time."
            )
        check_whole("n_features", n_features if size is None else size, 1)
        return Changing(int(size or n_features or 1), dtype, encoder), Arms.none()
    if encoder is not None and is_in_context(given, encoder):
        attributes = {name: encoder.checked(f"arm {name!r}", each) for name, each in given.items()}
        rows = encoder.part(list(attributes.values()))
        return InContext(encoder.n_features, dtype, encoder), Arms.in_context(attributes, rows)
    table = read_table(given, n_features, dtype, encoder)
    return Fixed(table.rows.shape[1], dtype, encoder), Arms.of(table)


def is_in_context(given: Any, encoder: Encoder) -> bool:
    """Tell whether arms are given by name with attributes that are only some of the encoder's columns."""
    if not isinstance(given, Mapping) or not all(isinstance(each, Mapping) for each in given.values()):
        return False
    columns = [set(each) for each in given.values()]
    for each in columns:
        if unknown := sorted(each - set(encoder.columns)):
            raise UnknownName("column", unknown[0], encoder.columns)
        if each != columns[0]:
            raise InvalidArgument(
                f"arms must all have the same attributes, got {sorted(each ^ columns[0])} for some of them only. Give "
                "every arm the same attributes."
            )
    return bool(given) and columns[0] != set(encoder.columns)
