"""Answers that somebody else collected, matched with the trials of a study."""
