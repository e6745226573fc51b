"""Quantiles and tails of the normal and of Student's t distribution, as scipy.stats has them, without its import.

`scipy.special` holds the functions that `scipy.stats.norm` and `scipy.stats.t` call; importing it takes a fifth.
"""

from __future__ import annotations

from typing import Any

from scipy import special


def normal_cdf(x: Any) -> Any:
    """Return the probability of at most `x`."""
    return special.ndtr(x)


def normal_sf(x: Any) -> Any:
    """Return the probability of more than `x`."""
    return special.ndtr(-x)


def normal_ppf(p: Any) -> Any:
    """Return what lies above a share `p`."""
    return special.ndtri(p)


def normal_isf(p: Any) -> Any:
    """Return what lies below a share `p`."""
    return -special.ndtri(p)


def t_sf(x: Any, freedom: Any) -> Any:
    """Return the probability of more than `x` under Student's t."""
    return special.stdtr(freedom, -x)


def t_isf(p: Any, freedom: Any) -> Any:
    """Return what lies below a share `p` under Student's t."""
    return -special.stdtrit(freedom, p)
