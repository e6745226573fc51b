"""What the estimates of a run average over without being a sample of it: the fixed factors of the design, in words."""

from __future__ import annotations

from collections.abc import Iterable

from ..contracts.estimates import Estimate
from ..contracts.words import listed
from ..design import Roles
from ..design.record import Declared
from ..statistics.facets import FIXED, OVER

NUMBERS = ("", "", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
"""Numbers as sentences have them."""


def with_fixed(estimates: Iterable[Estimate], design: Roles | None, columns: frozenset[str]) -> list[Estimate]:
    """Return estimates with the fact that names what their conclusions hold for alone, such as `in these four forms`.

    These are the fixed factors that an estimate averages over: not those of its own group, nor those that tell the
    compared groups apart, nor those whose levels the sampled ones bring with them, nor what is not among the `columns`
    of the observations.
    """
    if design is None:
        return list(estimates)
    fixed = [factor for factor in _averaged(design) if factor.name in columns]
    return [
        e.replace(facts=e.facts | {FIXED: words}) if OVER in e.facts and (words := _words(fixed, e)) else e
        for e in estimates
    ]


def _averaged(design: Roles) -> list[Declared]:
    """Return the fixed factors that tell no groups apart, and that no sampled level brings with it."""
    roles = design.of()
    nesting = {factor.name: factor.nested_in for factor in design.declared}
    brought = {name for facet in design.facets() if not facet.nested_in for name in nesting[facet.name]}
    return [
        factor
        for factor in design.declared
        if factor.role == "fixed" and factor.levels > 1 and factor.name not in brought
        if "group" not in [roles[name] for name in factor.nested_in]
    ]


def _words(fixed: Iterable[Declared], e: Estimate) -> str:
    averaged = [factor for factor in fixed if factor.name not in e.group]
    counted = [
        f"{_number(factor.levels)} {factor.name.replace('_', ' ').removesuffix('s')}s"
        for factor in averaged
        if not factor.nested_in
    ]
    # How many levels there are depends on what they lie within.
    within = [f"{factor.name.replace('_', ' ').removesuffix('s')}s" for factor in averaged if factor.nested_in]
    clauses = [f"in these {listed(counted)}"] * bool(counted) + [f"with these {listed(within)}"] * bool(within)
    return ", ".join(clauses)


def _number(count: int) -> str:
    return NUMBERS[count] if count < len(NUMBERS) else f"{count:,}"
