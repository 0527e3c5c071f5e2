"""Deciding for real: an agent with arms that come and go, late rewards, propensities, and state that survives."""

from explorax.agent.agent import Agent, Propensities
from explorax.agent.decisions import Decision, Decisions
from explorax.agent.encoding import Encoder

__all__ = ["Agent", "Decision", "Decisions", "Encoder", "Propensities"]
