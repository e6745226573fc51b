"""Where a run's numbers come from: who was asked, when, with what, at which cost."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..contracts import Stage
from ..contracts.adapter import OPERATIONS
from ..engine.manifest import Manifest, StageRecord, in_words
from ..scoring.score import Scores
from ..store import RunRow, Store
from ..store.urls import show


def provenance(scores: Scores, store: Store | None) -> dict[str, Any]:
    """Return what an auditor asks for, as plain values."""
    manifest = scores.manifest
    return {
        **_run(scores.run, manifest),
        "cost": cost_words(manifest),
        "answers by stage": {name: record.counts for name, record in manifest.stages.items()},
        "pace by stage": {name: _pace(record) for name, record in manifest.stages.items()},
        "models by role": manifest.study.roles,
        "options of the probe that were set": manifest.study.options,
        "options of the metrics that were set": manifest.study.metrics,
        **({"set when it was scored again": manifest.remeasured} if manifest.remeasured else {}),
        "every option": scores.options,
        "data files (sha256)": manifest.data,
        **({"store": show(store.url)} if store is not None else {}),
    }


def when(run: RunRow) -> str:
    """Say when a run asked."""
    if run.state == "imported":
        return ""
    finished = f"{datetime.fromtimestamp(run.finished, UTC):%Y-%m-%d %H:%M}" if run.finished is not None else "no end"
    return f"{datetime.fromtimestamp(run.started, UTC):%Y-%m-%d %H:%M} to {finished} UTC ({run.state})"


def moment(seconds: float | None) -> str:
    """Write a time in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds") if seconds is not None else "not yet"


def cost_words(manifest: Manifest) -> str:
    """Say what the answers of a run cost by the registry's prices; an unknown price is not a price of nothing."""
    costs = {name: record.counts.get("cost") for name, record in manifest.stages.items()}
    known = [cost for cost in costs.values() if cost is not None]
    unknown = [name for name, cost in costs.items() if cost is None]
    total = f"{sum(known):.4f} US dollars by the registry's prices, for what was asked and not stored before"
    if not known:
        return "unknown: the registry has no price of the models"
    return f"{total}; unknown for {', '.join(unknown)}" if unknown else total


def design_words(stages: Iterable[Stage], manifest: Manifest) -> list[str]:
    """Say in words what was asked, of whom and how often."""
    return [_stage_words(stage, manifest) for stage in stages]


def chosen_words(manifest: Manifest) -> str:
    """Say which options of the probe and of the metrics were set, by the study or for the run; nothing if none was."""
    chosen = options_set(manifest)
    return f"Options that were set: {in_words(chosen)}; all others have their defaults." if chosen else ""


def options_set(manifest: Manifest) -> dict[str, Any]:
    """Return the options that were set: of the probe by name, of the metrics as `METRIC.option`."""
    study = manifest.study
    chosen = study.options | {f"{m}.{name}": value for m, own in study.metrics.items() for name, value in own.items()}
    # A path may tell where somebody keeps their files; which file it was, its digest says.
    return {n: Path(v).name if isinstance(v, str) and v in manifest.data else v for n, v in chosen.items()}


def _stage_words(stage: Stage, manifest: Manifest) -> str:
    study, record = manifest.study, manifest.stages.get(stage.name)
    planned = f"{record.planned:,} trials" if record is not None else "its trials"
    who = study.roles.get(stage.role)
    words = [f"Stage {stage.name!r} put {planned} to the {stage.role}{f' ({who})' if who else ''}"]
    words.append(f"as requests of the kind {OPERATIONS[stage.operation]!r}.")
    if stage.trials_per_unit > 1:
        words.append(f"{stage.trials_per_unit} trials make one {stage.unit}.")
    if stage.max_attempts > 1:
        words.append(f"An answer that could not be read was asked for again, {stage.max_attempts} times in all.")
    return " ".join(words)


def _run(run: RunRow, manifest: Manifest) -> dict[str, Any]:
    return {
        "run": run.name,
        "state": run.state,
        "started": moment(run.started),
        "finished": moment(run.finished),
        "command": manifest.command,
        "prejudge": manifest.prejudge,
        "python": manifest.python,
        "platform": manifest.platform,
        "packages": manifest.packages,
        "cache mode": manifest.mode,
    }


def _pace(record: StageRecord) -> dict[str, Any]:
    """Return what the limiter did; words where it had nothing to do."""
    pace = dict(record.pace)
    return pace | {"rate": "no limit met"} if pace and pace.get("rate") is None else pace
