"""Measures of the BIStereo studies."""
