"""Means over associations by modality, setting and dimension, and differences between settings: rows and designs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import combinations

import polars as pl

from ...core.contracts.estimates import Estimate
from ...core.statistics.declaration import Declaration
from ...core.statistics.estimates import undefined
from ...core.statistics.measures import SummedMeasure
from ...probes.dora.documented import mark_documented
from ...probes.dora.terms import CELL, PLACE
from .counts import Associations
from .measures import (
    ABOVE,
    AVERAGED,
    BY,
    CORRECTED,
    EACH,
    JUDGE_ABOVE,
    LEVEL,
    NEW,
    STEP_SHARES,
    UNDOCUMENTED,
    VALENCES,
    VALUE,
    corrected,
)
from .options import DoraAssociationsOptions
from .people import error_rows, people_rows

OF, UNIT = "of", "unit"
"""Columns that say which measures a row is for, and what it is called."""
NUMERIC = pl.col(VALUE).cast(pl.Float64)


def asked_of(found: Associations, options: DoraAssociationsOptions) -> list[str]:
    """Return what is averaged over associations, as far as it was asked about."""
    names = [name for name, (stage, _) in VALENCES.items() if stage in found.asked]
    new = [] if options.documented is None else [UNDOCUMENTED]
    return [*names, *([LEVEL] if "levels" in found.asked else []), *new]


def nothing_counts(found: Associations, options: DoraAssociationsOptions) -> Iterator[Estimate]:
    """Yield the means, without a value, of each setting with associations of which none counts."""
    every, kept = (frame.select(CELL).unique(maintain_order=True) for frame in (found.every, found.kept))
    for modality, setting in every.join(kept, on=CELL, how="anti", maintain_order="left").rows():
        for measure in (own for name in asked_of(found, options) for own in averages_of(name)):
            yield Estimate.from_flat(
                metric=measure.name,
                group={"modality": modality, "setting": setting, **measure.group},
                value=None,
                unit=measure.unit,
                level=options.level,
                clusters=0,
                **undefined("no association counts"),
            )


def rows_of(found: Associations, options: DoraAssociationsOptions) -> pl.DataFrame:
    """Return the rows of all measures that were asked about: `OF`, `UNIT`, `PLACE`, `value` and `status`."""
    parts = {name: _averaged(name, found, options) for name in asked_of(found, options)}
    parts |= {name + EACH: _by_descriptor(rows) for name, rows in parts.items() if name in AVERAGED}
    if found.people is not None:
        parts |= {ABOVE: people_rows(found, found.people), CORRECTED: error_rows(found, found.people)}
    nothing = pl.DataFrame(schema=dict.fromkeys((OF, UNIT, *PLACE, "status"), pl.String) | {VALUE: pl.Float64})
    number = pl.int_range(pl.len()).cast(pl.String).alias(UNIT)
    named = [
        rows.with_columns(pl.lit(name).alias(OF), NUMERIC, *([] if UNIT in rows.columns else [number]))
        for name, rows in parts.items()
    ]
    # Groups come in plan order.
    orders = {name: found.every[name].drop_nulls().unique(maintain_order=True) for name in BY[-1]}
    ordered = [pl.col(name).cast(pl.Enum(order)) for name, order in orders.items()]
    return pl.concat([nothing, *named], how="diagonal_relaxed").with_columns(ordered)


def _averaged(name: str, found: Associations, options: DoraAssociationsOptions) -> pl.DataFrame:
    if name == LEVEL:
        return found.levels.select(*PLACE, "status", pl.col("level").alias(VALUE))
    if name == UNDOCUMENTED:
        marked = mark_documented(found.kept, str(options.documented))
        return marked.select(*PLACE, (~pl.col("documented")).alias(VALUE), status=pl.lit("ok"))
    stage, label = VALENCES[name]
    return found.kept.select(*PLACE, (pl.col(stage) == label).alias(VALUE), status=f"{stage}_status")


def _by_descriptor(rows: pl.DataFrame) -> pl.DataFrame:
    """Return one row per descriptor: the mean of its values; missing where it has none."""
    there = NUMERIC.is_not_null()
    status = pl.when(there.any()).then(pl.lit("ok")).otherwise(pl.col("status").first())
    each = rows.group_by(PLACE, maintain_order=True).agg(NUMERIC.mean(), status.alias("status"))
    return each.with_columns(pl.concat_str("dimension", "descriptor", separator=": ").alias(UNIT))


def designs_of(rows: pl.DataFrame) -> Iterator[Declaration]:
    """Yield a design per kind of rows; all draw whole descriptors."""
    for (name,), own in rows.group_by(OF, maintain_order=True):
        measures = tuple(_measures(str(name), own))
        mine = partial(pl.DataFrame.filter, of=name)
        yield Declaration(measures=measures, groups=((), *BY), clusters=("descriptor",), row=UNIT, rows=mine)


def averages_of(name: str) -> tuple[SummedMeasure, ...]:
    """Return the means of a value over associations, and over descriptors."""
    if name == UNDOCUMENTED:
        return (NEW,)
    return (AVERAGED[name].over(name), *(STEP_SHARES if name == LEVEL else ()), AVERAGED[name].each(name))


def _measures(name: str, rows: pl.DataFrame) -> Iterator[SummedMeasure]:
    if name == ABOVE:
        yield JUDGE_ABOVE
    elif name == CORRECTED:
        for cell, own in rows.group_by(*CELL, maintain_order=True):
            group = dict(zip(CELL, map(str, cell), strict=True))
            known = own.filter("known")["descriptor"]
            facts = {"people": len(known), "descriptors": known.n_unique()}
            yield corrected(group=group, where=_at(**group), facts=facts)
    else:
        kind = name.removesuffix(EACH)
        yield from (own for own in averages_of(kind) if own.name.endswith(EACH) == (name != kind))
    for (modality,), own in rows.group_by("modality", maintain_order=True) if name in AVERAGED else ():
        for first, second in combinations(own["setting"].cast(pl.String).unique(maintain_order=True), 2):
            yield AVERAGED[name].between(
                name,
                first,
                second,
                where=_at(modality=str(modality)),
                group={"modality": str(modality), "setting": first, "against": second},
                family=lambda by, own=f"{name} between settings of {modality}": own,
            )


def _at(**levels: str) -> pl.Expr:
    return pl.all_horizontal(pl.col(name) == level for name, level in levels.items())
