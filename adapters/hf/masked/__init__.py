"""Masked language models: pseudo-log-likelihoods and vectors."""
