"""Measures of the dora studies."""
