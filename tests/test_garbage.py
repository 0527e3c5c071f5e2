"""Python looks for unreachable objects rarely, and what lives already is left alone."""

import subprocess
import sys


def test_objects_are_looked_at_rarely():
    """In a process of its own, since tests collect rarely themselves."""
    code = """if True:
        import gc
        from explorax.garbage import OBJECTS, collect_rarely
        before = gc.get_threshold()[0]
        collect_rarely()
        print(before < gc.get_threshold()[0] == OBJECTS, gc.get_freeze_count() > 1000, gc.isenabled())
    """
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["True"] * 3
