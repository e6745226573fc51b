"""Several changed images of a face: each is compared with the image without a change.

The measures are of two images of a face. Of more, each change is a comparison of its own with the first image, and the
p-values of all are corrected together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import polars as pl

from ...core.contracts.errors import DataError
from ...core.contracts.estimates import Estimate
from ...core.statistics.estimates import Correction, correct
from ...probes.attractiveness.terms import VARIANTS

CHANGE = "change"
"""Key of a group: the variant that is compared with the one without a change, where there are several."""


KEYS = ("variant", "stronger in")
"""Keys of a group whose levels are variants."""


class Pair(NamedTuple):
    """Two variants that are compared."""

    reference: str
    changed: str

    def named(self, observations: pl.DataFrame) -> pl.DataFrame:
        """Return the observations of the two, under the names of the measures."""
        if self == VARIANTS:
            return observations
        names = dict(zip(self, VARIANTS, strict=True))
        compared = observations.filter(pl.col("variant").cast(pl.String).is_in(list(self)))
        return compared.with_columns(variant=pl.col("variant").cast(pl.String).replace(names))

    def labelled(self, estimate: Estimate) -> Estimate:
        """Return an estimate with the data's own names of the two variants."""
        if self == VARIANTS:
            return estimate
        labels = dict(zip(VARIANTS, self, strict=True))
        renamed = {
            key: labels.get(str(estimate.group[key]), estimate.group[key]) for key in KEYS if key in estimate.group
        }
        return estimate.replace(group=estimate.group | renamed)


def pairs_of(observations: pl.DataFrame) -> list[Pair]:
    """Return each variant beside the one without a change: `original`, or the first.

    Raises:
        DataError: there is only one variant that is none of the study's.
    """
    variants = [str(level) for level in observations["variant"].drop_nulls().unique(maintain_order=True)]
    if {*variants} <= {*VARIANTS}:
        return [Pair(*VARIANTS)]
    reference = VARIANTS[0] if VARIANTS[0] in variants else variants[0]
    changed = [level for level in variants if level != reference]
    if not changed:
        raise DataError(f"the only variant is {reference!r}. Compare it with another one.", code="data.groups")
    return [Pair(reference, level) for level in changed]


def together(apart: Sequence[Sequence[Estimate]], correction: Correction, alpha: float) -> list[list[Estimate]]:
    """Return the estimates of several changes, each family corrected over all of them."""
    if len(apart) < 2:
        return [list(estimates) for estimates in apart]
    joined = [
        e.replace(family=e.test.family.partition(": ")[0]) if e.test.family else e
        for estimates in apart
        for e in estimates
    ]
    corrected = iter(correct(joined, correction, alpha, "tests of all changes"))
    return [[next(corrected) for _ in estimates] for estimates in apart]


def by_change(estimates: Sequence[Estimate]) -> dict[str, list[Estimate]]:
    """Return the estimates of each change, as if it were the only one; of a single change all, under no name."""
    changes: dict[str, list[Estimate]] = {}
    for e in estimates:
        group = {key: level for key, level in e.group.items() if key != CHANGE}
        changes.setdefault(str(e.group.get(CHANGE, "")), []).append(e.replace(group=group))
    return changes


def each(
    estimates: Sequence[Estimate], chosen: Callable[[Sequence[Estimate]], Sequence[Estimate]]
) -> Iterator[Estimate]:
    """Yield what is chosen of the estimates of each change."""
    for change, of_change in by_change(estimates).items():
        for e in chosen(of_change):
            yield e.replace(group={CHANGE: change, **e.group}) if change else e
