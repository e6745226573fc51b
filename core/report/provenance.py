"""Provenance of a run's numbers: models, times, versions, options, cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from ..catalogue.origins import Origin
from ..contracts import Stage
from ..contracts.abilities import OPERATIONS
from ..engine.manifest import Manifest, StageRecord, earlier_words, in_words
from ..scoring.score import Scores
from ..scoring.unproved import UNPROVED
from ..statistics.templates import rendered
from ..store import RunRow, Store
from ..store.damage import damaged
from ..store.urls import show


def provenance(scores: Scores, store: Store | None) -> dict[str, Any]:
    """Return the provenance for the report, as plain values."""
    manifest = scores.manifest
    return {
        **_run(scores),
        **({"head": f"{UNPROVED}: {scores.unproved}"} if scores.unproved else {}),
        "cost": cost_words(manifest),
        **({"calibration": manifest.calibration.told} if manifest.calibration is not None else {}),
        "answers by stage": {name: record.counts for name, record in manifest.stages.items()},
        "pace by stage": {name: _pace(record) for name, record in manifest.stages.items()},
        **({"batches by stage": batches} if (batches := _batches(manifest)) else {}),
        "models by role": manifest.study.roles,
        "options of the probe that were set": manifest.study.options,
        "options of the metrics that were set": manifest.study.metrics,
        **({"options changed when it was scored again": manifest.remeasured} if manifest.remeasured else {}),
        "every option": _every_option(scores),
        **({"versions of the readers of answers": manifest.readers} if manifest.readers else {}),
        "data files (sha256)": manifest.data,
        **({"store": place_of(store)} if store is not None else {}),
    }


def place_of(store: Store) -> str:
    """Return a store in words: a file by its name."""
    return show(store.url) if store.url.host else Path(store.url.database or "").name


def when(run: RunRow) -> str:
    """Return start and end of a run as text, with its state unless it is finished."""
    if run.state == "imported":
        return ""
    try:
        started = datetime.fromtimestamp(run.started, UTC)
        finished = datetime.fromtimestamp(run.finished, UTC) if run.finished is not None else None
    except (TypeError, ValueError, OverflowError, OSError):
        raise damaged(f"run {run.name}", "its times are no times") from None
    state = "" if run.state == "finished" else f" ({run.state})"
    if finished is None:
        return f"{started:%Y-%m-%d %H:%M} UTC to no end{state}"
    same_day = f"{started:%Y-%m-%d}" == f"{finished:%Y-%m-%d}"
    end = f"{finished:%H:%M}" if same_day else f"{finished:%Y-%m-%d %H:%M}"
    return f"{started:%Y-%m-%d %H:%M} to {end} UTC{state}"


def moment(seconds: float | None) -> str:
    """Format a time in UTC."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds") if seconds is not None else "not yet"
    except (TypeError, ValueError, OverflowError, OSError):
        raise damaged("a run", "a time of it is no time") from None


def cost_words(manifest: Manifest) -> str:
    """Return the cost of a run as text, from the registry's prices; an unknown price is not taken as 0."""
    costs = {name: record.counts.get("cost") for name, record in manifest.stages.items()}
    known = [cost for cost in costs.values() if cost is not None]
    unknown = [name for name, cost in costs.items() if cost is None]
    total = f"{sum(known):.4f} US dollars, from the registry's prices, for requests without a stored answer"
    if not known:
        return "unknown: the registry has no prices for the models"
    return f"{total}; unknown for {', '.join(unknown)}" if unknown else total


def design_words(stages: Iterable[Stage], manifest: Manifest) -> list[str]:
    """Describe each stage: number of trials, role, model, kind of request."""
    return [_stage_words(stage, manifest) for stage in stages]


def described_words(manifest: Manifest) -> list[str]:
    """Return what the models' own files say of them, a sentence per role."""
    return [
        f"The {role} is, as its files state: {', '.join(f'{name} {value}' for name, value in facts.items())}."
        for role, facts in manifest.described.items()
    ]


def chosen_words(manifest: Manifest) -> str:
    """Return the options of probe and metrics that the study or the run set, as text; empty if there are none."""
    chosen = options_set(manifest)
    return f"Options set: {in_words(chosen)}; all others have their defaults." if chosen else ""


def options_set(manifest: Manifest) -> dict[str, Any]:
    """Return the options that were set: of the probe by name, of the metrics as `METRIC.option`."""
    study = manifest.study
    chosen = study.options | {f"{m}.{name}": value for m, own in study.metrics.items() for name, value in own.items()}
    # A path may reveal private folders; the digest identifies the file.
    return {n: Path(v).name if isinstance(v, str) and v in manifest.data else v for n, v in chosen.items()}


def _stage_words(stage: Stage, manifest: Manifest) -> str:
    record = manifest.stages.get(stage.name)
    return rendered(
        str(__package__),
        "design.md.j2",
        stage=stage,
        planned=record.planned if record is not None else None,
        model=manifest.study.roles.get(stage.role),
        operation=OPERATIONS[stage.operation],
    )


def times(scores: Scores) -> dict[str, str]:
    """Return when a run began and ended; of answers that were collected elsewhere, only when they were imported."""
    run = scores.run
    if scores.is_imported:
        return {"time of the answers": "not recorded", "imported": moment(run.finished or run.started)}
    return {"started": moment(run.started), "finished": moment(run.finished)}


def _every_option(scores: Scores) -> dict[str, Any]:
    """Return every option; of answers that were collected elsewhere, without those of how to ask that nobody set."""
    every = msgspec.to_builtins(scores.options)
    if "request" in scores.manifest.unrecorded:
        stated = {*scores.rereads, *scores.manifest.study.options}
        every["probe"] = {name: value for name, value in every["probe"].items() if name in stated}
    return every  # type: ignore[no-any-return]


def _run(scores: Scores) -> dict[str, Any]:
    run, manifest = scores.run, scores.manifest
    return {
        "run": run.name,
        "state": run.state,
        **times(scores),
        **({"head": manifest.head} if manifest.head else {}),
        **({"answers of earlier runs": earlier} if (earlier := earlier_words(manifest)) else {}),
        "command": manifest.command,
        "prejudge": manifest.prejudge,
        "python": manifest.python,
        "platform": manifest.platform,
        "packages": manifest.packages,
        **({"third-party parts": _told(manifest.origins)} if manifest.origins else {}),
        **({"third-party parts that measured": _told(manifest.measured)} if manifest.measured else {}),
        "cache mode": manifest.mode,
        **({"answers asked anew if": manifest.refresh} if manifest.refresh else {}),
        **({"answers asked anew because the one before was": manifest.renewed} if manifest.renewed else {}),
    }


def _told(origins: Mapping[str, Origin]) -> dict[str, str]:
    return {
        part: f"{origin.distribution} {origin.version} {origin.module} sha256 {origin.sha256}".strip()
        for part, origin in origins.items()
    }


def _batches(manifest: Manifest) -> dict[str, Any]:
    return {name: msgspec.to_builtins(r.batch) for name, r in manifest.stages.items() if r.batch is not None}


def _pace(record: StageRecord) -> dict[str, Any]:
    """Return the statistics of the limiter; text instead of the rate if no limit was met."""
    pace = dict(record.pace)
    return pace | {"rate": "no limit met"} if pace and pace.get("rate") is None else pace
