"""Sequence classifiers: a probability per label."""
