"""Measures of the attractiveness study."""
