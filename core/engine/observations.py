"""From stored answers to observations: a frame of factors, outcomes, `status`, `reason` and `key`.

A stage that asks again has `first` too: the status of the first answer to each trial. Where a prompt was asked several
times there is `prompt_key`, which all samples of one prompt share.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from io import BytesIO

import msgspec
import numpy as np
import polars as pl

from ..catalogue.instrument import ALWAYS, FIRST, STAGE
from ..catalogue.refusal_stage import last_measured
from ..contracts import PROMPT_KEY, REASONING, LargeStage, Stage, Unreadable
from ..contracts.canonical import decode_response
from ..contracts.records import AnyResponse, Classify, Draw, Generate, Scalar
from ..design import Roles
from ..store import RunProof, RunRow, Store, first_statuses, read_failures, stream_trials, trial_counts
from ..store.damage import damaged
from .integrity.repeats import Tally
from .reading import as_read, read_answer, read_part, read_status
from .spilled import SPILL, Spilled

TRIALS = {"trial": pl.String, "factors": pl.String, "key": pl.Binary, "status": pl.String, "response": pl.String}
"""Columns of recorded trials: factors and response as JSON, status and response null without an answer."""
UNFINISHED = ("running", "interrupted", "failed")
"""States of a run that was not asked to its end."""
DIGITS = 16
"""Of `prompt_key`."""


def gather_observations(
    stage: Stage,
    parts: Iterable[pl.DataFrame],
    failures: Mapping[bytes, str],
    blobs: Callable[[str], bytes] | None = None,
    *,
    earlier: Mapping[bytes, str] | None = None,
    prompts: Mapping[bytes, bytes] | None = None,
    reasoning: bool = False,
    design: Roles | None = None,
) -> pl.DataFrame:
    """Return the observations of trials that arrive in parts, after the stage's review.

    Args:
        stage: reads the responses.
        parts: its trials, in parts.
        failures: reason for a missing answer, by key.
        blobs: bytes of an image by its sha256, if there is a store.
        earlier: status of the first answer to a trial that was asked again, by the key of its last request.
        prompts: key that the samples of a prompt share, by their own; a key that is not there stands for itself.
        reasoning: whether a metric needs the reasoning of answers in words.
        design: adds the parts of what the trials vary.
    """
    named = parts if prompts is None else (_asked(part, prompts) for part in parts)
    observed = _observed(stage, _as_read(stage, named), failures, earlier or {}, reasoning=reasoning)
    return _reviewed(stage, observed, blobs, design)


def _as_read(stage: Stage, parts: Iterable[pl.DataFrame], tally: Tally | None = None) -> Iterator[pl.DataFrame]:
    """Yield trials with their responses as they are read, and count repeats of answers in words."""
    for stored in parts:
        part = read_part(stored) if stage.operation in (Generate, Classify) else stored
        if tally is not None and stage.operation is Generate:
            tally.see(part)
        yield part


def _reviewed(
    stage: Stage, observed: Iterable[pl.DataFrame], blobs: Callable[[str], bytes] | None, design: Roles | None
) -> pl.DataFrame:
    """Return the observations of all parts in one frame, after the stage's review."""
    frames = list(observed)
    if not frames:
        return with_parts(build_observations(stage, pl.DataFrame(schema=TRIALS), {}), design)
    return with_parts(stage.review(_without_own(pl.concat(frames, how="diagonal_relaxed"), stage), blobs), design)


def with_parts(observations: pl.DataFrame, design: Roles | None) -> pl.DataFrame:
    """Return observations with a column for each part of what a study declares that it varies."""
    return observations if design is None else design.join(observations)


def _asked(part: pl.DataFrame, prompts: Mapping[bytes, bytes]) -> pl.DataFrame:
    shared = [prompts.get(key, key) for key in part["key"]]
    return part.with_columns(prompt=pl.Series(shared, dtype=pl.Binary))


