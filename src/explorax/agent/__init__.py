"""Agents for production: arms that come and go, late rewards, propensities, and state that survives a restart."""

from explorax.agent.agent import Agent
from explorax.agent.decisions import Decision, Decisions, Propensities
from explorax.agent.encoding import Encoder

__all__ = ["Agent", "Decision", "Decisions", "Encoder", "Propensities"]
