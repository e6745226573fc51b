"""Published models beside runs: each measure of a run less the value that a paper prints for a model.

Nobody has the answers behind printed values, so nothing is paired. Where the catalogue says of how many answers a
share is, its exact interval counts; any other value is taken as exact. Both intervals are combined by the method of
variance estimates recovery (Newcombe 1998; Zou and Donner 2008).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ..catalogue.published import ALL, Published, references
from ..catalogue.study import Catalogue
from ..contracts import Estimate
from ..contracts.errors import UsageError
from ..contracts.estimates import Caveat
from ..contracts.records import Scalar
from ..scoring.score import Scores
from ..statistics.intervals import exact_interval
from .differences import POINTS, Difference
from .pair import key_of

SHARE = "%"
METHOD = "difference of two intervals (MOVER)"
PUBLISHED = "published"
"""Fact of a difference from a published value: its source."""
EXACT = "the published value is taken as exact: the width is the run's"


def label_of(model: str) -> str:
    """Return what a published model is called beside runs."""
    return model if model.endswith(")") else f"{model} (published)"


def published_of(catalogue: Catalogue, runs: Mapping[str, Scores]) -> Sequence[Published]:
    """Return the values that are published for the runs' study."""
    study = next(iter(runs.values())).manifest.study
    entry = catalogue.registry.studies.get(study.name)
    return entry.published if entry else study.published


def set_beside(runs: Mapping[str, Scores], published: Sequence[Published], names: Sequence[str]) -> list[Difference]:
    """Return what the runs' estimates differ by from the published values of some models, in the order of the models.

    Raises:
        UsageError: no model has published values.
        UnknownNameError: a model has none.
    """
    found = []
    for model, values in references(published, names).items():
        by_key = {key_of(value.measure, value.group): value for value in reversed(values)}
        for label, scores in runs.items():
            for e in (e for estimates in scores.estimates.values() for e in estimates):
                value = by_key.get(key_of(e.metric, e.group))
                if value is not None and e.value is not None:
                    group: dict[str, Scalar] = {"run": label, "against": label_of(model), **e.group}
                    found.append(Difference(_apart(e, e.value, value, group), value.value, e.value))
    return found


def printed(runs: Mapping[str, Scores], published: Sequence[Published]) -> dict[str, list[Estimate]]:
    """Return the values that papers print for models where a run has an estimate, by model; none if nothing is."""
    try:
        values = references(published, [ALL])
    except UsageError:
        return {}
    own = {key_of(e.metric, e.group): e for s in runs.values() for found in s.estimates.values() for e in found}
    shown: dict[str, list[Estimate]] = {}
    for model, found in values.items():
        by_key = {key_of(value.measure, value.group): value for value in reversed(found)}
        if known := [_printed(value, own[key]) for key, value in by_key.items() if key in own]:
            shown[label_of(model)] = known
    return shown


def _printed(value: Published, e: Estimate) -> Estimate:
    low, high = _ends(value, e) or (None, None)
    return Estimate.from_flat(
        metric=e.metric,
        group=dict(e.group),
        value=value.value,
        neutral=e.neutral,
        unit=e.unit,
        low=low,
        high=high,
        n=value.n or 0,
        label=e.label,
        note=value.source or "source not stated",
    )


def _apart(e: Estimate, own: float, value: Published, group: dict[str, Scalar]) -> Estimate:
    ends = _ends(value, e)
    low, high = (None, None) if e.low is None or e.high is None else (e.low, e.high)
    if low is not None and high is not None:
        least, most = ends or (value.value, value.value)
        gap = own - value.value
        low, high = gap - math.hypot(own - low, most - value.value), gap + math.hypot(high - own, value.value - least)
    said = [f"published: {value.source or 'source not stated'}", "" if ends else EXACT, value.reading]
    return Estimate.from_flat(
        metric=e.metric,
        group=group,
        value=own - value.value,
        neutral=0.0,
        unit=POINTS.get(e.unit, e.unit),
        low=low,
        high=high,
        level=e.interval.level,
        interval="" if low is None else METHOD,
        n=e.n,
        caveats=(Caveat.UNTESTED,),
        topic=e.topic,
        label=e.label,
        meaning=e.meaning,
        facts={PUBLISHED: value.source or "source not stated"},
        note="; ".join(filter(None, said)),
    )


def _ends(value: Published, e: Estimate) -> tuple[float, float] | None:
    """Return the exact interval of a published share; None if it is none, or its number of answers is not known."""
    if value.n is None or e.unit != SHARE or e.interval.level is None:
        return None
    low, high = exact_interval(round(value.value * value.n / 100), value.n, e.interval.level)
    return None if low is None or high is None else (100 * low, 100 * high)


def in_words(differences: Sequence[Difference]) -> str:
    """State per model how many of its published values the runs differ from by more than their intervals."""
    by_model: dict[str, list[Estimate]] = {}
    for difference in differences:
        e = difference.estimate
        by_model.setdefault(f"{e.group['run']} and {e.group['against']}", []).append(e)
    said = []
    for name, estimates in by_model.items():
        known = [e for e in estimates if e.low is not None and e.high is not None]
        out = sum(not e.low <= 0 <= e.high for e in known)  # type: ignore[operator]  # both ends are known
        said.append(f"{name}: {out} of {len(known)} differences have an interval without 0 (not corrected)")
    return "; ".join(said) + "." if said else ""
