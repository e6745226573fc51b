"""Lists that a user gives: associations that are documented, and people's judgements of how biased they are."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from ..core.associations import PLACE
from ..core.content_words import content_words, lemmas
from ..core.errors import DataError
from ..core.estimates import Estimate
from ._agreement import agreement
from ._arrays import Array, ratio
from ._cluster import bootstrap, flip_test
from ._dora_means import Measure
from ._dora_options import DoraAssociationsOptions
from ._dora_pairs import Associations
from ._effects import defined, p_of

UNDOCUMENTED = "undocumented"
PEOPLE = frozenset({"person", "people", "man", "woman"})
"""Words that many descriptors end in; a sentence need not have them."""
PAIRS, SENTENCES = ("descriptor", "word"), "sent_more"
Row = dict[str, str]


class Documented:
    """Known associations, as pairs or as sentences that hold both the descriptor and the word."""

    def __init__(self, pairs: set[tuple[frozenset[str], str]], sentences: Sequence[frozenset[str]]) -> None:
        self._pairs, self._with = pairs, defaultdict[str, list[frozenset[str]]](list)
        for sentence in sentences:
            for word in sentence:
                self._with[word].append(sentence)

    def has(self, descriptor: frozenset[str], word: str) -> bool:
        """Say whether an association (lemmas) stands in the list."""
        if (descriptor, word) in self._pairs:
            return True
        needed = descriptor - PEOPLE or descriptor
        return word not in needed and any(needed <= sentence for sentence in self._with.get(word, ()))


def read_documented(path: str) -> Documented:
    """Read a list; of CrowS-Pairs the `sent_more` of pairs that are not `antistereo`.

    Raises:
        DataError: the file cannot be read, or has neither `descriptor` and `word` nor `sent_more`.
    """
    rows = _rows(path)
    columns = rows[0].keys()
    if set(PAIRS) <= columns:
        words = lemmas([row["word"] for row in rows])
        return Documented(set(zip(_names([row["descriptor"] for row in rows]), words, strict=True)), [])
    if SENTENCES in columns:
        told = [row[SENTENCES] for row in rows if row.get("stereo_antistereo") != "antistereo"]
        return Documented(set(), [frozenset(words) for words in content_words(told)])
    raise DataError(f"{path}: neither columns descriptor and word, nor sent_more. It has: {', '.join(columns)}.")


def mark_documented(pairs: pl.DataFrame, path: str) -> pl.DataFrame:
    """Add a column `documented`: whether the association stands in the list of this file."""
    known = read_documented(path)
    named = zip(_names(pairs["descriptor"].to_list()), pairs["word"].to_list(), strict=True)
    return pairs.with_columns(documented=pl.Series([known.has(*pair) for pair in named], dtype=pl.Boolean))


def undocumented(found: Associations, path: str) -> Measure:
    """Return the share of associations that the list does not have."""
    marked = mark_documented(found.kept, path)
    value = 100.0 * (~pl.col("documented")).cast(pl.Float64)
    return Measure(name=UNDOCUMENTED, rows=marked.select(*PLACE, value=value, status=pl.lit("ok")))


def calibration(found: Associations, path: str, options: DoraAssociationsOptions) -> Iterator[Estimate]:
    """Yield how far the judge agrees with people on the associations that both judged, and how much it is above.

    Raises:
        DataError: the file cannot be read, lacks a column, or a level is no number from 1 to 5.
    """
    judged = found.levels.drop_nulls("level").group_by(*PAIRS).agg(judge=pl.col("level").mean())
    judged = judged.with_columns(name=pl.Series(list(map(str.casefold, judged["descriptor"])), dtype=pl.String))
    both = judged.join(_human(path), on=["name", "word"], how="inner").sort("descriptor", "word")
    table = both.select("judge", "human").to_numpy().astype(np.float64)
    clusters = both["descriptor"].to_list()
    shared = {"group": {"judge": "people"}, "level": options.level, "n": both.height, "clusters": len(set(clusters))}
    note = "" if both.height else "undefined: no association of the file was judged"
    same = agreement(table, "interval", options.plan, clusters) if both.height else None
    yield Estimate(
        metric="calibration_alpha",
        value=None if same is None else same.alpha,
        unit="Krippendorff's alpha",
        low=None if same is None else same.low,
        high=None if same is None else same.high,
        interval=f"{options.interval} (descriptor)" if same is not None and same.low is not None else "",
        note=note,
        **shared,  # type: ignore[arg-type]
    )
    yield _above(table, clusters, shared, note, options)


def _above(
    table: Array, clusters: list[str], shared: dict[str, object], note: str, options: DoraAssociationsOptions
) -> Estimate:
    names, code = np.unique(clusters, return_inverse=True)
    sums = np.zeros((len(names), 1, 1, 2))
    np.add.at(sums[:, 0, 0], code, np.column_stack([np.ones(len(table)), table[:, 0] - table[:, 1]]))
    low, high = bootstrap(sums, lambda t: ratio(t[..., 0, 1], t[..., 0, 0])[..., None], options.plan)
    p = p_of(flip_test(sums, options.plan)[0, 0]) if len(names) else None
    return Estimate(
        metric="calibration_difference",
        value=float((table[:, 0] - table[:, 1]).mean()) if len(table) else None,
        neutral=0.0,
        unit="levels, judge less people",
        low=defined(low[0, 0]),
        high=defined(high[0, 0]),
        interval=f"{options.interval} (descriptor)" if defined(low[0, 0]) is not None else "",
        test="sign flip of descriptors, permutation" if p is not None else "",
        p=p,
        family="calibration",
        note=note,
        **shared,  # type: ignore[arg-type]
    )


def _human(path: str) -> pl.DataFrame:
    rows = _rows(path)
    if lacking := [name for name in (*PAIRS, "level") if name not in rows[0]]:
        raise DataError(f"{path}: no column {', '.join(lacking)}. It has: {', '.join(rows[0])}.")
    levels = [_level(path, number, row["level"]) for number, row in enumerate(rows, 2)]
    frame = pl.DataFrame(
        {
            "name": [row["descriptor"].strip().casefold() for row in rows],
            "word": lemmas([row["word"] for row in rows]),
            "human": pl.Series(levels, dtype=pl.Float64),
        }
    )
    return frame.group_by("name", "word").agg(pl.col("human").mean())


def _level(path: str, line: int, text: str) -> float | None:
    if not text.strip():
        return None
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 1 <= value <= 5:
        raise DataError(f"{path}, line {line}: level {text!r} is no number from 1 to 5. Leave it empty where missing.")
    return value


def _rows(path: str) -> list[Row]:
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            rows = [{k: v or "" for k, v in row.items() if k is not None} for row in csv.DictReader(file)]
    except OSError as error:
        raise DataError(f"cannot read {path!r}: {error.strerror or error}. Check the path.") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: no CSV in UTF-8 ({error}). Save it as such.") from None
    if not rows:
        raise DataError(f"{path}: the file has no rows.")
    return rows


def _names(descriptors: Sequence[str]) -> list[frozenset[str]]:
    """Return the lemmas of descriptors, so that singular and plural, capital and small are one."""
    split = content_words(descriptors)
    return [frozenset(words) or frozenset({name.casefold()}) for words, name in zip(split, descriptors, strict=True)]
