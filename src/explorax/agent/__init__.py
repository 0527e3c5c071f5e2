"""Agents for production: arms that come and go, late rewards, propensities, and state that survives a restart."""

from explorax.agent.agent import Agent
from explorax.agent.decisions import Decision, Decisions, Explanation, Propensities
from explorax.agent.encoding import Encoder
from explorax.agent.warm_start import Prior

__all__ = ["Agent", "Decision", "Decisions", "Encoder", "Explanation", "Prior", "Propensities"]
