"""Write the baseline: `python -m tests.baseline.record [--estimates] [CASE ...]` from the root of the checkout.

It is written once, from the code that later code is judged by. Writing it anew is a decision, not a mend of a test.
`--estimates` keeps the recorded responses, and writes anew what is estimated from them.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

import prejudge
from prejudge.core.scoring.score import Scores

from .adapters import Recorder
from .cases import CASES, Case

FOLDER = Path(__file__).parent / "cases"
READ = ("trial", "status", "reason", "first")
"""Columns of a row of the baseline, beside the outcomes."""
TOLD = ("note", "label", "unit", "facts", "caveats")
"""Columns of estimates that are words."""


def file_of(case: Case) -> Path:
    """Return the file of a case."""
    return FOLDER / f"{case.name}.jsonl.gz"


def registry_text(adapter: str, models: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a registry of models that an adapter of the baseline answers for."""
    lines = ["[adapters.baseline]", f'target = "{adapter}"', 'summary = "Baseline."']
    for name, settings in models.items():
        lines += [f"[models.{name}]", 'adapter = "baseline"', f"[models.{name}.settings]"]
        lines += [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    return "\n".join(lines) + "\n"


def run_case(case: Case, folder: Path, adapter: str, models: Mapping[str, Mapping[str, Any]]) -> prejudge.Run:
    """Run the study of a case on models of the baseline, by role."""
    registry = folder / "registry.toml"
    registry.write_text(registry_text(adapter, {f"baseline-{role}": given for role, given in models.items()}), "utf-8")
    options = dict(case.options)
    if case.data is not None:
        case.data(1, folder / "data.csv")
        options["data"] = str(folder / "data.csv")
    settings = prejudge.Settings(
        store=str(folder / "baseline.db"), runs=str(folder / "runs"), registry=str(registry), keep_going=True
    )
    roles = {role: f"baseline-{role}" for role in models}
    return prejudge.run(case.study, roles, settings, **options)


def rows_of(scores: Scores) -> Iterator[dict[str, Any]]:
    """Yield what was read of each answer, by stage."""
    for stage in scores.stages:
        frame = scores.observations[stage.name]
        columns = [name for name in (*READ, *stage.outcomes) if name in frame.columns]
        for row in frame.select(columns).iter_rows(named=True):
            yield {"stage": stage.name} | row


def estimates_of(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """Return estimates as plain records, without sentences."""
    return frame.select(pl.exclude(*TOLD)).to_dicts()


def record(case: Case) -> None:
    """Ask, and write the file of a case."""
    Recorder.lines, Recorder.identities = {}, {}
    models = {role: {"model": name, "role": role, "odd": case.odd} for role, name in case_models(case).items()}
    with tempfile.TemporaryDirectory() as folder:
        run = run_case(case, Path(folder), "tests.baseline.adapters:Recorder", models)
        head = {
            "study": case.study,
            "options": dict(case.options),
            "identities": {role: msgspec.to_builtins(identity) for role, identity in Recorder.identities.items()},
        }
        lines: list[dict[str, Any]] = [{"line": "case"} | head]
        lines += [{"line": "exchange"} | line for _, line in sorted(Recorder.lines.items())]
        _write(case, [*lines, *_scored(run)])


def estimate(case: Case) -> None:
    """Keep the recorded responses of a case, and write anew what is estimated from them."""
    lines = [json.loads(line) for line in gzip.decompress(file_of(case).read_bytes()).splitlines()]
    models = {role: {"file": str(file_of(case)), "role": role} for role in case_models(case)}
    with tempfile.TemporaryDirectory() as folder:
        run = run_case(case, Path(folder), "tests.baseline.adapters:Recorded", models)
        _write(case, [*(line for line in lines if line["line"] not in ("row", "estimate")), *_scored(run)])


def _scored(run: prejudge.Run) -> Iterator[dict[str, Any]]:
    yield from ({"line": "row"} | row for row in rows_of(run.scores))
    yield from ({"line": "estimate", "estimate": row} for row in estimates_of(run.estimates))


def _write(case: Case, lines: Sequence[Mapping[str, Any]]) -> None:
    FOLDER.mkdir(exist_ok=True)
    text = "".join(json.dumps(line, ensure_ascii=False, sort_keys=True) + "\n" for line in lines)
    file_of(case).write_bytes(gzip.compress(text.encode(), mtime=0))


def case_models(case: Case) -> dict[str, str]:
    """Return the models of a case by role."""
    return {"subject": case.model} | dict(case.roles)


def main(names: Sequence[str]) -> None:
    """Write the cases of these names, or all; `--estimates` among the names keeps the responses."""
    write = estimate if "--estimates" in names else record
    chosen = {name for name in names if name != "--estimates"}
    for case in CASES:
        if not chosen or case.name in chosen:
            write(case)
            print(case.name, file_of(case).stat().st_size)


if __name__ == "__main__":
    main(sys.argv[1:])
