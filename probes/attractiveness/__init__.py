"""Attractiveness: a beauty filter and the judgements of a vision-language model."""
