"""Measures for any study: contrasts, paired differences, ranks."""
