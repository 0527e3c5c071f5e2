"""Generalized linear models: reward families, records of the past, and fits."""
