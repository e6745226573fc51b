"""Measures: pure functions of observations."""
