"""Sentence encoders: a vector per text."""
