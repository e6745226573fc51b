"""Pictures from outside: one normaliser, so that all models see the same pixels, and one check of blank ones.

A picture of 8-bit RGB without transparency, turn, frames or another colour space than sRGB passes unchanged, under the
sha256 of its bytes. Any other is named by the sha256 of the original, the version of the normaliser and the background
colour (`names.py`); it is converted once (`normalise.py`), stored, and sent from there to every adapter.
"""
