"""Causal language models: answers, and likelihoods of continuations."""
