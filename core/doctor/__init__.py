"""Checks of a model and of the installation before a run."""
