"""Measures of IndiCASA."""
