"""The same studies by the command line, as a user makes them: they must find what the studies in memory find."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from ...catalogue.study import SUBJECT
from ...contracts.errors import PluginError
from .campaign import Campaign, Number
from .gallery import FAIR, Null

_CLI = f"{__package__.partition('.lab.')[0]}.cli"
TOLERANCE = 1e-9
"""Largest difference between equal numbers, relative or absolute."""


def differing(
    campaign: Campaign,
    study: str,
    models: Sequence[tuple[str, int]],
    registry: str | None = None,
) -> dict[str, str]:
    """Run studies of fair models by command, and return those that differ from the same ones in memory, with how.

    Args:
        campaign: the calibration.
        study: its study, as it was named.
        models: fair models of the gallery, each with a seed: one study each.
        registry: the registry that was named.

    Raises:
        PluginError: a run ended with an error.
    """
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for number, (null, seed) in enumerate(models):
            with _registry(campaign, (null, seed), Path(folder), registry) as (path, named):
                options = campaign.of(null).options.items()
                given = [word for name, value in options for word in ("--set", f"{name}={_told(value)}")]
                roles = [word for role, name in named.items() for word in ("--model", f"{role}={name}")]
                where = ["--registry", str(path), "--store", f"{folder}/{number}.db", "--runs", f"{folder}/{number}"]
                words = ["run", study, *roles, *given, *where, "--quiet", "--leave-out", "examples"]
                ended = subprocess.run(
                    [sys.executable, "-m", _CLI, *words], capture_output=True, text=True, check=False
                )
            if ended.returncode not in (0, 1):
                raise PluginError(
                    study,
                    f"the run of model {seed} of {null!r} by command ended with code {ended.returncode}: "
                    f"{ended.stderr.strip()}",
                    code="calibration.command",
                )
            (table,) = Path(folder, str(number)).glob("*/estimates.parquet")
            if why := _difference(campaign.one(null, seed).numbers, pl.read_parquet(table)):
                found[str(seed) if null == FAIR else f"{null} {seed}"] = why
    return found


@contextmanager
def _registry(
    campaign: Campaign, model: tuple[str, int], folder: Path, own: str | None
) -> Iterator[tuple[Path, dict[str, str]]]:
    """Write a registry with the models of one study, behind the user's own; its folder must stay the same."""
    fair = campaign.stand_in
    models = {role: name if role != SUBJECT and name != fair else "" for role, name in campaign.study.roles.items()}
    text = "" if own is None else Path(own).read_text("utf-8")
    name = "calibration-subject"
    null = campaign.subject(campaign.gallery[model[0]])
    text += _model(name, null, campaign.settings(null, model[1]))
    with tempfile.NamedTemporaryFile(
        "w", suffix=".toml", dir=folder if own is None else Path(own).parent, encoding="utf-8"
    ) as file:
        file.write(text)
        file.flush()
        yield Path(file.name), {role: model or name for role, model in models.items()}


def _model(name: str, null: Null, settings: Mapping[str, Any]) -> str:
    lines = (f"{key} = {_toml(value)}" for key, value in settings.items())
    return "\n".join(("", f"[models.{name}]", f'adapter = "{null.adapter}"', f"[models.{name}.settings]", *lines, ""))


def _toml(value: Any) -> str:
    """Return a value as TOML: texts and numbers are written as JSON writes them."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)


def _told(value: Any) -> str:
    """Return a value of an option as the command line takes it: TOML, of which JSON's values are a part."""
    return json.dumps(value)


def _difference(numbers: Sequence[Number], table: pl.DataFrame) -> str:
    """Return how the headline of a study differs from the estimates that a run wrote; empty if it does not."""
    rows = list(table.iter_rows(named=True))
    for number in numbers:
        own = [row for row in rows if row["metric"] == number.measure and _is_of(row, number)]
        if len(own) != 1:
            return f"{number.measure} {number.group}: {len(own)} rows of the run"
        for name in ("value", "low", "high"):
            if not _equal(getattr(number, name), own[0][name]):
                return f"{number.measure} {number.group}: {name} {getattr(number, name)}, by command {own[0][name]}"
    return ""


def _is_of(row: Mapping[str, Any], number: Number) -> bool:
    factors = list(row)[1 : list(row).index("value")]
    return all(row[name] == number.group.get(name) or str(row[name]) == str(number.group.get(name)) for name in factors)


def _equal(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
