"""What the labels of a sample say: agreement of people, errors of the verdict, and corrected shares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import msgspec
import numpy as np

from ..contracts.errors import UsageError
from ..statistics.labelled import Corrected, Part, Rate, agreement_rate, corrected_share, difference, joint_share
from ..statistics.ranks import Agreement, agreement
from .labels import Label, Sample
from .sampling import Design, Stratum

LEVEL = 0.95


class ShareRow(msgspec.Struct, frozen=True):
    """A share of one label in one group."""

    group: str
    label: str
    share: Corrected


class DifferenceRow(msgspec.Struct, frozen=True):
    """The difference of a share between two groups, by the verdict and corrected."""

    groups: str
    label: str
    raw: float | None
    rate: Rate


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """The results of a sample."""

    people: dict[str, int]
    """Labels by person."""
    agreement: Agreement | None
    settled: int
    """Items with a label that most people gave."""
    unsettled: int
    """Items that people labelled without a majority, or could not tell."""
    verdicts: tuple[str, ...]
    matrix: dict[str, dict[str, Rate]]
    """By verdict: the share of its answers with each label."""
    counts: dict[str, dict[str, int]]
    sensitivity: dict[str, Rate]
    """By label: how often the verdict is the same."""
    shares: tuple[ShareRow, ...]
    differences: tuple[DifferenceRow, ...]
    problem: str = ""
    """Why shares are not corrected."""


def settled(labels: Mapping[str, Mapping[str, Label]]) -> tuple[dict[str, str], int]:
    """Return the label that more than half of its people gave each item, and how many items have none."""
    votes: dict[str, list[str]] = {}
    for own in labels.values():
        for item, one in own.items():
            votes.setdefault(item, []).append(one.label)
    gold = {}
    for item, given in votes.items():
        label, count = Counter(given).most_common(1)[0]
        if label and 2 * count > len(given):
            gold[item] = label
    return gold, len(votes) - len(gold)


def judge(sample: Sample) -> Judged:
    """Return the results of a sample.

    Raises:
        DataError: the sample or a label cannot be read.
    """
    design, sheet, labels = sample.design, sample.sheet, sample.labels()
    gold, unsettled = settled(labels)
    counts = Counter((one.stratum, gold[one.item]) for one in design.items if one.item in gold)
    verdicts = tuple(dict.fromkeys(stratum.verdict for stratum in design.strata))

    def parts(wanted: Callable[[Stratum], bool]) -> list[Part]:
        return [
            Part(stratum.size, tuple(counts[number, label] for label in sheet.labels))
            for number, stratum in enumerate(design.strata)
            if wanted(stratum)
        ]

    random, problem = sample.drawn_at_random(labels), ""
    rows: list[ShareRow] = []
    differences: list[DifferenceRow] = []
    try:
        for group, inside in _groups(design):
            for number, label in enumerate(sheet.labels):
                own = [parts(lambda s, v=v, i=inside: s.verdict == v and i(s)) for v in verdicts]  # type: ignore[misc]
                raw = _raw(design, label, inside)
                rows.append(ShareRow(group, label, corrected_share(own, number, raw, LEVEL, random=random)))
        differences = _differences(design, sheet.labels, rows)
    except UsageError as error:
        problem, rows = str(error), []
    table = {v: parts(lambda s, v=v: s.verdict == v) for v in verdicts}  # type: ignore[misc]
    return Judged(
        people={by: len(own) for by, own in labels.items()},
        agreement=_agreement(sheet.labels, [one.item for one in sheet.items], labels),
        settled=len(gold),
        unsettled=unsettled,
        verdicts=verdicts,
        matrix={
            v: {label: joint_share(own, n, LEVEL) for n, label in enumerate(sheet.labels)} for v, own in table.items()
        },
        counts={
            v: {label: sum(p.counts[n] for p in own) for n, label in enumerate(sheet.labels)}
            for v, own in table.items()
        },
        sensitivity={
            label: agreement_rate(table[label], [p for v, own in table.items() if v != label for p in own], n, LEVEL)
            for n, label in enumerate(sheet.labels)
            if label in table
        },
        shares=tuple(rows),
        differences=tuple(differences),
        problem=problem,
    )


def _groups(design: Design) -> list[tuple[str, Callable[[Stratum], bool]]]:
    """Return the whole, and every level of every cell's column, with what is inside."""
    found: list[tuple[str, Callable[[Stratum], bool]]] = [("", lambda _: True)]
    for name in design.cells:
        for word in dict.fromkeys(stratum.cell[name] for stratum in design.strata):
            found.append((f"{name}: {word}", lambda s, n=name, w=word: s.cell[n] == w))  # type: ignore[misc]
    return found


def _raw(design: Design, label: str, inside: Callable[[Stratum], bool]) -> float | None:
    if all(stratum.verdict != label for stratum in design.strata):
        return None  # missing, not 0
    own = [stratum for stratum in design.strata if inside(stratum)]
    return sum(s.size for s in own if s.verdict == label) / max(sum(s.size for s in own), 1)


def _differences(design: Design, labels: Sequence[str], rows: Sequence[ShareRow]) -> list[DifferenceRow]:
    """Return the differences between the two levels of every column that has two."""
    by = {(row.group, row.label): row.share for row in rows}
    found = []
    for name in design.cells:
        words = list(dict.fromkeys(stratum.cell[name] for stratum in design.strata))
        if len(words) != 2:
            continue
        for label in labels:
            first, second = (by[f"{name}: {word}", label] for word in words)
            told = f"{name}: {words[0]} less {words[1]}"
            raw = None if first.raw is None or second.raw is None else first.raw - second.raw
            found.append(DifferenceRow(told, label, raw, difference(first, second)))
    return found


def _agreement(
    labels: Sequence[str], items: Sequence[str], given: Mapping[str, Mapping[str, Label]]
) -> Agreement | None:
    if len(given) < 2:
        return None
    codes = {label: float(number) for number, label in enumerate(labels)}
    table = [
        [codes.get(own[item].label, np.nan) if item in own else np.nan for own in given.values()] for item in items
    ]
    return agreement(np.array(table), "nominal")
