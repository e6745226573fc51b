"""Tables of estimates: a short one, then one section per metric."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from urllib.parse import parse_qsl, urlencode

import msgspec

from ..catalogue.published import within
from ..contracts.estimates import Estimate
from ..contracts.words import UNDEFINED, decimals_for, defined, exact, interval, level_word, number, percent
from .content import Published
from .fields import Field, fields_for, number_cell, scale_of
from .grid import Cell, Column, Grid, label_cell
from .text import group_words

HEADLINE_ROWS = 8
"""Maximum number of estimates of a metric, at its broadest groups, in the short table. None is chosen by its value."""
OPEN_ROWS = 40
"""Total number of estimates above which the sections of the page start closed."""
BELOW = ("Test", "Clusters", "Note")
"""Columns that only the sections have, so that the short table fits on a screen."""
MOST_ROWS = 800
"""Maximum number of estimates on a page; the files of the run have all."""


class Section(msgspec.Struct, frozen=True):
    """All estimates of one metric."""

    id: str
    """Anchor, with a number, because a metric's name may contain any character."""
    name: str
    label: str
    """Label of the measure, if it has one."""
    unit: str
    grid: Grid
    notes: tuple[str, ...]
    open: bool


def by_metric(estimates: Iterable[Estimate]) -> dict[str, list[Estimate]]:
    """Return the estimates by metric, in their order."""
    found: dict[str, list[Estimate]] = {}
    for estimate in estimates:
        found.setdefault(estimate.metric, []).append(estimate)
    return found


def sections(estimates: Sequence[Estimate], topic: str = "") -> list[Section]:
    """Return one section per metric on this topic; an empty topic is the study's question.

    If there are more than `MOST_ROWS` estimates, the longest sections list their first ones, equally many of each.
    """
    is_open = len(estimates) <= OPEN_ROWS
    metrics = by_metric(e for e in estimates if e.subject == topic).items()
    anchor, most = f"{topic}-metric" if topic else "metric", _most(list(map(len, by_metric(estimates).values())))
    return [_section(f"{anchor}-{index}", name, rows, is_open, most) for index, (name, rows) in enumerate(metrics, 1)]


