"""What the labels of a sample say: agreement of people, errors of the verdict, and corrected shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from ..contracts.errors import UsageError
from ..statistics.ranks import Agreement, Scale, agreement
from .labelled import ensure_random, settled
from .rates import Part, Rate, agreement_rate, joint_share
from .samples import Label, Sample
from .shares import LEVEL, EstimateRow, Tally, difference_rows, mean_rows, share_rows


class SampleResults(msgspec.Struct, frozen=True, kw_only=True):
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
    shares: tuple[EstimateRow, ...] = ()
    differences: tuple[EstimateRow, ...] = ()
    means: tuple[EstimateRow, ...] = ()
    problem: str = ""
    """Why shares are not corrected."""


def sample_results(sample: Sample) -> SampleResults:
    """Return the results of a sample.

    Raises:
        DataError: the sample or a label cannot be read.
    """
    design, sheet, labels = sample.design, sample.sheet, sample.labels()
    gold, unsettled = settled(labels)
    tally = Tally(design, sheet.labels, gold)
    parts = {v: tally.parts(lambda s, v=v: s.verdict == v) for v in tally.verdicts}  # type: ignore[misc]
    results = SampleResults(
        people={by: len(by_item) for by, by_item in labels.items()},
        agreement=agreement_of(sheet.labels, [item.item for item in sheet.items], labels),
        settled=len(gold),
        unsettled=unsettled,
        verdicts=tally.verdicts,
        matrix={
            v: {label: joint_share(strata, n, LEVEL) for n, label in enumerate(sheet.labels)}
            for v, strata in parts.items()
        },
        counts={
            v: {label: sum(part.counts[n] for part in strata) for n, label in enumerate(sheet.labels)}
            for v, strata in parts.items()
        },
        sensitivity={
            label: agreement_rate(parts[label], _of_other_verdicts(parts, label), n, LEVEL)
            for n, label in enumerate(sheet.labels)
            if label in parts
        },
    )
    try:
        ensure_random(sample, labels)
    except UsageError as error:
        return msgspec.structs.replace(results, problem=str(error))
    return msgspec.structs.replace(
        results,
        shares=tuple(share_rows(tally)),
        differences=tuple(difference_rows(tally)),
        means=tuple(mean_rows(tally)),
    )


def _of_other_verdicts(parts: Mapping[str, Sequence[Part]], label: str) -> list[Part]:
    return [part for verdict, strata in parts.items() if verdict != label for part in strata]


def agreement_of(
    labels: Sequence[str], items: Sequence[str], by_person: Mapping[str, Mapping[str, Label]]
) -> Agreement | None:
    """Return how far people agree: of numbers as an order, of other labels as names; None for a single person."""
    if len(by_person) < 2:
        return None
    scale: Scale = "ordinal"
    try:
        codes = {label: float(label) for label in labels}
    except ValueError:
        codes, scale = {label: float(number) for number, label in enumerate(labels)}, "nominal"
    table = [
        [codes.get(by_item[item].label, np.nan) if item in by_item else np.nan for by_item in by_person.values()]
        for item in items
    ]
    return agreement(np.array(table), scale)
