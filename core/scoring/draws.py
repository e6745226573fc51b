"""One draw per prompt, where an endpoint repeats itself: k equal answers are no k draws."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import polars as pl

from ..contracts import PROMPT_KEY, Stage


def one_draw(
    observations: Mapping[str, pl.DataFrame], stages: Sequence[Stage], repeated: Collection[str]
) -> dict[str, pl.DataFrame]:
    """Return the observations with one draw of each prompt in the stages that are repeated.

    Of the draws of a prompt, the first readable one stays, in all rows that it stands in. Rows of a later stage stay
    if they belong to such a row by the factors that both have.
    """
    kept = dict(observations)
    for place, stage in enumerate(stages):
        if stage.name not in repeated or PROMPT_KEY not in kept[stage.name].columns:
            continue
        whole = kept[stage.name]
        frame = kept[stage.name] = _first_draws(whole)
        for later in stages[place + 1 :]:
            shared = [name for name in stage.factors if name in later.factors and name in kept[later.name].columns]
            if shared and not kept[later.name].is_empty():
                kept[later.name] = _belonging(kept[later.name], frame, shared)
    return kept


def _first_draws(frame: pl.DataFrame) -> pl.DataFrame:
    readable = pl.col("key").filter(pl.col("status") == "ok").first()
    first = pl.coalesce(readable, pl.col("key").first()).over(PROMPT_KEY)
    return frame.filter(pl.col("key") == first)


def _belonging(later: pl.DataFrame, frame: pl.DataFrame, shared: list[str]) -> pl.DataFrame:
    # Factors are read from each stage on its own, so that one of nulls only has another type.
    rows = frame.select(pl.col(name).cast(later.schema[name], strict=False) for name in shared).unique()
    return later.join(rows, on=shared, how="semi", nulls_equal=True, maintain_order="left")
