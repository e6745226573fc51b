"""A block of answers with its statistics and intervals, and the parts of an estimate that follow from it."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from ...core.statistics.arrays import Array
from ...core.statistics.cluster import Resampling, bootstrap
from ...core.statistics.crossed import crossed_bootstrap
from ...core.statistics.effects import defined, p_of
from ...core.statistics.labels import label_test
from ...core.statistics.proportions import scaled
from .cells import DELTAS, GIVEN, RANGES, STATISTICS, Block, distances, statistics
from .options import SubtleMetricOptions


class Computed(msgspec.Struct, frozen=True):
    """A block with its statistics and their intervals, each (units, statistics)."""

    block: Block
    value: Array
    low: Array
    high: Array
    judged: Array | None = None
    """Ends of the 1 - 2 alpha and the 1 - alpha interval (2, 2, units, statistics), where equivalence is asked for."""


def computed_of(block: Block, options: SubtleMetricOptions) -> Computed:
    """Compute the statistics of a block, with intervals where the clusters are known."""
    value, plan = statistics(block.totals), options.plan
    if not block.clusters:
        low, high = np.full((2, *value.shape), np.nan)
        return Computed(block, value, low, high)
    levels = (1 - 2 * options.alpha, 1 - options.alpha) if options.margin is not None else ()
    judged = [_ends_of(block, msgspec.structs.replace(plan, level=level)) for level in levels]
    return Computed(block, value, *_ends_of(block, plan), np.array(judged) if judged else None)


def _ends_of(block: Block, plan: Resampling) -> tuple[Array, Array]:
    if len(block.clusters) == 2:
        return crossed_bootstrap(block.cells, statistics, plan, RANGES)
    return bootstrap(block.cells[:, 0], statistics, plan, RANGES)


def row_of(computed: Computed, unit: int, name: Any, scale: float, options: SubtleMetricOptions) -> dict[str, Any]:
    """Return what an estimate says of its value, its interval and what it rests on."""
    column = STATISTICS.index(name)
    value, low, high = (defined(float(a[unit, column])) for a in (computed.value, computed.low, computed.high))
    cells = computed.block.cells[:, :, unit, :, 0].sum(axis=-1)
    return {
        "group": dict(computed.block.groups[unit]),
        "value": scaled(value, scale),
        "low": scaled(low, scale),
        "high": scaled(high, scale),
        "level": options.level,
        "interval": f"{options.interval} ({' x '.join(computed.block.clusters)})" if low is not None else "",
        "n": int(cells.sum()),
        "clusters": _clusters(cells) if computed.block.clusters else None,
        "missing": lost_in(computed.block, unit, GIVEN),
        "note": _note(computed.block, value, low),
    }


def _clusters(cells: Array) -> int:
    """Count the clusters of the way that has fewer."""
    ways = [int((cells.sum(axis=axis) > 0).sum()) for axis in (1, 0)]
    return min(ways) if cells.shape[1] > 1 else ways[0]


def _note(block: Block, value: float | None, low: float | None) -> str:
    if value is None:
        return "undefined: no readable answer to one of the polarities, or all alike"
    if not block.clusters:
        return "no interval: clusters are not known"
    alone = " x ".join(block.clusters)
    notes = [
        f"{name} of {count} answers not known: clustered by {alone} alone" for name, count in block.unknown.items()
    ]
    return "; ".join([*notes, *(["no interval: no variation between clusters"] if low is None else [])])


def lost_in(block: Block, unit: int, given: tuple[str, ...]) -> dict[str, int]:
    """Count the unreadable answers to terms of these polarities, by status."""
    counts: dict[str, int] = {}
    for name in given:
        for status, count in block.missing[unit][name].items():
            counts[status] = counts.get(status, 0) + count
    return counts


def permuted(block: Block, unit: int, options: SubtleMetricOptions) -> Array:
    """Return p of the differences and of tau-c (coded by polarity), whole terms permuted between the polarities."""
    count = len(DELTAS) + 1
    if "term" not in block.clusters:
        return np.full(count, np.nan)
    axis = block.clusters.index("term")
    sums = block.cells[:, :, unit].sum(axis=1 - axis)
    return label_test(sums, distances, options.plan)


def permutation(p: float, family: str) -> dict[str, Any]:
    """Return the test of an estimate; nothing where it is undefined."""
    if (found := p_of(p)) is None:
        return {}
    return {"test": "permutation of terms between polarities", "p": found, "family": family}


def family_of(group: dict[str, Any], what: str) -> str:
    """Name the family of tests on `what` in groups of this kind."""
    return f"{what}, by {' and '.join(group)}" if group else f"{what}, whole study"
