"""Every policy by name: what it is, and the module that builds it, imported when first asked for.

A new algorithm is one file in `policies/`, one line here, and one in `__init__.pyi` for editors and type checkers.  The
module has a function of its own name that builds the policy from keyword settings.  The package's builders
(`explorax.glm_tsl`), the command line, the contract tests and the tables in the docs read this list.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, wraps
from typing import TYPE_CHECKING, Any

from explorax.builders import documented, setting_names
from explorax.errors import InvalidArgument, UnknownName, check_names

if TYPE_CHECKING:  # JAX is imported when a policy is
    from explorax.policies.base import Policy

ENDING = """Returns:
    The policy.

Raises:
    InvalidArgument: If a setting is not in its range, or contradicts another.
    UnknownName: If there is no setting, family or option of that name; the error suggests the nearest."""
GLM_FAMILIES = ("bernoulli", "gaussian", "poisson")
KVETON = "Kveton et al., Randomized Exploration in Generalized Linear Bandits, AISTATS 2020"


@dataclass(frozen=True)
class Entry:
    """One policy."""

    name: str
    title: str  # as in its paper
    reference: str
    randomized: str  # "yes": decisions after the forced rounds depend on the key; "in training"; or "no"
    families: tuple[str, ...]  # reward families whose means it models; `Policy.families` says what it plays
    designs: tuple[str, ...]  # named presets for its exploration
    linear: bool  # scores are xᵀθ̃ for one θ̃, so the best arm of an infinite set can be found
    cost: str  # of a decision and a reward: K arms, d features, s steps, P weights, h last units, M networks, batch B
    knob: str = ""  # the setting that says how much it explores, where there is one
    grid: tuple[float, ...] = ()  # values of it to try beside the default

    def for_family(self, family: str) -> dict[str, str]:
        """The setting that makes it model rewards of this family; empty where it has none, or cannot."""
        return {"family": family} if family in self.families and "family" in setting_names(self.builder()) else {}

    def builder(self) -> Callable[..., "Policy"]:
        """Import the module of the policy, and return the function that builds it."""
        return builder_of(self.name)


@cache
def builder_of(name: str) -> Callable[..., "Policy"]:
    """Return the builder of a policy: that of its module, but the policy then knows how it was made."""
    bare: Callable[..., Policy] = getattr(importlib.import_module(f"explorax.policies.{name}"), name)
    known = setting_names(bare)

    @wraps(bare)
    def build(**settings: Any) -> "Policy":
        from explorax.policies.base import Recipe

        check_names(f"setting of {name}", settings, known)
        return bare(**settings)._replace(recipe=Recipe(name, settings))

    return documented(build, ENDING)


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
    """Return what is known of every policy, by name.

    Returns:
        An `Entry` for each: its title, reference, reward families, designs, cost, and the setting by which it explores.
    """
    return {entry.name: entry for entry in ENTRIES}


def entry_of(name: str) -> Entry:
    """Return the entry of a policy, by its name or as its paper spells it: "glm_tsl" or "GLM-TSL".

    Raises:
        UnknownName: If there is no such policy.
    """
    if not isinstance(name, str):
        raise InvalidArgument(f"name={name!r} must be the name of a policy, for example 'glm_tsl'")
    for entry in ENTRIES:
        if name.lower() in (entry.name, entry.title.lower()):
            return entry
    raise UnknownName("policy", name, list_policies())


def make(name: str, **settings: object) -> "Policy":
    """Build a policy by name, as `make("glm_tsl", scale=1.0)`.

    It is what `explorax.glm_tsl(scale=1.0)` builds, for names and settings that come from a file or a command line.

    Args:
        name: A name of `explorax.list_policies()`; the paper's spelling, "GLM-TSL", is understood too.
        **settings: What the builder of that name takes: `help(explorax.glm_tsl)` explains them.

    Returns:
        The policy.

    Raises:
        UnknownName: If there is no policy or setting of that name; the error suggests the nearest.
        InvalidArgument: If a setting is not in its range, or contradicts another.
    """
    return entry_of(name).builder()(**settings)


def plays(policy: "Policy", family: str | None) -> bool:
    """Whether a policy may be played on rewards of this family; None, of either, is for all."""
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
