"""LogPHE: perturbed-history exploration in a logistic model.

In each round coin flips are added to the rewards, and the best arm of a fit to both is pulled:

    M_x = ⌈a N_x⌉,  U_x ~ Bin(M_x, ½) fresh in every round
    θ̃ = ridge maximum-likelihood estimate on rewards with counts N_x + M_x and sums Y_x + U_x,    pull argmax_i x_iᵀθ̃

    a   `scale`   default: 0.5, the value in public code of RandUCB's experiments; others use 1 and 2
    λ   `ridge`   the fit to rewards and pseudo-rewards has the ridge (1 + a) λ, as in LinPHE, so that its share stays

The coin flips make the estimate noisy, and less so as rewards come.  They also pull a mean μ to (μ + a/2) / (1 + a),
which leaves arms in their order, and keep the estimate finite if that on the rewards alone is not.  The larger a is,
the more the estimate is pulled; `explorax arena` tries several values.

As far as we could find out, the paper has no ridge here.  Its regret bound is for LinPHE, so there is no
design="theory".  `pseudo_rewards` explains changing arms and discounts.  The policy needs memory="exact".

Reference: Kveton, Szepesvári, Ghavamzadeh & Boutilier, Perturbed-History Exploration in Stochastic Linear Bandits,
UAI 2019.
"""

from typing import Annotated, Unpack

from explorax.errors import InvalidArgument
from explorax.policies.base import Policy
from explorax.policies.glm_model import GLMModel
from explorax.policies.pseudo_rewards import perturbed_history
from explorax.policies.settings import GLMSettings


def log_phe(
    *,
    scale: Annotated[float, "How much to explore: the number a of pseudo-rewards for each reward, above 0."] = 0.5,
    **settings: Unpack[GLMSettings],
) -> Policy:
    """Build LogPHE, which fits a logistic model to rewards and coin flips."""
    model = GLMModel(**settings)
    if model.glm.name != "bernoulli":
        raise InvalidArgument(
            f"family must be 'bernoulli' for LogPHE, whose coin flips are rewards of 0 and 1, got {model.glm.name!r}. "
            "Use 'glm_fpl', which perturbs rewards of every family."
        )
    return perturbed_history(model, scale)
