"""The Open Bandit Pipeline on arrays in files, for `obp_agreement.py`, which runs this in an environment of its own.

Reads a line "FILE ESTIMATOR" from standard input, and answers with a line "VALUE SECONDS" each time.
"""

import sys
import time
import types
from typing import Any

import numpy as np

# obp imports torch for estimates of tensors.  These arrays are NumPy's, so that gigabytes of torch need not be there.
for module in ("torch", "torch.nn", "torch.optim", "torch.utils", "torch.utils.data"):
    parent, _, name = module.rpartition(".")
    sys.modules[module] = types.ModuleType(module)
    if parent:
        setattr(sys.modules[parent], name, sys.modules[module])
for module, name in (
    ("torch", "Tensor"), ("torch.nn", "Module"), ("torch.utils.data", "DataLoader"), ("torch.utils.data", "Dataset"),
):  # fmt: skip
    setattr(sys.modules[module], name, type(name, (), {}))

from obp import ope  # type: ignore[import-not-found]  # noqa: E402

ESTIMATORS = {
    "ips": ope.InverseProbabilityWeighting(),
    "snips": ope.SelfNormalizedInverseProbabilityWeighting(),
    "dm": ope.DirectMethod(),
    "dr": ope.DoublyRobust(),
    "sndr": ope.SelfNormalizedDoublyRobust(),
    "switch_dr": ope.SwitchDoublyRobust(tau=float(sys.argv[1])),
    "dr_shrinkage": ope.DoublyRobustWithShrinkage(lambda_=float(sys.argv[2])),
}


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
