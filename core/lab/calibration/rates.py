"""From the studies of a calibration to false positives, power, coverage, and measured against planted effects."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np
from scipy import stats

from ...catalogue.certificate_records import LEVEL, Certificate, Group, Rate, Sensitivity
from ...catalogue.questions import Question
from ...statistics.intervals import exact_interval
from .campaign import Cell, Done, Number
from .gallery import FAIR, Null

RISK = 0.01
"""Chance that a rate which is right is called too high."""


def group_of(cell: Cell, done: Sequence[Done], questions: Sequence[Question] = (), *, unchanged: bool = False) -> Group:
    """Return the rates of the studies of one kind of model, and those of the answers to the study's questions."""
    shares = [study.changed for study in done if study.changed is not None]
    changed = _rounded(math.fsum(shares) / len(shares)) if shares else None
    if unchanged or not done:
        return Group(null=cell.null, strength=cell.strength, unchanged=unchanged, changed=changed)
    by_place: dict[bytes, list[Number]] = {}
    for one in done:
        for number in one.numbers:
            by_place.setdefault(msgspec.json.encode((number.measure, number.group)), []).append(number)
    rates = [_rate(numbers, planted=bool(cell.strength)) for numbers in by_place.values()]
    answers = [_answer(question, done) for question in questions]
    if not cell.strength:
        rates, answers = _held(rates), _held(answers)
    return Group(
        null=cell.null,
        strength=cell.strength,
        studies=len(done),
        any_shown=sum(any(number.shown for number in one.numbers) for one in done),
        rates=tuple(rate for rate in rates if rate.studies or rate.mean is not None),
        answers=tuple(answers),
        missing=math.fsum(one.missing for one in done) / len(done),
        changed=changed,
    )


def _held(rates: Sequence[Rate]) -> list[Rate]:
    judged = sum(rate.studies > 0 for rate in rates)
    return [msgspec.structs.replace(rate, holds=holds(rate, judged)) for rate in rates]


def _answer(question: Question, done: Sequence[Done]) -> Rate:
    """Return how often the answer to a question is a finding: as in a report, where any of its numbers is shown."""
    answering = [question.among(one.numbers, lambda number: (number.measure, number.group))[0] for one in done]
    judged = [[number.shown for number in numbers if number.shown is not None] for numbers in answering]
    judged = [shown for shown in judged if shown]
    shown = sum(map(any, judged))
    low, high = _ends(shown, len(judged))
    return Rate(
        measure=question.measure,
        label=question.asks,
        group=question.group,
        studies=len(judged),
        shown=shown,
        low=low,
        high=high,
    )


def _ends(shown: int, studies: int) -> tuple[float | None, float | None]:
    """Return the interval of a rate; nothing without studies."""
    if not studies:
        return None, None
    low, high = exact_interval(shown, studies, 1 - LEVEL)
    return _rounded(low), _rounded(high)


def _rate(numbers: Sequence[Number], *, planted: bool) -> Rate:
    judged = [number for number in numbers if number.shown is not None]
    shown = sum(bool(number.shown) for number in judged)
    values = np.array([number.value for number in numbers if number.value is not None], dtype=np.float64)
    neutral, mean = numbers[0].neutral, float(values.mean()) if values.size else None
    truth = mean if planted else neutral
    ends = [(n.low, n.high) for n in numbers if n.low is not None and n.high is not None]
    covered = None if truth is None or not ends else sum(low <= truth <= high for low, high in ends) / len(ends)
    low, high = _ends(shown, len(judged))
    return Rate(
        measure=numbers[0].measure,
        label=numbers[0].label,
        group=numbers[0].group,
        neutral=neutral,
        studies=len(judged),
        shown=shown,
        low=low,
        high=high,
        mean=_rounded(mean),
        spread=_rounded(float(values.std(ddof=1))) if values.size > 1 else None,
        covered=_rounded(covered),
        intervals=len(ends),
    )


def _rounded(value: float | None) -> float | None:
    """Return a number with six digits: the file of a certificate is read by people too."""
    return None if value is None else float(f"{value:.6g}")


def most_by_chance(studies: int, among: int = 1) -> int:
    """Return the most false positives that chance explains in so many studies at `LEVEL`.

    The risk is shared by the numbers `among` which one is picked.
    """
    return int(stats.binom.ppf(1 - RISK / max(among, 1), studies, LEVEL))