def _most(sizes: Sequence[int]) -> int:
    """Return how many rows each section lists at most; short ones are whole, and all list no more than `MOST_ROWS`."""
    left = MOST_ROWS
    for place, size in enumerate(sorted(sizes)):
        share = max(1, left // (len(sizes) - place))
        if size > share:
            return share
        left -= size
    return MOST_ROWS


def answer(estimates: Sequence[Estimate]) -> str:
    """Return the first estimate as a sentence, for a study whose metrics have no conclusion."""
    first = next((e for e in estimates if not e.subject), None)
    if first is None:
        return ""
    decimals = decimals_for([first.value, first.low, first.high])
    words = [f"{first.metric} ({group_words(first.group)}) is {number(first.value, decimals)} {first.unit}".rstrip()]
    if defined(first.low) and defined(first.high):
        ends = interval(first.low, first.high, decimals)
        words.append(f"{percent(first.interval.level)} interval {ends}")
    else:
        words.append("no interval")
    if defined(first.neutral):
        words.append(f"neutral {exact(first.neutral)}")
    return ", ".join([*words, f"n = {first.n:,}"]) + "."


def headline(estimates: Sequence[Estimate], chosen: Sequence[Estimate] | None = None) -> Grid:
    """Return the short table: the chosen estimates, or per metric those with the broadest groups if they are few."""
    families = by_metric(e for e in estimates if not e.subject)
    scales = {name: scale_of(rows) for name, rows in by_metric([*estimates, *(chosen or ())]).items()}
    shown = chosen if chosen is not None else [e for rows in families.values() for e in _broadest(rows)]
    # Only the sections name the families: here they would make each row three lines high.
    scales = {name: msgspec.structs.replace(scale, families=False) for name, scale in scales.items()}
    fields = _short(shown)
    rows = tuple(
        (
            Cell(e.metric, detail=group_words(e.group), answers=_answers(e)),
            *(field.cell(e, scales[e.metric]) for field in fields),
        )
        for e in shown
    )
    return Grid("Headline estimates", (Column("Measure"), *_columns(fields)), rows)


def _short(shown: Sequence[Estimate]) -> list[Field]:
    """Return the columns of the short table: one p, and the worst case only if an answer is missing."""
    fields = {field.label: field for field in fields_for(shown) if field.label not in BELOW}
    if "Adjusted p" in fields and all(e.p is None or e.p_adjusted is not None for e in shown):
        fields.pop("p", None)
    if not any(e.missing.total for e in shown):
        fields.pop("Worst case", None)
    return list(fields.values())


def published_grid(values: Sequence[Published]) -> Grid:
    """Return the table of published and measured values."""
    labels = ("Published", "Measured", "Difference", "Tolerance")
    columns = (Column("Measure"), *(Column(label, True) for label in labels), Column("Replicated"))
    noted = any(value.note for value in values)
    rows = tuple((*_published_row(value), *([Cell(value.note)] if noted else [])) for value in values)
    return Grid("Published and measured values", (*columns, *([Column("Note")] if noted else [])), rows)


def _published_row(value: Published) -> tuple[Cell, ...]:
    apart = value.measured - value.published if value.measured is not None else None
    decimals = decimals_for([value.published, value.measured])
    numbers = (value.published, value.measured, apart, value.tolerance)
    agrees = UNDEFINED
    if defined(apart) and value.measured is not None and value.tolerance is not None:
        agrees = "yes" if within(value.published, value.measured, value.tolerance) else "no"
    return (
        Cell(value.metric, detail=group_words(value.group)),
        *(number_cell(one, decimals) for one in numbers),
        Cell(agrees),
    )


def _broadest(estimates: Sequence[Estimate]) -> list[Estimate]:
    fewest = min(len(e.group) for e in estimates)
    found = [e for e in estimates if len(e.group) == fewest]
    return found if len(found) <= HEADLINE_ROWS else []


def _section(anchor: str, name: str, estimates: Sequence[Estimate], is_open: bool, most: int) -> Section:
    scale, everything = scale_of(estimates), len(estimates)
    notes = list(_notes(estimates))
    estimates = estimates[:most]
    if len(estimates) < everything:
        notes.append(f"Only the first {len(estimates):,} of {everything:,}; estimates.csv has all")
    keys = list(dict.fromkeys(key for e in estimates for key in e.group))
    fields = fields_for(estimates)
    rows = tuple((*_group_cells(e, keys), *(field.cell(e, scale) for field in fields)) for e in estimates)
    heads = tuple(Column(key, all(_is_number(e.group.get(key)) for e in estimates)) for key in keys)
    grid = Grid(f"Estimates of {name}", (*(heads or (Column("Group"),)), *_columns(fields)), rows)
    units = dict.fromkeys(e.unit for e in estimates if e.unit)
    return Section(anchor, name, estimates[0].label, ", ".join(units), grid, tuple(notes), is_open)


def _group_cells(estimate: Estimate, keys: Sequence[str]) -> tuple[Cell, ...]:
    if not keys:
        return (Cell(group_words({}), answers=_answers(estimate)),)
    first, *others = (label_cell(estimate.group[key]) if key in estimate.group else Cell("all") for key in keys)
    return (msgspec.structs.replace(first, answers=_answers(estimate)), *others)


def _answers(estimate: Estimate) -> str:
    words = {f"f.{name}": level_word(value) for name, value in estimate.group.items() if value is not None}
    return urlencode(words, errors="replace") or "f"


def filters(query: str) -> str:
    """Return the options of `prejudge view` for the answers of a row, from the query of its page."""
    levels = [(name.removeprefix("f."), level) for name, level in parse_qsl(query) if name.startswith("f.")]
    return "".join(f" --filter {shlex.quote(f'{name}={level}')}" for name, level in levels)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _columns(fields: Iterable[Field]) -> tuple[Column, ...]:
    return tuple(Column(field.label, field.numeric) for field in fields)


def _notes(estimates: Sequence[Estimate]) -> Iterable[str]:
    notes: dict[str, None] = {}
    for e in estimates:
        if e.low is not None or e.high is not None:
            notes[f"Interval: {percent(e.interval.level)} {e.interval.method}".strip()] = None
        if e.test.adjusted:
            notes[f"Adjusted p: {e.test.correction or 'corrected'} within {e.test.family or 'this metric'}"] = None
        if e.effect.value is not None and e.effect.name:
            notes[f"Effect: {e.effect.name}"] = None
    return notes
