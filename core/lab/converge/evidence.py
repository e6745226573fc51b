"""What each method found of a construct in one model, and whether the methods agree.

A method speaks by the one row that the construct declares, before anything is asked, so its p is not corrected for the
other rows of its study. Methods of one material count as one source: the smallest of their p-values, times their number
(Bonferroni). The sources are judged by partial conjunction, which holds however their tests depend. Methods that speak
by one run are one source, too, whatever their construct says: the same answers corroborate nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from itertools import combinations
from math import hypot
from typing import Any

import msgspec

from ...catalogue.constructs import Construct, Method
from ...contracts import Estimate
from ...contracts.errors import DataError
from ...contracts.estimates import Caveat, Verdict
from ...contracts.records import Scalar
from ...contracts.sizes import State, state_of
from .heterogeneity import Heterogeneity, at_least, heterogeneity
from .scale import Placed, place

MOST_NAMED = 3
"""Rows that a message lists."""
ALPHA = 0.05
"""Level of the judgement over sources: half of it for either direction."""


class Finding(StrEnum):
    """What several methods say together."""

    AGREE_ABOVE = "agree_above"
    """At least two sources show an effect in the direction of the construct, and none shows one against it."""
    AGREE_BELOW = "agree_below"
    """The same against its direction."""
    CONFLICT = "conflict"
    """One source shows an effect in its direction, and one against it."""
    ONE_SOURCE = "one_source"
    """One source alone shows an effect: no other corroborates it."""
    NOT_SHOWN = "not_shown"
    """No source shows an effect."""
    TOO_FEW = "too_few"
    """Fewer than two sources were tested, so that nothing can agree."""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What one method found in one model, or why it found nothing."""

    method: str
    title: str
    study: str
    material: str
    model: str
    run: str = ""
    """The run it was found in."""
    measure: str = ""
    group: dict[str, Scalar] = {}
    value: float | None = None
    """The row's own value, with unit and ends of its interval; its direction is the measure's."""
    low: float | None = None
    high: float | None = None
    unit: str = ""
    neutral: float | None = None
    n: int = 0
    clusters: int | None = None
    missing: int = 0
    p: float | None = None
    """Of the row, not corrected."""
    above: bool | None = None
    """Whether it lies in the direction of the construct; None if it lies nowhere."""
    verdict: Verdict | None = None
    """The study's own, corrected within its family."""
    state: State = State.NOTHING
    """The verdict of every report, by the side that is the direction of the construct."""
    caveats: tuple[Caveat, ...] = ()
    placed: Placed | None = None
    """On the common scale; None of methods that have only a sign, or no value."""
    population: str = ""
    lacking: str = ""
    """Why there is no value or no test; empty if there are."""
    certificate: str = ""
    """State of the study's certificate."""

    def toward(self, above: bool) -> float:
        """Return the one-sided p of an effect in this direction; 1 without a test."""
        if self.p is None or self.above is None:
            return 1.0
        return self.p / 2 if self.above == above else 1 - self.p / 2


class Pair(msgspec.Struct, frozen=True):
    """Two methods in one model: on the common scale, by how much the first is greater than the second."""

    first: str
    second: str
    same_sign: bool
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    """Ends by the method of variance estimates recovery, for independent errors; None where a value has no interval."""
    one_material: bool = False
    """Whether both ask the same questions, so that their errors depend."""
    shared: tuple[str, ...] = ()
    """What else they share."""


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """What the methods of a construct say together of one model."""

    construct: str
    model: str
    finding: Finding
    sources: int
    """Materials with a test, apart from those that speak by one run."""
    above: int
    """How many of them show an effect in the direction of the construct, at least, at 97.5 % confidence."""
    below: int
    evidence: tuple[Evidence, ...]
    pairs: tuple[Pair, ...]
    heterogeneity: Heterogeneity | None = None
    left_out: tuple[str, ...] = ()
    """Methods with a value that heterogeneity leaves out, because they have no scale or no standard error."""


def row_of(estimates: Mapping[str, Sequence[Estimate]], method: Method) -> Estimate | None:
    """Return the row that speaks to the construct; None if the run has none such.

    Raises:
        DataError: the construct names several.
    """
    found = [
        e
        for metric, every in estimates.items()
        for e in every
        if method.metric in ("", metric)
        and e.metric == method.measure
        and all(e.group.get(name) == level for name, level in method.group.items())
    ]
    exact = [e for e in found if e.group.keys() == method.group.keys()]
    if len(exact or found) > 1:
        first, second = (exact or found)[:2]
        raise DataError(
            f"{method.study} has several rows {method.measure!r} of {method.group}: {first.group} and {second.group}. "
            "Name more levels in `group`.",
            code="construct.row",
            measure=method.measure,
        )
    return next(iter(exact or found), None)


