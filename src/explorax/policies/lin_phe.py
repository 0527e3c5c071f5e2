"""LinPHE: perturbed-history exploration in a linear model.

    M_x = ⌈a N_x⌉,  U_x a sum of M_x pseudo-rewards that are b or c with equal chance, fresh in every round
    θ̃ = (Σ_x (N_x + M_x) x xᵀ + (1 + a) λI)⁻¹ Σ_x (Y_x + U_x) x,    pull argmax_i x_iᵀθ̃

The matrix is 1 + a times that of ridge regression where a N_x is whole; that is why the ridge is multiplied, too.

    a        `scale`          0.5, the value in public code of RandUCB's experiments; others have 1 and 2
    b, c     `reward_range`   (0, 1): the ends of the interval that rewards lie in
    λ        `ridge`

The estimate is drawn towards rewards of (b + c)/2, which a linear model without an intercept cannot say of all arms:
give arms a feature that is 1 unless that is 0.  The regret bound of the paper is for an a that grows as d log n, as
others quote it, far above what anybody runs; there is no design="theory".  `pseudo_rewards` says what happens where
arms change or the past is discounted; memory="exact" only.

Reference: Kveton, Szepesvári, Ghavamzadeh & Boutilier, Perturbed-History Exploration in Stochastic Linear Bandits,
UAI 2019.
"""

from typing import Unpack

from explorax.checks import is_number
from explorax.errors import InvalidArgument
from explorax.policies.base import Policy
from explorax.policies.glm_model import GLMModel
from explorax.policies.linear_model import FAMILIES
from explorax.policies.pseudo_rewards import perturbed_history
from explorax.policies.settings import GLMSettings


def lin_phe(
    *, scale: float = 0.5, reward_range: tuple[float, float] = (0.0, 1.0), **settings: Unpack[GLMSettings]
) -> Policy:
    """Build LinPHE.  Its family is the Gaussian one."""
    settings.setdefault("family", "gaussian")
    model = GLMModel(**settings)
    if model.glm.name != "gaussian":
        raise InvalidArgument(
            f"family={model.glm.name!r}: LinPHE fits a linear model: use family='gaussian', or 'log_phe' for rewards "
            "of 0 and 1"
        )
    if not (len(reward_range) == 2 and all(map(is_number, reward_range)) and reward_range[0] < reward_range[1]):
        raise InvalidArgument(
            f"reward_range={reward_range!r} must be two numbers, the smallest possible reward and the largest"
        )
    return perturbed_history(model, scale, *reward_range)._replace(families=FAMILIES)
