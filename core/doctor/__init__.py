"""Checks before money is spent: of a model, and of the installation."""
