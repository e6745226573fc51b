"""Measures that serve any study: contrasts, paired differences, ranks, smallest effects."""
