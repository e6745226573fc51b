"""The counts behind the paper's Tables 3 and 7, one observation per prompt."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping

import polars as pl

from ...core.contracts.errors import DataError
from ...core.tables import Form, Repeats, Row, parse_file
from .masked import CATEGORIES
from .terms import ANTI, ENCODER, LOST, STEREOTYPE, VERDICT

COUNTED = ("model", "category", "n_stereotype", "n_total", "category_size")
NOTES = (
    "These are counts from published tables, without data on single completions.",
    "The number of scored prompts is the maximum that the printed digits allow; the skip ratio is the minimum.",
)
NAMES = {
    "llama-3.1-8b": "llama-3.1-8b-instruct",
    "llama-3.2-1b": "llama-3.2-1b-instruct",
    "phi-3.5-mini": "phi-3.5-mini-instruct",
    "mistral-8b": "mistral-8b-instruct-2410",
    "deepseek-r1-llama-8b": "deepseek-r1-distill-llama-8b",
}
"""Names of models in the tables, by short name in lower case."""


def read_counts(path: str, model: str | None) -> pl.DataFrame:
    """Return a row per prompt of each category: a verdict, or the reason why there is none.

    Raises:
        DataError: The file cannot be used, or has several models and none is chosen.
    """
    repeats = Repeats(COUNTED[2:])
    names: dict[str, str] = {}

    def count_of(row: Row) -> tuple[str, list[tuple[str, str, str | None]]]:
        name, records = _full(row.filled("model")), list(_records(row))
        repeats.check(row, (name, _category(row)), f"the count of {_category(row)!r} of {row.cells['model']!r}")
        names.setdefault(name, row.cells["model"].strip())
        return name, records

    counts = parse_file(path, Form(COUNTED), count_of).values
    chosen = _chosen(path, names, model)
    records = [record for name, of_category in counts if name == chosen for record in of_category]
    frame = pl.DataFrame(records, schema=["prompt", "category", "verdict"], orient="row")
    there = pl.col("verdict").is_not_null()
    return frame.with_columns(
        source=pl.col("prompt"),
        kind=pl.lit(VERDICT),
        status=pl.when(there).then(pl.lit("ok")).otherwise(pl.lit("unreadable")),
        reason=pl.when(~there).then(pl.lit("skipped")),
        vector=pl.lit(None, pl.String),
        key=pl.lit(None, pl.Binary),
        **{name: pl.lit(None, pl.Int64) for name in ("asked", *LOST, "lenient", *ENCODER)},
    )


def _full(name: str) -> str:
    lowered = name.strip().lower()
    return NAMES.get(lowered, lowered)


def _chosen(path: str, names: Mapping[str, str], model: str | None) -> str:
    if model is None and len(names) == 1:
        return next(iter(names))
    if model is not None and _full(model) in names:
        return _full(model)
    known = f"{path} has the counts of {', '.join(map(repr, names.values()))}"
    if model is None:
        raise DataError(f"{known}. Choose one: --set published_model=NAME.", code="published.model")
    raise DataError(
        f"{known}, and none of {model!r}. `replicate` looks for each model that has published values, or for --model; "
        "`score --scores` measures any: --set published_model=NAME.",
        code="published.model",
    )


def _records(row: Row) -> Iterator[tuple[str, str, str | None]]:
    category = _category(row)
    hits, total, size = (int(row.number(name, int)) for name in COUNTED[2:])
    if not 0 <= hits <= total <= size:
        told = f"n_stereotype is {hits}, n_total {total}, category_size {size}"
        raise row.fault(
            f"{told}. None may be below 0, and none greater than the next one. Correct this row.", "data.value"
        )
    for number in range(size):
        verdict = STEREOTYPE if number < hits else ANTI if number < total else None
        yield f"{category}/{number}", category, verdict


def _category(row: Row) -> str:
    """Return a category by its name or the beginning of it: `Socio`."""
    name = row.filled("category").strip().lower()
    if found := [known for known in CATEGORIES if known.startswith(name)]:
        return found[0]
    near = difflib.get_close_matches(name, CATEGORIES, n=1)
    mend = f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(CATEGORIES)}."
    raise row.fault(f"unknown category {name!r}. {mend}", "data.unknown-value")
