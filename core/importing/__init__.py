"""Answers that were collected elsewhere, matched with the trials of a study."""
