"""Measures that a study declares in its file, without code."""
