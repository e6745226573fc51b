"""How many units stand behind a number: twin pairs, or else distinct prompts, in each group that it compares.

Levels of a facet are no units: 50 answers about two words may be those of many prompts, and one prompt asked 50 times
is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
import polars as pl

from ..catalogue.refusal_stage import last_measured
from ..contracts import PROMPT_KEY
from ..contracts.estimates import Estimate
from ..contracts.sizes import FEWEST_UNITS
from ..contracts.words import counted
from ..scoring.score import Scores

UNIT, SIDE = "_unit", "_side"
PAIRS, PROMPTS = "twin pair", "distinct prompt"
FEW = (
    "In {groups} there are fewer than {fewest} {what}s in a compared group, so no number of it is shown here; all of "
    "them stand under Estimates of the report."
)
TOO_FEW = (
    "A compared group has {units} here, and fewer than {fewest} show nothing: no number stands here. Ask a larger part."
)


class Units(NamedTuple):
    """Units of the smallest group that a number compares."""

    number: int
    what: str


class Counted(msgspec.Struct, frozen=True):
    """Readable answers by unit and compared group, from which the units of every number are counted."""

    rows: pl.DataFrame
    pairs: bool
    """Whether a unit holds several compared groups."""

    def behind(self, e: Estimate) -> Units | None:
        """Return the units of a number; None where the rows do not have what it is about."""
        if any(name not in self.rows.columns for name in e.group):
            return None
        # A level that no row has names two that are compared, such as `male minus female`.
        levels = {name: _word(level) for name, level in e.group.items()}
        levels = {name: word for name, word in levels.items() if word is None or (self.rows[name] == word).any()}
        mine = self.rows.filter(*(pl.col(name).eq_missing(pl.lit(word)) for name, word in levels.items()))
        if self.pairs:
            sides = mine.group_by(UNIT).agg(pl.col(SIDE).n_unique().alias("sides"))
            if twins := sides.filter(pl.col("sides") > 1).height:
                return Units(twins, PAIRS)
            return Units(sides.height, PROMPTS)
        by_side = mine.group_by(SIDE).agg(pl.col(UNIT).n_unique().alias("units"))
        return Units(int(by_side["units"].min() or 0) if by_side.height else 0, PROMPTS)  # type: ignore[arg-type]


def counted_units(scores: Scores, estimates: Iterable[Estimate]) -> Counted | None:
    """Return the units of a run's last stage, by all that the estimates tell apart; None where nothing tells them."""
    stage = last_measured(scores.stages).name
    columns = scores.frames.schema(stage).names()
    key = PROMPT_KEY if PROMPT_KEY in columns else "key"
    if key not in columns:
        return None
    design = scores.manifest.design
    declared, unit = ((), []) if design is None else (design.declared, list(design.unit))
    groups = [factor for factor in declared if factor.role == "group" and factor.name in columns]
    paired = bool(groups) and {*unit} <= {*columns} and not {group.factor or group.name for group in groups} & {*unit}
    levels = sorted({name for e in estimates for name in e.group if name in columns})
    names = [pl.col(group.name).cast(pl.String) for group in groups]
    rows = scores.lazy(stage).filter(
        pl.col("status") == "ok",
        *(~name.is_in(group.controls) for name, group in zip(names, groups, strict=True) if group.controls),
    )
    if not (paired and unit) and rows.select(pl.col(key).is_null().all()).collect(engine="streaming").item():
        return None  # a table of published scores has no prompts: rows alone count
    chosen = rows.select(
        *(pl.col(name).cast(pl.String) for name in levels),
        (pl.struct(unit) if paired and unit else pl.col(key)).hash().alias(UNIT),
        (pl.concat_str(names, separator="/", ignore_nulls=True) if names else pl.lit("")).alias(SIDE),
    )
    return Counted(chosen.unique().collect(engine="streaming"), paired)


def _word(level: object) -> str | None:
    return None if level is None else str(level)


def split(units: Counted | None, estimates: Sequence[Estimate]) -> tuple[list[Estimate], list[tuple[Estimate, Units]]]:
    """Return the estimates with enough units, and those without, each with its units."""
    enough: list[Estimate] = []
    few: list[tuple[Estimate, Units]] = []
    for e in estimates:
        behind = units.behind(e) if units is not None and e.value is not None else None
        if behind is None and e.value is not None and 0 < e.n < FEWEST_UNITS:
            behind = Units(e.n, "answer")  # what it is about is no column: units are no more than its answers
        if behind is None or behind.number >= FEWEST_UNITS:
            enough.append(e)
        else:
            few.append((e, behind))
    return enough, few


def few_words(few: Sequence[tuple[Estimate, Units]], *, every: bool) -> str:
    """Return that estimates are not shown, as too few units stand behind them."""
    most = max((units for _, units in few), key=lambda units: units.number)
    if every:
        return TOO_FEW.format(units=counted(most.number, most.what), fewest=FEWEST_UNITS)
    return FEW.format(groups=counted(len(few), "group"), what=most.what, fewest=FEWEST_UNITS)
