"""Generalized linear models: reward families, what is remembered of the past, and the fit."""
