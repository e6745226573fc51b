"""From stored answers to observations: a frame of factors, outcomes, `status`, `reason` and `key`. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from io import BytesIO

import polars as pl

from ..catalogue.study import ALWAYS, STAGE
from ..contracts import Stage, Unreadable
from ..contracts.canonical import decode_response
from ..contracts.records import Scalar


def gather_observations(
    stage: Stage,
    parts: Iterable[pl.DataFrame],
    failures: Mapping[bytes, str],
    blobs: Callable[[str], bytes] | None = None,
) -> pl.DataFrame:
    """Return the observations of trials that arrive in parts, after the stage's review.

    Args:
        stage: reads the responses.
        parts: its trials, in parts.
        failures: reason for a missing answer, by key.
        blobs: bytes of an image by its sha256, if there is a store.
    """
    frames = [build_observations(stage, part, failures) for part in parts]
    if not frames:
        return build_observations(stage, _none(), failures)
    return stage.review(pl.concat(frames, how="diagonal_relaxed"), blobs)


def _none() -> pl.DataFrame:
    columns = ("trial", "factors", "status", "response")
    return pl.DataFrame(schema=dict.fromkeys(columns, pl.String) | {"key": pl.Binary})


def stack(frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Return the observations of all stages in one frame, with a column `stage`; columns a stage lacks are null."""
    named = [frame.with_columns(pl.lit(name).alias(STAGE)) for name, frame in frames.items()]
    return pl.concat(named, how="diagonal_relaxed")


def unstack(frame: pl.DataFrame, stages: Iterable[Stage]) -> dict[str, pl.DataFrame]:
    """Return the observations by stage: the inverse of `stack`."""
    return {
        stage.name: frame.filter(pl.col(STAGE) == stage.name).select(
            name for name in frame.columns if name in {*stage.factors, *stage.outcomes, "trial", *ALWAYS}
        )
        for stage in stages
    }


def build_observations(stage: Stage, trials: pl.DataFrame, failures: Mapping[bytes, str]) -> pl.DataFrame:
    """Return one row per trial, in plan order.

    Args:
        stage: reads the responses.
        trials: `trial`, `factors` (JSON), `key`, `status` (null without an answer) and `response` (JSON).
        failures: reason for a missing answer, by key.
    """
    factors = _factors(stage, trials)
    reasons = [failures.get(key) for key in trials["key"]] if failures else [None] * trials.height
    known = pl.Series("reason", reasons, dtype=pl.String)
    frame = factors.with_columns(trials["trial"], trials["key"], trials["status"].fill_null("failed"), known)
    readable = frame["status"] == "ok"
    outcomes = _read(stage, factors.filter(readable), trials.filter(readable)["response"])
    rows = frame.with_row_index("_row")
    read = rows.filter(readable).select("_row").hstack(outcomes)
    joined = rows.join(read, on="_row", how="left", maintain_order="left")
    unreadable = pl.col("_unreadable").is_not_null()
    return joined.with_columns(
        status=pl.when(unreadable).then(pl.lit("unreadable")).otherwise(pl.col("status")),
        reason=pl.coalesce("_unreadable", "reason"),
    ).drop("_row", "_unreadable")


def _factors(stage: Stage, trials: pl.DataFrame) -> pl.DataFrame:
    if trials.is_empty():
        return pl.DataFrame(schema=dict.fromkeys(stage.factors, pl.String))
    lines = "\n".join(trials["factors"].to_list())
    return pl.read_ndjson(BytesIO(lines.encode()), infer_schema_length=None)


def _read(stage: Stage, factors: pl.DataFrame, responses: pl.Series) -> pl.DataFrame:
    """Return the outcomes of readable answers; `_unreadable` has the reason for the others."""
    if (quick := stage.read_frame(factors.with_columns(responses))) is not None:
        return quick.with_columns(pl.lit(None, dtype=pl.String).alias("_unreadable"))
    rows: list[dict[str, Scalar]] = []
    for cell, response in zip(factors.iter_rows(named=True), responses, strict=True):
        outcome = stage.read(cell, decode_response(response))
        if isinstance(outcome, Unreadable):
            rows.append({"_unreadable": outcome.reason})
        else:
            rows.append({**outcome, "_unreadable": None})
    columns = [*stage.outcomes, "_unreadable"]
    frame = pl.DataFrame({name: [row.get(name) for row in rows] for name in columns}, strict=False)
    return frame.with_columns(pl.col("_unreadable").cast(pl.String))
