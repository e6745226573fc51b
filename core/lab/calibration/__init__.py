"""Calibration: a study over models whose bias is known, and the certificate of what it finds in them."""
