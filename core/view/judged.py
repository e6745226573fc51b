"""What the labels of a sample say: agreement of people, errors of the verdict, and corrected shares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from ..contracts.errors import UsageError
from ..statistics.labelled import Rate, agreement_rate, joint_share
from ..statistics.ranks import Agreement, Scale, agreement
from .corrected import LEVEL, RateRow, ShareRow, Tally, difference_rows, mean_rows, share_rows
from .labels import Label, Sample


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
    differences: tuple[RateRow, ...]
    means: tuple[RateRow, ...]
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
    tally = Tally(design, sheet.labels, gold)
    rows: list[ShareRow] = []
    differences: list[RateRow] = []
    means: list[RateRow] = []
    problem = ""
    try:
        rows = share_rows(tally, sample.drawn_at_random(labels))
        differences, means = difference_rows(tally, rows), mean_rows(tally)
    except UsageError as error:
        problem = str(error)
    table = {v: tally.parts(lambda s, v=v: s.verdict == v) for v in tally.verdicts}  # type: ignore[misc]
    return Judged(
        people={by: len(own) for by, own in labels.items()},
        agreement=agreed(sheet.labels, [one.item for one in sheet.items], labels),
        settled=len(gold),
        unsettled=unsettled,
        verdicts=tally.verdicts,
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
        means=tuple(means),
        problem=problem,
    )


def agreed(labels: Sequence[str], items: Sequence[str], given: Mapping[str, Mapping[str, Label]]) -> Agreement | None:
    """Return how far people agree: of numbers as an order, of other labels as names; None for a single person."""
    if len(given) < 2:
        return None
    scale: Scale = "ordinal"
    try:
        codes = {label: float(label) for label in labels}
    except ValueError:
        codes, scale = {label: float(number) for number, label in enumerate(labels)}, "nominal"
    table = [
        [codes.get(own[item].label, np.nan) if item in own else np.nan for own in given.values()] for item in items
    ]
    return agreement(np.array(table), scale)
