"""What a design can show: power, and the smallest effect it would find, before anything is asked.

A test of a mean is a t test with C - 1 degrees of freedom for C clusters, and its power is that of the noncentral t
distribution; a test of k groups is an F test, and its power that of the noncentral F. `_power_designs` and
`_power_crossed` have the designs.
"""

from __future__ import annotations

import math
from functools import lru_cache

from scipy import optimize

from ..contracts.errors import UsageError
from .power_crossed import CrossedDesign
from .power_designs import Design, GroupsDesign, RankDesign
from .scipy_stats import stats

__all__ = [
    "AnyDesign",
    "CrossedDesign",
    "Design",
    "GroupsDesign",
    "RankDesign",
    "discordance_spread",
    "minimum_detectable_effect",
    "power",
    "proportion_spread",
]

STRONGEST = 1 - 1e-9
"""Nearly the strongest effect of ranks there is."""
AnyDesign = Design | CrossedDesign | RankDesign | GroupsDesign


def proportion_spread(share: float) -> float:
    """Return the standard deviation of a yes-no answer."""
    return math.sqrt(share * (1 - share))


def discordance_spread(discordant: float) -> float:
    """Return the standard deviation of paired yes-no differences of mean 0, from the share of pairs that differ."""
    return math.sqrt(discordant)


def power(effect: float, design: AnyDesign, alpha: float = 0.05) -> float:
    """Return the chance that a test at `alpha`, two-sided where there are sides, finds a true `effect`.

    The effect is in the units of the spread; of a `RankDesign` it is a rank-biserial correlation or Cliff's delta, of
    a `GroupsDesign` Cohen's f.
    """
    if isinstance(design, GroupsDesign):
        return _power_of_f(design.freedom, design.noncentrality(effect), alpha)
    if isinstance(design, RankDesign):
        return _power_of_ranks(design, min(abs(effect), 1.0), alpha)
    return _power_of_t(design.freedom, abs(effect) / design.standard_error, alpha)


def minimum_detectable_effect(design: AnyDesign, alpha: float = 0.05, wanted: float = 0.8) -> float:
    """Return the least true effect that a test at `alpha` finds with probability `wanted`.

    Infinite where ranks of so few answers find no effect, however large.

    Raises:
        UsageError: the power wanted is none, or below alpha.
    """
    if not alpha < wanted < 1:
        raise UsageError(f"power is {wanted}. Give a number between alpha ({alpha}) and 1.", code="options.value")
    if isinstance(design, GroupsDesign):
        return math.sqrt(_least_noncentrality(design.freedom, alpha, wanted) / design.noncentrality(1.0))
    if isinstance(design, RankDesign):
        return _least_of_ranks(design, alpha, wanted)
    return _least_shift(design.freedom, alpha, wanted) * design.standard_error


def _power_of_t(freedom: float, shift: float, alpha: float) -> float:
    critical = stats.t.isf(alpha / 2, freedom)
    # The far tail underflows to NaN in scipy where it is nothing.
    far = stats.nct.cdf(-critical, freedom, shift) if shift < 5 else 0.0
    return float(stats.nct.sf(critical, freedom, shift) + far)


def _power_of_ranks(design: RankDesign, effect: float, alpha: float) -> float:
    needed = stats.t.isf(alpha / 2, design.freedom) * design.standard_error
    found, error = design.found_at(effect), design.standard_error_at(effect)
    if error == 0:
        return float(found > needed)
    return float(stats.norm.sf((needed - found) / error) + stats.norm.sf((needed + found) / error))


def _power_of_f(freedom: tuple[int, int], noncentrality: float, alpha: float) -> float:
    critical = stats.f.isf(alpha, *freedom)
    return float(stats.ncf.sf(critical, *freedom, noncentrality)) if noncentrality else alpha


@lru_cache(maxsize=4096)
def _least_shift(freedom: float, alpha: float, wanted: float) -> float:
    """Return the least effect in standard errors; many measures of a study have the same freedom."""
    top = stats.t.isf(alpha / 2, freedom) + 2 * stats.t.isf((1 - wanted) / 2, freedom)
    return float(optimize.brentq(lambda shift: _power_of_t(freedom, shift, alpha) - wanted, 0, top))


@lru_cache(maxsize=4096)
def _least_of_ranks(design: RankDesign, alpha: float, wanted: float) -> float:
    if _power_of_ranks(design, STRONGEST, alpha) < wanted:
        return math.inf
    return float(optimize.brentq(lambda effect: _power_of_ranks(design, effect, alpha) - wanted, 0, STRONGEST))


@lru_cache(maxsize=4096)
def _least_noncentrality(freedom: tuple[int, int], alpha: float, wanted: float) -> float:
    top = 1.0
    while _power_of_f(freedom, top, alpha) < wanted:
        top *= 2
    return float(optimize.brentq(lambda shift: _power_of_f(freedom, shift, alpha) - wanted, 0, top))