def _observed(
    stage: Stage,
    parts: Iterable[pl.DataFrame],
    failures: Mapping[bytes, str],
    earlier: Mapping[bytes, str],
    *,
    reasoning: bool,
) -> Iterator[pl.DataFrame]:
    """Yield the observations of each part of the trials, whose responses are as they are read."""
    for part in parts:
        frame = _with_reasoning(stage, part, build_observations(stage, part, failures), wanted=reasoning)
        if PROMPT_KEY not in frame.columns:
            shared = part["prompt" if "prompt" in part.columns else "key"]
            frame = frame.with_columns(shared.bin.slice(0, DIGITS // 2).bin.encode("hex").alias(PROMPT_KEY))
        yield frame if stage.rules.attempts == 1 else _with_first(frame, earlier)


def _without_own(frame: pl.DataFrame, stage: Stage) -> pl.DataFrame:
    """Leave the keys of prompts out where no prompt was asked several times."""
    added = _is_added(stage, frame.columns)
    return frame.drop(PROMPT_KEY) if added and frame[PROMPT_KEY].n_unique() == frame.height else frame


def _is_added(stage: Stage, columns: Collection[str]) -> bool:
    """Return whether the keys of prompts are among the columns, and are not the stage's own."""
    return PROMPT_KEY in columns and PROMPT_KEY not in (*stage.factors, *stage.outcomes)


def _with_reasoning(stage: Stage, part: pl.DataFrame, frame: pl.DataFrame, *, wanted: bool) -> pl.DataFrame:
    """Add what the models wrote before their answers; the rows are those of the part, in its order."""
    if not wanted or stage.operation is not Generate or REASONING in frame.columns:
        return frame
    return frame.with_columns(reasoning_in(part["response"]).alias(REASONING))


def reasoning_in(responses: pl.Series) -> pl.Series:
    """Return what the models wrote before their answers, null where nothing, of responses as they are read."""
    reasoning = responses.str.json_path_match(f"$.{REASONING}")
    return reasoning.set(reasoning == "", None)


def observe_stage(store: Store, run: int, stage: Stage) -> pl.DataFrame:
    """Return the observations of a stage of a run in memory, from the store alone."""
    trials, failures, earlier = _recorded(store, run, stage, unfinished=False)
    return gather_observations(stage, trials, failures, store.blob, earlier=earlier)


def _recorded(
    store: Store, run: int, stage: Stage, *, unfinished: bool, proof: RunProof | None = None
) -> tuple[Iterator[pl.DataFrame], dict[bytes, str], dict[bytes, str]]:
    """Return a stage's trials in parts, and by key the reasons of failed calls and the statuses of first answers."""
    earlier = first_statuses(store, run, stage.name, read_status, proof) if stage.rules.attempts > 1 else {}
    trials = stream_trials(store, run, stage.name, prompts=_has_samples(stage), check=proof)
    failures = read_failures(store, run)
    if unfinished:
        trials = (part.filter(were_asked(part, failures)) for part in trials)
    return trials, failures, earlier


def spill_stage(
    store: Store,
    run: RunRow,
    stage: Stage,
    tally: Tally | None = None,
    *,
    reasoning: bool = False,
    proof: RunProof | None = None,
    design: Roles | None = None,
) -> pl.DataFrame | Spilled:
    """Return the same; those of a large stage in files. `tally` counts repeats as they are read.

    `reasoning`: with what models wrote before their answers. Of an unfinished run, trials that were not asked are left
    out. `proof` checks the rows of the whole run. `design` adds the parts of what the trials vary.
    """
    trials, failures, earlier = _recorded(store, run.id, stage, unfinished=run.state in UNFINISHED, proof=proof)
    observed = _observed(stage, _as_read(stage, trials, tally), failures, earlier, reasoning=reasoning)
    # A review marks rows by what others are, and sees all at once.
    reviewed = type(stage).review is not Stage.review
    if reviewed or trial_counts(store, run.id).get(stage.name, 0) < SPILL:
        return _reviewed(stage, observed, store.blob, design)
    spilled = Spilled(with_parts(part, design) for part in observed)
    if _is_added(stage, spilled.schema) and not _repeats(spilled):
        spilled.without(PROMPT_KEY)
    return spilled


def were_asked(trials: pl.DataFrame, failures: Mapping[bytes, str]) -> pl.Series:
    """Return which trials of an unfinished run have an answer or a failed call."""
    failed = pl.Series([key in failures for key in trials["key"]], dtype=pl.Boolean)
    return trials["status"].is_not_null() | failed


def _has_samples(stage: Stage) -> bool:
    return stage.operation in (Generate, Draw)


def _repeats(whole: Spilled) -> bool:
    """Return whether any prompt was asked several times. Its samples mostly follow each other."""
    if any(part[PROMPT_KEY].is_duplicated().any() for part in whole.parts()):
        return True
    hashes = np.sort(np.concatenate([part[PROMPT_KEY].hash().to_numpy() for part in whole.parts()]))
    return bool((hashes[1:] == hashes[:-1]).any())


def _with_first(frame: pl.DataFrame, earlier: Mapping[bytes, str]) -> pl.DataFrame:
    first = pl.Series(FIRST, [earlier.get(key) for key in frame["key"]], dtype=pl.String)
    return frame.with_columns(first.fill_null(frame["status"]))


def stack(frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Return the observations of all stages in one frame, with a column `stage`; columns a stage lacks are null."""
    named = [frame.with_columns(pl.lit(name).alias(STAGE)) for name, frame in frames.items()]
    return pl.concat(named, how="diagonal_relaxed")


def unstack(frame: pl.DataFrame, stages: Sequence[Stage]) -> dict[str, pl.DataFrame]:
    """Return the observations by stage: the inverse of `stack`. Those of one stage are of the last that is measured."""
    if STAGE not in frame.columns:
        return {last_measured(stages).name: frame}
    return {
        stage.name: frame.filter(pl.col(STAGE) == stage.name).select(
            name
            for name in frame.columns
            if name in {*stage.factors, *stage.outcomes, "trial", *ALWAYS, FIRST, PROMPT_KEY, REASONING}
        )
        for stage in stages
    }


def build_observations(stage: Stage, trials: pl.DataFrame, failures: Mapping[bytes, str]) -> pl.DataFrame:
    """Return one row per trial, in plan order.

    Args:
        stage: reads the responses.
        trials: `trial`, `factors` (JSON), `key`, `status` (null without an answer) and `response` (JSON), the last two
            as `read_part` gives them.
        failures: reason for a missing answer, by key.
    """
    factors = _factors(stage, trials)
    # An answer that was given at last has no reason, though a call for it failed before.
    missing = trials["status"].is_null()
    reasons = [failures.get(key) for key in trials["key"].filter(missing)]
    why = pl.Series("reason", [None], dtype=pl.String).new_from_index(0, trials.height)
    why = why.scatter(missing.arg_true(), reasons) if reasons else why
    frame = factors.with_columns(trials["trial"], trials["key"], trials["status"].fill_null("failed"), why)
    rows, readable = frame.with_row_index("_row"), frame["status"] == "ok"
    outcomes = _read(stage, factors.filter(readable), trials.filter(readable)["response"])
    read = rows.filter(readable).select("_row").hstack(outcomes)
    refused = frame["status"] == "refused"
    if refused.any():
        behind = _read_refused(stage, rows.filter(refused), factors.filter(refused), trials.filter(refused)["response"])
        read = pl.concat([read, behind], how="diagonal_relaxed")
    joined = rows.join(read.with_columns(_read=True), on="_row", how="left", maintain_order="left")
    unreadable = pl.col("_unreadable").is_not_null()
    status = pl.when(unreadable).then(pl.lit("unreadable")).when("_read").then(pl.lit("ok"))
    return joined.with_columns(
        status=status.otherwise(pl.col("status")), reason=pl.coalesce("_unreadable", "reason")
    ).drop("_row", "_unreadable", "_read")


def with_responses(
    stage: Stage,
    observations: pl.DataFrame,
    factors: Sequence[Mapping[str, Scalar]],
    responses: Iterable[AnyResponse],
) -> pl.DataFrame | None:
    """Return observations with what other responses to the same trials say; None where one of them is not read.

    Args:
        stage: reads the responses one by one, and reviews nothing.
        observations: of the trials, every one of status ok.
        factors: of the trials, in the order of the rows.
        responses: in the same order.
    """
    outcomes: list[Mapping[str, Scalar]] = []
    for row, response in zip(factors, responses, strict=True):
        read = as_read(response)
        outcome = stage.read(row, read) if read.status == "ok" else Unreadable(read.status)
        if isinstance(outcome, Unreadable):
            return None
        outcomes.append(outcome)
    columns = {name: pl.Series(name, [row.get(name) for row in outcomes], strict=False) for name in stage.outcomes}
    return observations.with_columns(*columns.values())


def _factors(stage: Stage, trials: pl.DataFrame) -> pl.DataFrame:
    if trials.is_empty():
        return pl.DataFrame(schema=dict.fromkeys(stage.factors, pl.String))
    lines = "\n".join(trials["factors"].to_list())
    try:
        return pl.read_ndjson(BytesIO(lines.encode()), infer_schema_length=None)
    except pl.exceptions.PolarsError:
        raise damaged(f"stage {stage.name!r}", "the factors of a trial cannot be read") from None


def _read(stage: Stage, factors: pl.DataFrame, responses: pl.Series) -> pl.DataFrame:
    """Return the outcomes of readable answers; `_unreadable` has the reason for the others."""
    if isinstance(stage, LargeStage) and (quick := stage.read_frame(factors.with_columns(responses))) is not None:
        return quick.with_columns(pl.lit(None, dtype=pl.String).alias("_unreadable"))
    rows: list[dict[str, Scalar]] = []
    for cell, response in zip(factors.iter_rows(named=True), responses, strict=True):
        outcome = stage.read(cell, decode_response(response))
        if isinstance(outcome, Unreadable):
            rows.append({"_unreadable": outcome.reason})
        else:
            rows.append({**outcome, "_unreadable": None})
    return _table(rows, [*stage.outcomes, "_unreadable"])


def _read_refused(stage: Stage, rows: pl.DataFrame, factors: pl.DataFrame, responses: pl.Series) -> pl.DataFrame:
    """Return `_row` and the outcomes of those refused answers that can be read."""
    outcomes: list[dict[str, Scalar]] = []
    for row, cell, response in zip(rows["_row"], factors.iter_rows(named=True), responses, strict=True):
        reply = msgspec.structs.replace(decode_response(response), status="refused")
        outcome = read_answer(stage, cell, reply)
        if outcome is not None and not isinstance(outcome, Unreadable):
            outcomes.append({"_row": row, **outcome, "_unreadable": None})
    return _table(outcomes, ["_row", *stage.outcomes, "_unreadable"]).with_columns(pl.col("_row").cast(pl.UInt32))


def _table(rows: list[dict[str, Scalar]], columns: list[str]) -> pl.DataFrame:
    frame = pl.DataFrame({name: [row.get(name) for row in rows] for name in columns}, strict=False)
    return frame.with_columns(pl.col("_unreadable").cast(pl.String))