def absent(estimates: Mapping[str, Sequence[Estimate]], method: Method) -> str:
    """Say which row a method lacks, and which ones of its measure there are."""
    own = [e.group for every in estimates.values() for e in every if e.metric == method.measure]
    known = "; ".join(_levels(group) for group in own[:MOST_NAMED] if group)
    more = f", and {len(own) - MOST_NAMED:,} more" if len(own) > MOST_NAMED else ""
    asked = f" of {_levels(method.group)}" if method.group else ""
    return f"the run has no row {method.measure!r}{asked}" + (f"; it has those of {known}{more}" if known else "")


def _levels(group: Mapping[str, Scalar]) -> str:
    return ", ".join(f"{name}={level}" for name, level in group.items())


def evidence_of(e: Estimate | None, method: Method, known: Mapping[str, Any], lacking: str = "") -> Evidence:
    """Return the evidence of a row; `known` has who was asked and by which run, `lacking` why there is no row.

    Raises:
        DataError: the row is not on the scale that the construct says.
    """
    own = {"title": method.title, "study": method.study, "population": method.population, **known}
    if e is None:
        return Evidence(**own, lacking=lacking or absent({}, method))
    placed = place(e, method) if e.value is not None else None
    gap = None if e.value is None or e.neutral is None else (e.value - e.neutral) * method.sign
    return Evidence(
        **own,
        measure=e.metric,
        group=e.group,
        value=e.value,
        low=e.low,
        high=e.high,
        unit=e.unit,
        neutral=e.neutral,
        n=e.n,
        clusters=e.clusters,
        missing=e.missing.total,
        p=e.p,
        above=None if not gap else gap > 0,
        verdict=e.verdict if method.sign > 0 else _TURNED.get(e.verdict, e.verdict),
        state=state_of(e, "above" if method.sign > 0 else "below"),
        caveats=e.caveats,
        placed=placed,
        lacking=_lacking(e),
    )


_TURNED: dict[Verdict | None, Verdict] = {Verdict.ABOVE: Verdict.BELOW, Verdict.BELOW: Verdict.ABOVE}


def _lacking(e: Estimate) -> str:
    if e.value is None:
        return e.note or "no readable answer"
    if e.p is None:
        return f"too little data for a test: n = {e.n}" + (f", {e.clusters} clusters" if e.clusters else "")
    return "with so few clusters p cannot be small" if Caveat.P_FLOOR in e.caveats else ""


def judge(construct: Construct, model: str, evidence: Sequence[Evidence]) -> Judged:
    """Return what the methods say together of one model."""
    tested = [one for one in evidence if one.p is not None]
    sources = _sources(tested)
    above, below = (at_least([_of_one(source, up) for source in sources], ALPHA / 2) for up in (True, False))
    known = [(one, one.placed) for one in evidence if one.placed is not None]
    errors = [(one.method, placed.h, error) for one, placed in known if (error := placed.error) is not None]
    kept = {name for name, _, _ in errors}
    return Judged(
        construct=construct.name,
        model=model,
        finding=_finding(len(sources), above, below),
        sources=len(sources),
        above=above,
        below=below,
        evidence=tuple(evidence),
        pairs=tuple(_pair(construct, a, b) for a, b in combinations(evidence, 2) if a.value is not None is not b.value),
        heterogeneity=heterogeneity([h for _, h, _ in errors], [error for _, _, error in errors]),
        left_out=tuple(one.method for one in evidence if one.value is not None and one.method not in kept),
    )


def _sources(tested: Sequence[Evidence]) -> list[list[Evidence]]:
    """Return the methods by source: those of one material or one run, directly or through others."""
    found: list[list[Evidence]] = []
    for one in tested:
        linked = [source for source in found if any(_alike(one, other) for other in source)]
        found = [source for source in found if source not in linked]
        found.append([one, *(other for source in linked for other in source)])
    return found


def _alike(one: Evidence, other: Evidence) -> bool:
    return one.material == other.material or one.run == other.run


def _of_one(source: Sequence[Evidence], above: bool) -> float:
    p_values = [one.toward(above) for one in source]
    return min(1.0, len(p_values) * min(p_values))


def _finding(sources: int, above: int, below: int) -> Finding:
    if above and below:
        return Finding.CONFLICT
    if sources < 2:
        return Finding.TOO_FEW
    if max(above, below) > 1:
        return Finding.AGREE_ABOVE if above else Finding.AGREE_BELOW
    return Finding.ONE_SOURCE if above or below else Finding.NOT_SHOWN


def _pair(construct: Construct, one: Evidence, other: Evidence) -> Pair:
    first, second = one.placed, other.placed
    difference = low = high = None
    if first is not None and second is not None:
        difference = first.value - second.value
        if first.low is not None and second.high is not None and first.high is not None and second.low is not None:
            low = difference - hypot(first.value - first.low, second.high - second.value)
            high = difference + hypot(first.high - first.value, second.value - second.low)
    a, b = construct.methods[one.method], construct.methods[other.method]
    return Pair(
        one.method,
        other.method,
        one.above is not None and one.above == other.above,
        difference,
        low,
        high,
        _alike(one, other),
        tuple(what for what in a.shares if what in b.shares),
    )
