"""Constructs: which rows of the studies measure one thing, for `prejudge lab converge`."""
