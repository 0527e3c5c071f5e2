"""LinPHE: perturbed-history exploration in a linear model.

In each round random pseudo-rewards are added to the past, and the best arm of a fit to both is pulled:

    M_x = ⌈a N_x⌉,  U_x a sum of M_x pseudo-rewards that are b or c with equal chance, fresh in every round
    θ̃ = (Σ_x (N_x + M_x) x xᵀ + (1 + a) λI)⁻¹ Σ_x (Y_x + U_x) x,    pull argmax_i x_iᵀθ̃

    a        `scale`          default: 0.5, the value in public code of RandUCB's experiments; others use 1 and 2
    b, c     `reward_range`   default: (0, 1); the ends of the interval in which rewards lie
    λ        `ridge`

N_x and Y_x are the number and the sum of the rewards of arm x.  If a N_x is whole, the matrix is 1 + a times that of
ridge regression, which is why the ridge is multiplied, too.

The pseudo-rewards draw the estimate towards rewards of (b + c)/2.  A linear model without an intercept cannot predict
the same reward for all arms, unless that reward is 0: in all other cases give the arms a feature that is 1.

The regret bound of the paper is for an a that grows as d log n, as other papers quote it.  That is far above the values
in use, so there is no design="theory".  `pseudo_rewards` explains changing arms and discounts.  The policy needs
memory="exact".

Reference: Kveton, Szepesvári, Ghavamzadeh & Boutilier, Perturbed-History Exploration in Stochastic Linear Bandits,
UAI 2019.
"""

from typing import Annotated, Unpack

from explorax.builders import defaults
from explorax.checks import is_number
from explorax.errors import InvalidArgument
from explorax.policies.base import Policy
from explorax.policies.glm_model import GLMModel
from explorax.policies.linear_model import FAMILIES
from explorax.policies.pseudo_rewards import perturbed_history
from explorax.policies.settings import GLMSettings


@defaults(family="gaussian")
def lin_phe(
    *,
    scale: Annotated[float, "How much to explore: the number a of pseudo-rewards for each reward, above 0."] = 0.5,
    reward_range: Annotated[tuple[float, float], "The smallest reward b and the largest reward c."] = (0.0, 1.0),
    **settings: Unpack[GLMSettings],
) -> Policy:
    """Build LinPHE, which fits a linear model to rewards and random pseudo-rewards.  Its family is Gaussian."""
    model = GLMModel(**settings)
    if model.glm.name != "gaussian":
        raise InvalidArgument(
            f"family must be 'gaussian' for LinPHE, which fits a linear model, got {model.glm.name!r}. "
            "Use 'log_phe' for rewards of 0 and 1."
        )
    if not (len(reward_range) == 2 and all(map(is_number, reward_range)) and reward_range[0] < reward_range[1]):
        raise InvalidArgument(
            f"reward_range must be the smallest possible reward and a larger one, got {reward_range!r}. "
            "Give (0.0, 1.0), for example."
        )
    return perturbed_history(model, scale, *reward_range)._replace(families=FAMILIES)
