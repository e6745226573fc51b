"""One draw per prompt, where an endpoint repeats itself: k equal answers are no k draws."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import polars as pl

from ..contracts import PROMPT_KEY, Stage


def one_draw(
    observations: Mapping[str, pl.DataFrame], stages: Sequence[Stage], repeated: Collection[str]
) -> dict[str, pl.DataFrame]:
    """Return the observations with one draw of each prompt in the stages that are repeated.

    Of the draws of a prompt, the first readable one stays. Rows of a later stage stay if they belong to a row that
    does, by the factors that both have.
    """
    kept = dict(observations)
    for place, stage in enumerate(stages):
        if stage.name not in repeated or PROMPT_KEY not in kept[stage.name].columns:
            continue
        whole = kept[stage.name]
        frame = kept[stage.name] = _first_draws(whole, [name for name in stage.factors if name in whole.columns])
        for later in stages[place + 1 :]:
            shared = [name for name in stage.factors if name in later.factors and name in kept[later.name].columns]
            if shared and not kept[later.name].is_empty():
                kept[later.name] = _belonging(kept[later.name], frame, shared)
    return kept


def _first_draws(frame: pl.DataFrame, factors: Sequence[str]) -> pl.DataFrame:
    """Return the first readable row of each prompt, or else its first, in each cell that it belongs to.

    Two cells may ask one prompt. What tells the draws of a prompt apart, and not its cells, are the factors that vary
    within most prompts, such as the number of the sample.
    """
    varying = frame.group_by(PROMPT_KEY).agg(pl.col(name).n_unique() > 1 for name in factors)
    numbers = {name for name in factors if 2 * varying[name].sum() > varying.height}
    cell = [PROMPT_KEY, *(name for name in factors if name not in numbers)]
    ordered = frame.with_row_index("_row").sort(pl.col("status") != "ok", "_row")
    return ordered.unique(cell, keep="first", maintain_order=True).sort("_row").drop("_row")


def _belonging(later: pl.DataFrame, frame: pl.DataFrame, shared: list[str]) -> pl.DataFrame:
    # Factors are read from each stage on its own, so that one of nulls only has another type.
    rows = frame.select(pl.col(name).cast(later.schema[name], strict=False) for name in shared).unique()
    return later.join(rows, on=shared, how="semi", nulls_equal=True, maintain_order="left")
