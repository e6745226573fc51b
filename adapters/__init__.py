"""Backends: one file per way to reach a model."""
