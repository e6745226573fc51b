"""What a call is asked for, and what pins the results of its folder."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ...core.contracts.errors import DataError
from ..hf.encoder.files import EncoderSource
from .cells import Grid
from .data import Corpus

PLAN = "plan.json"
FIXED = ("positive_weight", "negative_weight", "epochs", "patience", "batch", "learning_rate", "buckets", "select")


class Job(msgspec.Struct, frozen=True, eq=False):
    """Model, data and the place for results."""

    source: EncoderSource
    corpus: Corpus
    grid: Grid
    out: Path
    device: str = "auto"


class Plan(msgspec.Struct, frozen=True):
    """What pins the results of a folder."""

    model: str
    digest: str
    data: dict[str, str]
    """sha256 of each file, in the order they were given: splits go by it."""
    fixed: dict[str, float | int | str | bool]


def check_plan(job: Job) -> None:
    """Write the plan of a folder that has none; compare with that of one that has.

    Raises:
        DataError: the folder holds results of other data, another model or other settings.
    """
    fixed = {name: getattr(job.grid, name) for name in FIXED}
    plan = Plan(job.source.name, job.source.digest, job.corpus.digests, fixed)
    path = job.out / PLAN
    if not path.is_file():
        write_json(path, plan)
        return
    before = msgspec.json.decode(path.read_bytes(), type=Plan)
    for other in _differences(before, plan):
        raise DataError(f"{str(job.out)!r} holds trainings {other}. Give another --out, or the same as before.")


def write_json(path: Path, value: object) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".draft")
    draft.write_bytes(msgspec.json.format(msgspec.json.encode(value)))
    draft.replace(path)


def _differences(before: Plan, now: Plan) -> list[str]:
    found = []
    if before.digest != now.digest:
        found.append(f"of model {before.model!r} ({before.digest[:15]}), not {now.model!r} ({now.digest[:15]})")
    if list(before.data.items()) != list(now.data.items()):
        found.append(f"on other data: {_other_data(before.data, now.data)}")
    for name, value in now.fixed.items():
        if (old := before.fixed.get(name)) != value:
            found.append(f"with {name} {old}, not {value}")
    return found


def _other_data(before: dict[str, str], now: dict[str, str]) -> str:
    told = {
        "changed since": [name for name in before if name in now and before[name] != now[name]],
        "not given now": [name for name in before if name not in now],
        "not given then": [name for name in now if name not in before],
    }
    words = [f"{what}: {', '.join(names)}" for what, names in told.items() if names]
    return "; ".join(words) or f"the files were in another order: {', '.join(before)}"
