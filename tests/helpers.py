"""Comparisons, and a count of programs, that tests of many modules share."""

import jax
import numpy as np

COMPILED = []  # one entry for each program that this process compiles, of whatever function
jax.monitoring.register_event_duration_secs_listener(
    lambda event, duration, **about: COMPILED.append(event) if "backend_compile" in event else None
)


def assert_same(found, wanted, **close):
    """Two trees have one structure and the same numbers, to the bit or as close as `rtol` and `atol` say."""
    assert jax.tree.structure(found) == jax.tree.structure(wanted)
    compare = np.testing.assert_allclose if close else np.testing.assert_array_equal

    def same(path, first, second):
        compare(first, second, err_msg=jax.tree_util.keystr(path), **close)

    jax.tree_util.tree_map_with_path(same, found, wanted)


def part(records, instances):
    """The records of these instances."""
    wanted = np.isin(records.instances, instances)
    fields = (field if name == "rounds" else field[wanted] for name, field in records._asdict().items())
    return type(records)(*fields)