def holds(rate: Rate, among: int = 1) -> bool:
    """Return whether the rate of false positives is within binomial limits of the level."""
    return rate.shown <= most_by_chance(rate.studies, among)


def sensitivities(groups: Sequence[Group], gallery: Mapping[str, Null]) -> tuple[Sensitivity, ...]:
    """Return how far the models of each kind of the gallery move the numbers of the headline from those of `fair`."""
    fair = next((one for one in groups if one.null == FAIR and not one.strength), None)
    kinds = dict.fromkeys(null.kind for null in gallery.values() if null.kind)
    own = {kind: [one for one in groups if not one.strength and gallery[one.null].kind == kind] for kind in kinds}
    return tuple(_sensitivity(kind, fair, found) for kind, found in own.items() if fair is not None and found)


def _sensitivity(kind: str, fair: Group, groups: Sequence[Group]) -> Sensitivity:
    nulls = tuple(group.null for group in groups)
    compared = [
        (abs(shift), shift, group.null, rate, (rate.spread or 0.0) / (own.spread or 1.0))
        for group in groups
        for rate in group.rates
        for own in fair.rates
        if (own.measure, own.group) == (rate.measure, rate.group) and (shift := shift_of(own, rate)) is not None
    ]
    if not compared:
        return Sensitivity(to=kind, nulls=nulls)
    _, shift, null, rate, _ = max(compared, key=lambda one: one[0])
    widest = max(one[-1] for one in compared)
    return Sensitivity(
        to=kind, nulls=nulls, largest=null, measure=rate.measure, group=rate.group, shift=shift, wider=widest
    )


def shift_of(fair: Rate, other: Rate) -> float | None:
    """Return the difference of the means in standard deviations between studies of the first; None if undefined."""
    if fair.mean is None or other.mean is None or not fair.spread:
        return None
    return (other.mean - fair.mean) / fair.spread


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """How a number follows the planted bias, in models of one null."""

    measure: str
    group: dict[str, object]
    strengths: tuple[float, ...]
    means: tuple[float, ...]
    power: tuple[float | None, ...]
    monotone: bool
    slope: float
    """Change per nat between no bias and the smallest planted one."""
    saturation: float | None
    """Change per nat between the two largest biases, as a share of `slope`: 1 where it is linear."""


def responses(certificate: Certificate, null: str) -> list[Response]:
    """Return how each number of the headline follows the planted bias; none where fewer than two were planted.

    None either where planting changed no answer.
    """
    if certificate.is_unplanted(null):
        return []
    groups = sorted((one for one in certificate.groups if one.null == null and one.studies), key=lambda g: g.strength)
    if len(groups) < 3 or groups[0].strength:
        return []
    found = []
    for rate in groups[0].rates:
        own = [next((r for r in g.rates if (r.measure, r.group) == (rate.measure, rate.group)), None) for g in groups]
        known = [(g.strength, r) for g, r in zip(groups, own, strict=True) if r is not None and r.mean is not None]
        if len(known) == len(groups):
            found.append(_response(rate, known))
    return found


def _response(rate: Rate, known: Sequence[tuple[float, Rate]]) -> Response:
    strengths = [strength for strength, _ in known]
    means = [r.mean or 0.0 for _, r in known]
    steps = np.diff(means) / np.diff(strengths)
    slope = float(steps[0])
    return Response(
        measure=rate.measure,
        group=dict(rate.group),
        strengths=tuple(strengths),
        means=tuple(means),
        power=tuple(r.rate for _, r in known),
        monotone=_monotone(known),
        slope=slope,
        saturation=float(steps[-1] / slope) if slope else None,
    )


def _monotone(known: Iterable[tuple[float, Rate]]) -> bool:
    """Return whether the means follow the strengths one way, but for what chance explains (two standard errors)."""
    own = [rate for _, rate in known]
    means = np.array([rate.mean for rate in own], dtype=np.float64)
    errors = np.array([(rate.spread or 0.0) / math.sqrt(max(rate.studies, 1)) for rate in own])
    steps, slack = np.diff(means), 2 * np.hypot(errors[1:], errors[:-1])
    way = np.sign(means[-1] - means[0])
    return bool(way) and bool(np.all(way * steps >= -slack))
