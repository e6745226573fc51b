"""Measures of CrowS-Pairs."""
