"""Measures of the subtle-bias studies."""
