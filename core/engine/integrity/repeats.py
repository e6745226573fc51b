"""How often the samples of one prompt had one answer, counted as answers are read.

Equal answers alone do not show what made them: draws of one prompt are exchangeable, so a model that is sure of its
answer and an endpoint that repeats itself give the same counts, and no number of alike prompts is expected. The canary
tells the two apart.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from .records import Repeats

COUNTED = 4_000_000
"""Answers that are counted at once."""


class Tally:
    """Collects 24 bytes per answer of a stage, and no text."""

    def __init__(self) -> None:
        self._parts: list[pl.DataFrame] = []

    def see(self, part: pl.DataFrame) -> None:
        """Receive trials, with `key`, `prompt`, `status` and `response`."""
        answered = part.filter(pl.col("status") == "ok")
        texts = answered["response"].str.json_path_match("$.text").fill_null("")
        hashes = {"prompt": answered["prompt"].hash(), "key": answered["key"].hash(), "text": texts.hash()}
        self._parts.append(pl.DataFrame(hashes))

    def count(self) -> Repeats | None:
        """Return the counts; None if no prompt has several answers."""
        if not self._parts:
            return None
        # Some prompts at a time: what counting takes is several times what is counted.
        some = 1 + sum(part.height for part in self._parts) // COUNTED
        chosen = (pl.col("prompt") % some == rest for rest in range(some))
        several = pl.concat(_by_prompt([part.filter(own) for part in self._parts]) for own in chosen)
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


def _by_prompt(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return the draws of each prompt that has several, the distinct ones, and the ordered pairs of equal ones."""
    texts = pl.concat(parts).unique("key").group_by("prompt", "text").len("same")
    same = pl.col("same").cast(pl.Int64)
    counts = texts.group_by("prompt").agg(draws=same.sum(), distinct=pl.len(), alike=(same * (same - 1)).sum())
    return counts.filter(pl.col("draws") > 1)
