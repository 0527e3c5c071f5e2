"""The benchmark runs; what it measures is not for a test to say."""

import re

from explorax import bench


def numbers(line):
    return [float(word) for word in re.findall(r"\d+\.?\d*", line)]


def test_cost_by_size():
    lines = []
    sizes = bench.Sizes(features=(2,), arms=(6,), fixed_arms=6, fixed_features=2, seconds=1e-3, policies=("ucb_glm",))
    bench.by_size(sizes, lines.append)
    rows = [line for line in lines if line.startswith("UCB-GLM")]
    assert [numbers(row)[0] for row in rows] == [2, 6]
    for row in rows:
        _, rate, cost, ratio = numbers(row)
        assert rate > 0
        assert cost > 0
        assert ratio == 1
    # d = 2 with K = 6 is measured once and shown twice.
    assert numbers(rows[0])[1:] == numbers(rows[1])[1:]


def test_cost_over_time():
    lines = []
    bench.over_time(100, lines.append, name="ucb_glm", n_features=2, n_arms=6)
    rows = [line for line in lines if "–" in line]
    assert [numbers(row)[1] for row in rows] == list(range(10, 101, 10))
    assert all(numbers(row)[2] > 0 for row in rows)


def test_memory_is_measured_in_fresh_processes():
    lines = []
    bench.memory([30], lines.append, n_features=2, n_arms=4)
    rounds, peak, ratio, seconds = numbers(lines[-1])
    assert (rounds, ratio) == (30, 1)
    assert 50 < peak < 10_000
    assert seconds > 0
