"""A simulated model with a known, planted bias."""
