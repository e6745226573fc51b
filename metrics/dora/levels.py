"""Bias levels: which share of the judgements stands on each step of the scale (Figure 7), and whether they agree."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from ...core.contracts.estimates import Estimate
from ...core.statistics.agreement import agreement, rating_table
from ...core.statistics.units import percent
from ...probes.dora.associations import CELL, PAIR, PLACE
from .means import Measure
from .options import DoraAssociationsOptions
from .pairs import Associations

MEND = "Set the metric's method, salience_level and salience_keep to the study's salience, -_level and -_keep."
STEPS = ("not at all", "slightly", "moderately", "highly", "extremely")
"""The paper, footnote 6: 1 to 5."""
SHARE, AGREEMENT = "level_share", "level_agreement"
SEPARATOR = "\x1f"
JUDGED = "judged"
OTHERS = "levels are of other associations than those that count"


def share_measures(found: Associations) -> Iterator[Measure]:
    """Yield the share of judgements on each step."""
    if "levels" not in found.asked:
        return
    for step, name in enumerate(STEPS, 1):
        value = percent(pl.col("level").round() == step)
        rows = found.levels.select(*PLACE, value=value, status=pl.col("status"))
        yield Measure(name=SHARE, rows=rows, group={"level": name})


def judged_estimates(found: Associations) -> Iterator[Estimate]:
    """Yield how many of the associations that count the judge was asked about, by setting."""
    if "levels" not in found.asked:
        return
    for modality, setting in found.every.select(CELL).unique(maintain_order=True).rows():
        kept, judged = (part.filter(modality=modality, setting=setting) for part in (found.kept, found.judged))
        both = judged.join(kept, on=PAIR, how="semi").height
        same = both == kept.height == judged.height
        told = f"{both} of {kept.height} that count; {judged.height - both} others were judged"
        yield Estimate.from_flat(
            metric=JUDGED,
            group={"modality": modality, "setting": setting},
            value=100 * both / kept.height if kept.height else None,
            unit="%",
            n=kept.height,
            note=f"{told}; a description: no interval" if same else f"{OTHERS}: {told}. {MEND}",
        )


def agreement_estimates(found: Associations, options: DoraAssociationsOptions) -> Iterator[Estimate]:
    """Yield Krippendorff's alpha of the judgements of one association, by setting."""
    for (modality, setting), part in found.levels.group_by(*CELL, maintain_order=True):
        named = part.with_columns(unit=pl.concat_str("descriptor", *PAIR, separator=SEPARATOR))
        table = rating_table(named, ("unit", "judgement", "level"), order=(1.0, 2.0, 3.0, 4.0, 5.0))
        clusters = [unit.split(SEPARATOR)[0] for unit in np.unique(named["unit"].to_numpy())]
        found_ = agreement(table, "ordinal", options.plan, clusters)
        left_out = {"one judgement": found_.single, "no judgement": found_.unrated}
        yield Estimate.from_flat(
            metric=AGREEMENT,
            group={"modality": modality, "setting": setting},
            value=found_.alpha,
            unit="Krippendorff's alpha, ordinal",
            low=found_.low,
            high=found_.high,
            level=options.level,
            interval=f"{options.interval} (descriptor)" if found_.low is not None else "",
            n=found_.units,
            clusters=len(set(clusters)),
            missing={name: count for name, count in left_out.items() if count},
            note="" if found_.alpha is not None else "undefined: no two judgements, or all alike",
        )
