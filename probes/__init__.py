"""Probes: one folder per study, with its word lists and templates as data files."""
