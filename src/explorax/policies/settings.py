"""The settings that policies share, each written once: its type, its default and what it means."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, TypedDict

from jax import Array

from explorax.builders import Setting
from explorax.glm.families import Family
from explorax.glm.memory import Builder
from explorax.networks import Network

Loss = Callable[[Array, Array], Array]  # (scores, rewards) -> loss of each
MemoryName = Literal["exact", "constant", "refitted"]
WhenFull = Literal["error", "forget"]

Design = Annotated[
    Literal["informal", "theory"],
    Setting(
        "informal",
        'How much to explore unless that is given: "informal", as people run the algorithm, or "theory", as its '
        "analysis asks for.",
    ),
]
RewardFamily = Annotated[
    str | Family,
    Setting(
        "bernoulli",
        'The family of the rewards: "bernoulli" (in [0, 1]), "gaussian" or "poisson".',
        "'bernoulli'; LinPHE: 'gaussian'",
    ),
]
Ridge = Annotated[float, Setting(1.0, "λ of the fit, an N(0, I/λ) prior; 0 only in the Gaussian family.")]
Warmup = Annotated[
    str, Setting("basis", 'Forced rounds first: "basis", "first", or "none"; GLM policies also know "theory".')
]
Horizon = Annotated[int | None, Setting(None, "n, the number of rounds; only the theory's designs need it.")]
Capacity = Annotated[int, Setting(10_000, "Rewards kept when arms change.")]
Full = Annotated[WhenFull, Setting("error", 'Then raise an "error", or "forget" the oldest.')]
Discount = Annotated[
    float,
    Setting(
        1.0,
        "γ: with each reward every earlier one weighs γ times what it did.  The ridge stays as it is: where nothing "
        "was seen lately, a policy falls back to the prior.",
        "1.0, no discount",
    ),
]
Window = Annotated[
    int | None, Setting(None, "W: only the last W rewards count; give it or a discount.", "None, all count")
]
Tolerance = Annotated[
    float | None, Setting(None, "Error of a score xᵀθ that a fit may leave.", "(precision of the dtype)^⅔")
]
NFeatures = Annotated[
    int | None,
    Setting(None, "d, the dimensions that the arms span, where these are fewer.", "the length of an arm"),
]


class GLMSettings(TypedDict, total=False):
    """Settings that all GLM policies take.

    A window takes the place of `capacity` and `when_full`; with a discount and arms that change, when_full="forget" is
    right, since what is that old weighs nothing.  The theory's designs know of neither discount nor window.
    """

    family: RewardFamily
    ridge: Ridge
    warmup: Warmup
    horizon: Horizon
    noise_std: Annotated[float | None, Setting(None, "σ of the rewards.", "the family's")]
    min_slope: Annotated[
        float | None, Setting(None, "μ̇min in the theory's designs.", "max_slope, as in the paper's experiments")
    ]
    max_slope: Annotated[float | None, Setting(None, "μ̇max in the theory's designs.", "the family's")]
    memory: Annotated[
        MemoryName | Builder,
        Setting(
            "exact",
            'What is kept of the past: "exact", all rewards; "constant", a summary, for arms that change; "refitted", '
            "that, and now and then an exact fit to the rewards kept; or a builder of your own (`glm.memory`).",
        ),
    ]
    buffer: Annotated[
        int,
        Setting(
            0,
            'With memory="constant": how many of the last rewards are kept as they are, for an estimate nearer to the '
            "exact one.",
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

    ridge: Annotated[float, Setting(1.0, "λ of the regression.")]
    noise_std: Annotated[float, Setting(1.0, "σ of the rewards (R in the papers).")]
    warmup: Annotated[str, Setting("none", 'Forced rounds first: "basis", "first" or "none".')]
    horizon: Annotated[int | None, Setting(None, "n, the number of rounds; the theory's designs need it or `delta`.")]
    delta: Annotated[float | None, Setting(None, "The chance that the theory's confidence may fail.", "1 / horizon")]
    discount: Discount
    window: Window


class DeepSettings(TypedDict, total=False):
    """Settings that all deep policies take."""

    hidden: Annotated[Sequence[int], Setting((50,), "Sizes of the hidden layers.")]
    activation: Annotated[str, Setting("relu", 'Of the hidden layers: "relu", "tanh", …')]
    network: Annotated[Network | None, Setting(None, "A `Network(init, apply)` in place of these two.")]
    learning_rate: Annotated[float | None, Setting(None, "Of Adam.", "0.001")]
    optimizer: Annotated[Any, Setting(None, "An optax optimizer in place of Adam.")]
    batch: Annotated[int, Setting(32, "Examples in a mini-batch.")]
    steps: Annotated[int, Setting(1, "Training steps for each reward.", "1; NPR: 10")]
    replay: Annotated[
        Literal["recent", "uniform"],
        Setting(
            "recent",
            'Mini-batches of the "recent" examples, or "uniform" ones over all that are kept.',
            "'recent'; NPR: 'uniform'",
        ),
    ]
    capacity: Annotated[
        int, Setting(10_000, "Examples kept for uniform replay; when there are more, the oldest are forgotten.")
    ]
    family: RewardFamily
    loss: Annotated[Loss | None, Setting(None, "(scores, rewards) -> losses in place of the family's.")]
