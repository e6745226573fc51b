"""How often the samples of one prompt had one answer, counted as answers are read.

Equal answers alone do not show what made them: draws of one prompt are exchangeable, so a model that is sure of its
answer and an endpoint that repeats itself give the same counts, and no number of alike prompts is expected. The canary
tells the two apart.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from .records import Repeats


class Tally:
    """Collects 24 bytes per answer of a stage, and no text."""

    def __init__(self) -> None:
        self._parts: list[pl.DataFrame] = []

    def see(self, part: pl.DataFrame, prompts: Mapping[bytes, bytes]) -> None:
        """Receive trials, with `key`, `status` and `response`; `prompts` is as in `gather_observations`."""
        answered = part.filter(pl.col("status") == "ok")
        keys = answered["key"]
        shared = pl.Series([prompts.get(key, key) for key in keys], dtype=pl.Binary)
        texts = answered["response"].str.json_path_match("$.text").fill_null("")
        self._parts.append(pl.DataFrame({"prompt": shared.hash(), "key": keys.hash(), "text": texts.hash()}))

    def count(self) -> Repeats | None:
        """Return the counts; None if no prompt has several answers."""
        if not self._parts:
            return None
        draws = pl.concat(self._parts).unique("key")
        texts = draws.group_by("prompt", "text").len("same")
        same = pl.col("same").cast(pl.Int64)
        by_prompt = texts.group_by("prompt").agg(draws=same.sum(), distinct=pl.len(), alike=(same * (same - 1)).sum())
        several = by_prompt.filter(pl.col("draws") > 1)
        if several.is_empty():
            return None
        pairs = several["alike"] / (several["draws"] * (several["draws"] - 1))
        return Repeats(
            prompts=several.height,
            draws=int(several["draws"].sum()),
            alike=int((several["distinct"] == 1).sum()),
            distinct=int(several["distinct"].sum()),
            pairs=float(pairs.mean()),  # type: ignore[arg-type]  # there is at least one
        )
