"""The registry of policies: what each policy is, and the module that builds it, which is imported when it is needed.

To add an algorithm, add a file to `policies/`, a line to this list, and a line to `__init__.pyi`, which editors and
type checkers read.  The file has a function of the same name that builds the policy from keyword settings.  The
builders of the package (`explorax.glm_tsl`), the command line, the contract tests and the tables in the docs all read
this list.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache, wraps
from typing import TYPE_CHECKING, Any

from explorax.builders import documented, setting_names
from explorax.errors import InvalidArgument, UnknownName, check_names

if TYPE_CHECKING:  # JAX is imported when a policy is
    from explorax.policies.base import Policy

ENDING = """Returns:
    The policy, a `Policy` with the functions `init`, `act` and `update`.

Raises:
    InvalidArgument: If a setting is out of its range or contradicts another setting.
    UnknownName: If a setting, or the name that is given for one, is unknown.  The error suggests the nearest name.

Example:
    >>> import explorax
    >>> policy = explorax.{call}
    >>> policy.recipe
    {recipe}"""
GLM_FAMILIES = ("bernoulli", "gaussian", "poisson")
KVETON = "Kveton et al., Randomized Exploration in Generalized Linear Bandits, AISTATS 2020"


@dataclass(frozen=True)
class Entry:
    """The registry's entry for one policy.

    Attributes:
        name: The name of the builder, for example "glm_tsl".
        title: The name of the algorithm as its paper spells it, for example "GLM-TSL".
        reference: The paper.
        randomized: "yes" if decisions after the forced rounds depend on the key, "in training" if only training is
            random, otherwise "no".
        families: The reward families whose means the policy can model.  `Policy.families` lists those it may be played
            on.
        designs: The names of the presets for its exploration.
        linear: Whether scores are xᵀθ̃ for one θ̃, so that the best arm of an infinite set can be found.
        cost: The cost of one decision and one reward, with K arms, d features, s steps, P weights, h units in the last
            hidden layer, M networks and batches of B.
        knob: The setting that controls how much the policy explores; empty if there is no such setting.
        grid: Values of that setting to try beside the default.
    """

    name: str
    title: str
    reference: str
    randomized: str
    families: tuple[str, ...]
    designs: tuple[str, ...]
    linear: bool
    cost: str
    knob: str = ""
    grid: tuple[float, ...] = ()

    def for_family(self, family: str) -> dict[str, str]:
        """Return the setting with which the policy models rewards of a family.

        Args:
            family: The name of a reward family, for example "poisson".

        Returns:
            `{"family": family}`; empty if the policy has no such setting or cannot model the family.
        """
        return {"family": family} if family in self.families and "family" in setting_names(self.builder()) else {}

    def builder(self) -> Callable[..., "Policy"]:
        """Import the module of the policy and return its builder.

        Returns:
            The function that builds the policy, for example `explorax.glm_tsl`.
        """
        return builder_of(self.name)


@cache
def builder_of(name: str) -> Callable[..., "Policy"]:
    """Return the builder of a policy by name; the policies it builds have a recipe, and share functions if equal."""
    bare: Callable[..., Policy] = getattr(importlib.import_module(f"explorax.policies.{name}"), name)
    known, shared = setting_names(bare), lru_cache(maxsize=64, typed=True)(bare)

    @wraps(bare)
    def build(**settings: Any) -> "Policy":
        from explorax.policies.base import Recipe

        check_names(f"setting of {name}", settings, known)
        # Equal settings give the same functions, so that programs compiled for one policy serve them all.
        plain = all(value is None or isinstance(value, str | int | float) for value in settings.values())
        return (shared if plain else bare)(**settings)._replace(recipe=Recipe(name, settings))

    knob = next({entry.knob: entry.grid[-1]} if entry.knob else {} for entry in ENTRIES if entry.name == name)
    call = f"{name}({', '.join(f'{setting}={value}' for setting, value in knob.items())})"
    return documented(build, ENDING.format(call=call, recipe=f"Recipe(name={name!r}, settings={knob})"))


BOTH = ("informal", "theory")
NEWTON = "O(s (K d² + d³))"
NETWORK = "O((K + s B) P)"
NETWORK_H2, NETWORK_H3 = "O((K + s B) P + h²)", "O((K + s B) P + h³)"
NETWORKS = "O((K + M s B) P)"
FILIPPI = "Filippi et al., Parametric Bandits: The Generalized Linear Case, NeurIPS 2010"
LI = "Li, Lu & Zhou, Provably Optimal Algorithms for Generalized Linear Contextual Bandits, ICML 2017"
AGRAWAL = "Agrawal & Goyal, Thompson Sampling for Contextual Bandits with Linear Payoffs, ICML 2013"
ABBASI = "Abbasi-Yadkori, Pál & Szepesvári, Improved Algorithms for Linear Stochastic Bandits, NeurIPS 2011"
SUTTON = "Sutton & Barto, Reinforcement Learning: An Introduction, 1998"
RIQUELME = "Riquelme, Tucker & Snoek, Deep Bayesian Bandits Showdown, ICLR 2018"
FAURY = "Faury et al., Jointly Efficient and Optimal Algorithms for Logistic Bandits, AISTATS 2022"
JUN = "Jun et al., Scalable Generalized Linear Bandits: Online Computation and Hashing, NeurIPS 2017"
DING = "Ding, Hsieh & Sharpnack, An Efficient Algorithm for Generalized Linear Bandit, AISTATS 2021"
LEE = "Lee, Yun & Jun, A Unified Confidence Sequence for Generalized Linear Models, NeurIPS 2024"
LU = "Lu & Van Roy, Ensemble Sampling, NeurIPS 2017"
ZHOU = "Zhou, Li & Gu, Neural Contextual Bandits with UCB-based Exploration, ICML 2020"
ZHANG = "Zhang, Zhou, Li & Gu, Neural Thompson Sampling, ICLR 2021"
JIA = "Jia et al., Learning Neural Contextual Bandits through Perturbed Rewards, ICLR 2022"
JANZ = "Janz et al., Exploration via linearly perturbed loss minimisation, AISTATS 2024"
VASWANI = "Vaswani et al., Old Dog Learns New Tricks: Randomized UCB for Bandit Problems, AISTATS 2020"
PHE = "Kveton et al., Perturbed-History Exploration in Stochastic Linear Bandits, UAI 2019"
DUMITRASCU = "Dumitrascu et al., PG-TS: Improved Thompson Sampling for Logistic Contextual Bandits, NeurIPS 2018"

ENTRIES = (
    Entry("glm_tsl", "GLM-TSL", KVETON, "yes", GLM_FAMILIES, BOTH, True, NEWTON, "scale", (0.25, 0.5, 2.0)),
    Entry("glm_fpl", "GLM-FPL", KVETON, "yes", GLM_FAMILIES, BOTH, True, NEWTON, "scale", (0.125, 0.25, 1.0)),
    Entry("glm_ucb", "GLM-UCB", FILIPPI, "no", GLM_FAMILIES, BOTH, False, NEWTON, "width", (0.05, 0.15, 1.5)),
    Entry("ucb_glm", "UCB-GLM", LI, "no", GLM_FAMILIES, BOTH, False, NEWTON, "width", (0.25, 1.0, 2.0)),
    Entry("evill", "EVILL", JANZ, "yes", GLM_FAMILIES, (), True, NEWTON, "scale", (0.25, 0.5, 2.0)),
    Entry("rand_ucb", "RandUCB", VASWANI, "yes", GLM_FAMILIES, BOTH, False, NEWTON, "width", (4.0, 8.0, 32.0)),
    Entry("log_phe", "LogPHE", PHE, "yes", ("bernoulli",), (), True, NEWTON, "scale", (0.125, 0.25, 1.0)),
    Entry("pg_ts", "PG-TS", DUMITRASCU, "yes", ("bernoulli",), (), True, NEWTON, "scale", (0.25, 0.5, 2.0)),
    Entry("glm_ensemble", "Ensemble sampling", LU, "yes", GLM_FAMILIES, (), True, NEWTON, "scale", (0.125, 0.25, 1.0)),
    Entry("ofuglb_e", "OFUGLB-e", LEE, "no", ("bernoulli",), (), False, NEWTON, "scale", (0.01, 0.03, 0.1)),
    Entry("ecolog_ts", "ECOLog-TS", FAURY, "yes", GLM_FAMILIES, (), True, "O(K d + d²)", "scale", (0.25, 0.5, 2.0)),
    Entry("ecolog_ofu", "ECOLog-OFU", FAURY, "no", GLM_FAMILIES, (), False, "O(K d²)", "width", (0.25, 0.5, 2.0)),
    Entry("gloc", "GLOC", JUN, "no", ("bernoulli", "gaussian"), (), False, "O(K d² + d³)", "scale", (0.003, 0.01, 0.1)),
    Entry("sgd_ts", "SGD-TS", DING, "yes", GLM_FAMILIES, (), True, "O(K d)", "scale", (0.25, 0.5, 2.0)),
    Entry("lin_ts", "LinTS", AGRAWAL, "yes", ("gaussian",), BOTH, True, "O(K d + d³)", "scale", (0.1, 0.25, 0.5)),
    Entry("lin_ucb", "LinUCB", ABBASI, "no", ("gaussian",), BOTH, False, "O(K d² + d³)", "width", (0.1, 0.25, 0.5)),
    Entry("lin_phe", "LinPHE", PHE, "yes", ("gaussian",), (), True, NEWTON, "scale", (0.125, 0.25, 1.0)),
    Entry("deep_fpl", "DeepFPL", KVETON, "in training", GLM_FAMILIES, (), False, NETWORK, "scale", (0.1, 0.25, 0.5)),
    Entry("deep_fl", "DeepFL", f"{KVETON} (scale a = 0)", "no", GLM_FAMILIES, (), False, NETWORK),
    Entry("rep_glm_fpl", "repGLM-FPL", KVETON, "yes", GLM_FAMILIES, (), False, NETWORK_H2, "scale", (0.125, 0.25, 1.0)),
    Entry(
        "neural_linear", "NeuralLinear", RIQUELME, "yes", GLM_FAMILIES, (), False, NETWORK_H3, "scale", (0.1, 0.2, 1.0)
    ),
    Entry("deep_ensemble", "Deep ensemble", LU, "yes", GLM_FAMILIES, (), False, NETWORKS, "scale", (0.125, 0.25, 1.0)),
    Entry("neural_ucb", "NeuralUCB", ZHOU, "no", GLM_FAMILIES, (), False, NETWORK, "width", (0.01, 0.03, 0.3)),
    Entry("neural_ts", "NeuralTS", ZHANG, "yes", GLM_FAMILIES, (), False, NETWORK, "scale", (0.01, 0.03, 0.3)),
    Entry("neural_pr", "NPR", JIA, "in training", GLM_FAMILIES, (), False, NETWORK, "scale", (0.1, 0.25, 0.5)),
    Entry("greedy", "Greedy", f"{KVETON} (scale a = 0)", "no", GLM_FAMILIES, (), True, NEWTON),
    Entry("epsilon_greedy", "ε-greedy", SUTTON, "yes", GLM_FAMILIES, (), False, NEWTON, "epsilon", (0.01, 0.03, 0.2)),
    Entry("uniform", "Uniform", "none: what every policy should beat", "yes", GLM_FAMILIES, (), False, "O(K)"),
)


def list_policies() -> dict[str, Entry]:
    """Return the registry's entries of all policies, by name.

    Returns:
        An `Entry` for each policy: its title, reference, reward families, designs, cost, and the setting that controls
        how much it explores.

    Example:
        >>> import explorax
        >>> explorax.list_policies()["glm_tsl"].families
        ('bernoulli', 'gaussian', 'poisson')
    """
    return {entry.name: entry for entry in ENTRIES}


def entry_of(name: str) -> Entry:
    """Return the entry of a policy, by the name of its builder or its title: "glm_tsl" or "GLM-TSL".

    Args:
        name: The name, in capital or small letters.

    Returns:
        The entry.

    Raises:
        InvalidArgument: If the name is not a string.
        UnknownName: If there is no such policy.
    """
    if not isinstance(name, str):
        raise InvalidArgument(f"name must be the name of a policy, got {name!r}. Give 'glm_tsl', for example.")
    for entry in ENTRIES:
        if name.lower() in (entry.name, entry.title.lower()):
            return entry
    raise UnknownName("policy", name, list_policies())


def make(name: str, **settings: object) -> "Policy":
    """Build a policy by name.

    `make("glm_tsl", scale=1.0)` builds the same policy as `explorax.glm_tsl(scale=1.0)`.  Use it for names and settings
    that come from a file or a command line.

    Args:
        name: A name in `explorax.list_policies()`, or a title such as "GLM-TSL".
        **settings: The settings of that policy's builder, which `help(explorax.glm_tsl)` explains.

    Returns:
        The policy.

    Raises:
        InvalidArgument: If a setting is out of its range or contradicts another setting.
        UnknownName: If there is no policy or setting of that name.  The error suggests the nearest name.

    Example:
        >>> import explorax
        >>> explorax.make("GLM-TSL", scale=2.0).recipe
        Recipe(name='glm_tsl', settings={'scale': 2.0})
    """
    return entry_of(name).builder()(**settings)


def plays(policy: "Policy", family: str | None) -> bool:
    """Return whether a policy may be played on rewards of a family; a family of None matches all policies."""
    return family is None or policy.families is None or family in policy.families


def check_family(policy: "Policy", family: str | None, name: str = "policy") -> None:
    """Raise unless a policy may be played on rewards of this family; `name` is what the message calls it.

    Raises:
        InvalidArgument: The policy models another family, and is no baseline that is played on this one all the same.
    """
    if plays(policy, family):
        return
    assert policy.families is not None
    assert family is not None
    entry = None if policy.recipe is None else entry_of(policy.recipe.name)
    if entry is None:
        remedy = f"Build it with family={family!r} if it takes that, or choose another"
    elif entry.for_family(family):
        remedy = f"Build it with family={family!r}"
    else:
        remedy = "Choose another, such as glm_tsl: `explorax policies` lists the families that each models"
    raise InvalidArgument(
        f"{name} must model {family} rewards, which the environment pays, got "
        f"{'one' if entry is None else entry.name} for {policy.families[0]} rewards. {remedy}."
    )
