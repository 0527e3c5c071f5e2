"""LogPHE: perturbed-history exploration in a logistic model.

    M_x = ⌈a N_x⌉,  U_x ~ Bin(M_x, ½) fresh in every round
    θ̃ = ridge maximum-likelihood estimate on rewards with counts N_x + M_x and sums Y_x + U_x,    pull argmax_i x_iᵀθ̃

Coin flips among the rewards make the estimate noisy, less and less as rewards come.  They also pull a mean μ to
(μ + a/2) / (1 + a), which leaves arms in their order, and keeps the estimate finite where that on the rewards alone is
not.

    a   `scale`   0.5, the value in public code of RandUCB's experiments; others have 1 and 2, and the more the
                  further the estimate is pulled.  `explorax arena` tries several
    λ   `ridge`   of the fit to rewards and pseudo-rewards it is (1 + a) λ, as in LinPHE: it keeps its share

The paper has no ridge here, as far as we could find out; its bound is for LinPHE, and there is no design="theory".
`pseudo_rewards` says what happens where arms change or the past is discounted; memory="exact" only.

Reference: Kveton, Szepesvári, Ghavamzadeh & Boutilier, Perturbed-History Exploration in Stochastic Linear Bandits,
UAI 2019.
"""

from typing import Unpack

from explorax.errors import InvalidArgument
from explorax.policies.base import Policy
from explorax.policies.glm_model import GLMModel
from explorax.policies.pseudo_rewards import perturbed_history
from explorax.policies.settings import GLMSettings


def log_phe(*, scale: float = 0.5, **settings: Unpack[GLMSettings]) -> Policy:
    """Build LogPHE."""
    model = GLMModel(**settings)
    if model.glm.name != "bernoulli":
        raise InvalidArgument(
            f"family={model.glm.name!r}: the coin flips of LogPHE are rewards of 0 and 1: use family='bernoulli', or "
            "'glm_fpl', which perturbs rewards of every family"
        )
    return perturbed_history(model, scale)
