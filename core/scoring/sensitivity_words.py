"""Smallest effects in lines, as the command line prints them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..contracts.estimates import Estimate
from ..contracts.words import NEEDED, TIMES, TWICE, explained, percent

LINES = 4
"""Lines per measure and test, at most; more kinds of groups than that share one."""


def heading(power: float, levels: Mapping[str, float]) -> str:
    """Return the heading of the lines; `levels` has the level of each metric's tests."""
    kinds = set(levels.values())
    tests = ", ".join(percent(level) + (f" ({name})" if len(kinds) > 1 else "") for name, level in levels.items())
    if len(kinds) == 1:
        tests = percent(kinds.pop())
    return f"Smallest effect this design can detect ({percent(power)} power, tests at {tests}, not corrected):"


def in_lines(effects: list[Estimate]) -> Iterator[str]:
    """Yield one line per measure and test: the range of its smallest effects over groups, and what they rest on.

    Where these are a few kinds, each has a line of its own; else the whole study has, and its groups by their factors.
    """
    for measure, test in dict.fromkeys((e.metric, e.test.name) for e in effects):
        mine = [e for e in effects if (e.metric, e.test.name) == (measure, test)]
        defined = [e for e in mine if e.value is not None]
        if not defined:
            yield f"{measure}: {explained(mine[0])}"
            continue
        undefined = len(mine) - len(defined)
        some = f"; {undefined} of {len(mine)} undefined" if undefined else ""
        few = len({_basis(e) for e in defined}) <= LINES
        parts: dict[Any, list[Estimate]] = {}
        for e in defined:
            parts.setdefault(_basis(e) if few else tuple(e.group), []).append(e)
        for part in parts.values():
            label = _label(measure, part, defined) if few else ", by ".join([measure, *part[0].group])
            yield f"{label}: {_reach(part)} ({_rests_on(test, part)}{some})"
            yield from _levels(part)


def _levels(part: list[Estimate]) -> Iterator[str]:
    """Yield what more levels of either facet would detect, and how many levels a stated effect needs."""
    facets = [name.removeprefix(TWICE) for name in part[0].facts if name.startswith(TWICE)]
    twice = [f"{facet} {_range(_facts(part, TWICE + facet))}" for facet in facets]
    if twice:
        yield f"    with twice the levels of a facet: {', '.join(twice)} {part[0].unit}".rstrip()
    for facet in (facet for facet in facets if NEEDED + facet in part[0].facts):
        levels = _facts(part, NEEDED + facet)
        told = f"{_range(levels)} in each group" if all(levels) else "no number is enough"
        yield f"    levels of {facet} needed, the other facet as it is: {told}"


def _facts(part: list[Estimate], name: str) -> list[float]:
    return [float(e.facts[name] or 0) for e in part]


def _label(measure: str, part: list[Estimate], every: list[Estimate]) -> str:
    """Return the measure, with what the groups of this part alone have in common."""
    fixed, known = ({f for f in e[0].group.items() if all(f in o.group.items() for o in e)} for e in (part, every))
    return ", ".join([measure, *(f"{name} {level}" for name, level in sorted(fixed - known, key=str))])


def _reach(part: list[Estimate]) -> str:
    values = [e.value for e in part if e.value is not None]
    ends = [end for e in part for end in (e.low, e.high) if end is not None]
    likely = f", 90 % range {_range(ends)}" if ends else ""
    return f"{_range(values)} {part[0].unit}{likely}"


def _range(values: Sequence[float]) -> str:
    low, high = (f"{value:.3g}" if value < 1000 else f"{value:,.0f}" for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def _basis(estimate: Estimate) -> str:
    """Return what its fields say an effect rests on; the note is for readers only."""
    kept = {name: fact for name, fact in estimate.facts.items() if not name.startswith((TWICE, NEEDED, TIMES))}
    return explained(estimate.replace(note="", facts=kept))


def _rests_on(test: str, part: list[Estimate]) -> str:
    notes = dict.fromkeys(map(_basis, part))
    return "; ".join(filter(None, [test, next(iter(notes)) if len(notes) == 1 else "by group"]))
