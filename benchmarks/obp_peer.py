"""The Open Bandit Pipeline on arrays in files, for `obp_agreement.py`, which runs this in an environment of its own.

Reads a line "FILE ESTIMATOR" from standard input, and answers with a line "VALUE SECONDS" each time.
"""

import sys
import time
from typing import Any

import numpy as np
from obp_without_torch import estimators

ESTIMATORS = estimators(tau=float(sys.argv[1]), lambda_=float(sys.argv[2]))


def read(file: str) -> dict[str, Any]:
    """The arguments of estimators."""
    arrays = np.load(file)
    return {
        "reward": arrays["rewards"],
        "action": arrays["arms"],
        "pscore": arrays["propensities"],
        "action_dist": arrays["target"][:, :, None],
        "estimated_rewards_by_reg_model": arrays["predictions"][:, :, None],
        "position": np.zeros(len(arrays["arms"]), int),
    }


def main() -> None:
    """Answer every line."""
    files: dict[str, dict[str, Any]] = {}
    for line in sys.stdin:
        file, name = line.split()
        if file not in files:
            files = {file: read(file)}  # one at a time, for the memory
        began = time.perf_counter()
        value = ESTIMATORS[name].estimate_policy_value(**files[file])
        print(repr(float(value)), time.perf_counter() - began, flush=True)


if __name__ == "__main__":
    main()
