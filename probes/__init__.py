"""Instruments: one file per study, word lists and templates as data files beside them."""
