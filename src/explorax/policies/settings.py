"""The settings that policies share.  Each is written once: its type, its default and its meaning."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, TypedDict

from jax import Array

from explorax.builders import Setting
from explorax.checks import check_whole, is_number
from explorax.errors import InvalidArgument
from explorax.glm.families import Family
from explorax.glm.memory import Builder
from explorax.networks import Network

Loss = Callable[[Array, Array], Array]  # (scores, rewards) -> losses
MemoryName = Literal["exact", "constant", "refitted"]
WhenFull = Literal["error", "forget"]

Design = Annotated[
    Literal["informal", "theory"],
    Setting(
        "informal",
        'How much to explore if neither `scale` nor `width` is given: "informal", as in the experiments of papers, or '
        '"theory", as the analysis of the algorithm requires.',
    ),
]
RewardFamily = Annotated[
    str | Family,
    Setting(
        "bernoulli",
        'The reward family: "bernoulli" (rewards in [0, 1]), "gaussian" or "poisson", or a `Family` of your own.',
    ),
]
RewardNoise = Annotated[
    float | None,
    Setting(
        None,
        "How much to explore: the standard deviation a of the noise in a reward, above 0.",
        "the standard deviation of a reward (0.5 for rewards in [0, 1])",
    ),
]
Ridge = Annotated[
    float,
    Setting(
        1.0,
        "The ridge λ of the fit: the prior of θ is N(0, I/λ). It must be above 0; 0 is allowed in the Gaussian family.",
    ),
]
Warmup = Annotated[
    str,
    Setting(
        "basis",
        'The forced rounds at the start: "basis" pulls d arms that span the space, "first" the first d arms, "none" no '
        'arm; "theory" repeats the basis as often as the theorem requires (some GLM policies only).',
    ),
]
PlainWarmup = Annotated[
    str,
    Setting(
        "none",
        'The forced rounds at the start: "basis" pulls d arms that span the space, "first" the first d arms, "none" no '
        "arm.",
    ),
]
Horizon = Annotated[
    int | None, Setting(None, 'The number n of rounds, at least 1. Only design="theory" and warmup="theory" need it.')
]
Capacity = Annotated[int, Setting(10_000, "The number of rewards to keep if arms change, at least 1.")]
Full = Annotated[
    WhenFull, Setting("error", 'What to do when `capacity` rewards are kept: raise an "error", or "forget" the oldest.')
]
Discount = Annotated[
    float,
    Setting(
        1.0,
        "The factor γ in (0, 1] by which each new reward multiplies the weights of all earlier rewards. The ridge is "
        "not discounted: in directions that were not seen lately, the estimate returns to the prior.",
        "1.0, no discount",
    ),
]
Window = Annotated[
    int | None,
    Setting(
        None,
        "The number W of latest rewards that count. Give a window or a discount, not both.",
        "None, all rewards count",
    ),
]
Tolerance = Annotated[
    float | None, Setting(None, "The error of a score xᵀθ that a fit may leave, above 0.", "(precision of the dtype)^⅔")
]
NFeatures = Annotated[
    int | None,
    Setting(
        None, "The number d of dimensions that the arms span, if they span fewer than all.", "the length of an arm"
    ),
]

Delta = Annotated[
    float | None,
    Setting(
        None,
        "The probability δ in (0, 1) that the confidence interval may fail.",
        "1 / horizon if `horizon` is given, else 0.05",
    ),
]
Redraws = Annotated[
    bool,
    Setting(False, "Whether to keep the start of the last training, so that an agent can estimate propensities."),
]


class GLMSettings(TypedDict, total=False):
    """Settings that all GLM policies take.

    A window takes the place of `capacity` and `when_full`.  With a discount and changing arms, use when_full="forget":
    the weight of a reward that old is negligible.  The designs of the theory take neither discount nor window into
    account.
    """

    family: RewardFamily
    ridge: Ridge
    warmup: Warmup
    horizon: Horizon
    noise_std: Annotated[
        float | None, Setting(None, "The standard deviation σ of a reward, above 0.", "that of the family")
    ]
    min_slope: Annotated[
        float | None,
        Setting(
            None,
            'The smallest slope μ̇min of the mean in the design "theory".',
            "`max_slope`, as in the paper's experiments",
        ),
    ]
    max_slope: Annotated[
        float | None, Setting(None, 'The largest slope μ̇max of the mean in the design "theory".', "that of the family")
    ]
    memory: Annotated[
        MemoryName | Builder,
        Setting(
            "exact",
            'What to keep of the past: "exact" keeps all rewards; "constant" keeps a summary of constant size, for '
            'changing arms; "refitted" keeps a summary and now and then fits the estimate exactly to the rewards kept. '
            "A builder of a memory of your own is possible, too (`glm.memory`).",
        ),
    ]
    buffer: Annotated[
        int,
        Setting(
            0,
            'With memory="constant": the number of latest rewards to keep exactly, for an estimate closer to the exact '
            "one.",
        ),
    ]
    capacity: Capacity
    when_full: Full
    discount: Discount
    window: Window
    tolerance: Tolerance
    n_features: NFeatures


class OnlineSettings(TypedDict, total=False):
    """Settings that ECOLog-TS and ECOLog-OFU take."""

    family: RewardFamily
    ridge: Ridge
    warmup: Warmup
    discount: Discount
    n_features: NFeatures


class LinearSettings(TypedDict, total=False):
    """Settings that all linear policies take."""

    ridge: Annotated[float, Setting(1.0, "The ridge λ of the regression, above 0.")]
    noise_std: Annotated[float, Setting(1.0, "The standard deviation σ of a reward, above 0 (R in the papers).")]
    warmup: PlainWarmup
    horizon: Annotated[int | None, Setting(None, 'The number n of rounds. The design "theory" needs it or `delta`.')]
    delta: Annotated[
        float | None,
        Setting(None, "The probability δ in (0, 1) that a confidence interval of the theory may fail.", "1 / horizon"),
    ]
    discount: Discount
    window: Window


class DeepSettings(TypedDict, total=False):
    """Settings that all deep policies take."""

    hidden: Annotated[Sequence[int], Setting((50,), "The sizes of the hidden layers.")]
    activation: Annotated[
        str,
        Setting("relu", 'The activation function of the hidden layers: "relu", "tanh", "sigmoid", "elu" or "gelu".'),
    ]
    network: Annotated[Network | None, Setting(None, "A `Network` that replaces `hidden` and `activation`.")]
    learning_rate: Annotated[float | None, Setting(None, "The learning rate of Adam, above 0.", "0.001")]
    optimizer: Annotated[
        Any, Setting(None, "An optimizer of optax that replaces Adam, for example `optax.sgd(0.1)`.", "None, Adam")
    ]
    batch: Annotated[int, Setting(32, "The number of examples in a mini-batch.")]
    steps: Annotated[int, Setting(1, "The number of training steps after each reward.")]
    replay: Annotated[
        Literal["recent", "uniform"],
        Setting(
            "recent",
            'The examples in a mini-batch: the most "recent" ones, or a "uniform" draw from all that are kept.',
        ),
    ]
    capacity: Annotated[
        int,
        Setting(
            10_000, "The number of examples to keep for uniform replay. The oldest are forgotten when there are more."
        ),
    ]
    family: RewardFamily
    loss: Annotated[
        Loss | None,
        Setting(None, "A function (scores, rewards) -> losses.", "the negative log-likelihood of the family"),
    ]


def check_forgetting(discount: object, window: object) -> None:
    """Raise `InvalidArgument` if a discount or a window is out of its range, or if both are given."""
    if not (isinstance(discount, int | float) and is_number(discount) and 0 < discount <= 1):
        raise InvalidArgument(
            f"discount must be a number above 0 and at most 1, got {discount!r}. 0.999 remembers about 1000 rewards, "
            "1 remembers all."
        )
    if window is not None:
        check_whole("window", window, 1)
        if discount < 1:
            raise InvalidArgument(
                f"discount must be 1 with a window, got {discount!r} with window={window!r}. Give only one of the two."
            )
