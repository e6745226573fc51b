"""Counts of chosen polarities by the given polarity, and every statistic as a function of these counts.

Totals have the shape (..., sides, columns): the sides are negative and positive given terms, the columns the count of
readable answers and those that chose the negative, the neutral and the positive option. So all statistics can be
resampled together by templates crossed with terms.

Artefacts are counted beside the association: positions of options, missing answers, kinds of unreadable answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
import polars as pl

from ...core.contracts.errors import DataError
from ...core.contracts.estimates import POSITION, Estimate
from ...core.contracts.records import Scalar
from ...core.statistics.effects import p_of
from ...core.statistics.estimates import correct
from ...core.statistics.intervals import CONTRAST, SHARE, Array, Codes, binomial_test, exact_interval, ratio
from ...core.statistics.observations import Group, missing_estimates, require_columns, unreadable_kinds
from ...core.statistics.ranks import tau_c, taus
from ...probes.subtle.terms import NEGATIVE, NEUTRAL, POSITIVE
from .options import SubtleMetricOptions

EXACT = "exact (Clopper-Pearson), answers"
PLACES = (1, 2, 3)


def positions(observations: pl.DataFrame, options: SubtleMetricOptions) -> list[Estimate]:
    """Return how often each place in the order of options was chosen, where the order is known."""
    if "position" not in observations.columns:
        return []
    chosen = observations.filter((pl.col("status") == "ok") & pl.col("position").is_not_null())
    n = chosen.height
    found = []
    for place in PLACES if n else ():
        hits = int((chosen["position"] == place).sum())
        low, high = exact_interval(hits, n, options.level)
        found.append(
            Estimate.from_flat(
                metric="position_bias",
                group={"position": place},
                value=100 * hits / n,
                neutral=100 / len(PLACES),
                unit="%",
                low=100 * low,
                high=100 * high,
                level=options.level,
                interval=EXACT,
                n=n,
                test="exact binomial against a third, answers",
                statistic=hits / n,
                p=p_of(binomial_test(hits, n, 1 / len(PLACES))),
                family="places of the options",
                effect=hits / n - 1 / len(PLACES),
                effect_name="risk difference",
                effect_low=low - 1 / len(PLACES),
                effect_high=high - 1 / len(PLACES),
                topic=POSITION,
            )
        )
    return correct(found, options.correction, options.alpha, "places")


def missing(observations: pl.DataFrame, options: SubtleMetricOptions) -> list[Estimate]:
    """Return how many answers are missing, by domain and given polarity."""
    cells = observations.partition_by("domain", "given", as_dict=True, maintain_order=True)
    groups = []
    for (domain, given), part in cells.items():
        lost = part.filter(pl.col("status") != "ok").group_by("status").len().sort("status")
        groups.append(
            Group({"domain": domain, "given": given}, int((part["status"] == "ok").sum()), dict(lost.iter_rows()))
        )
    return [*missing_estimates(groups, options.level), *unreadable_kinds(observations, options.level)]


GIVEN = (NEGATIVE, POSITIVE)
CHOSEN = (NEGATIVE, NEUTRAL, POSITIVE)
NEEDS = frozenset({"domain", "pronoun", "given", "chosen", "status"})
CODINGS = ("polarity", "stereotype match")
"""Coding of the answer for Kendall's tau: the polarity that was chosen, as the paper's text says; or whether
it is that of the given term (1), the opposite (-1) or neutral (0), which the paper's Table 1 follows."""
RATES = ("PL", "NL", "NuL")
LIKELIHOODS = ("PPL", "PNL", "PNuL", "NPL", "NNL", "NNuL")
DELTAS = ("delta_PL", "delta_NL", "delta_NuL")
TAUS = tuple((name, coding) for coding in CODINGS for name in ("tau_b", "tau_c"))
STATISTICS = (*RATES, *LIKELIHOODS, *DELTAS, *TAUS)
RANGES = (*(SHARE,) * len((*RATES, *LIKELIHOODS)), *(CONTRAST,) * len((*DELTAS, *TAUS)))
"""What each of them can be."""
DISPLAYED = (3, 1, 2)
"""Columns of positive, negative and neutral answers, in the order of the measures."""


class Block(msgspec.Struct, frozen=True):
    """Units (groups of answers) that are counted over the same templates and terms."""

    groups: list[dict[str, Scalar]]
    cells: Array
    """Shape (templates, terms, units, 2, 4)."""
    missing: list[dict[str, dict[str, int]]]
    """By unit and given polarity: unreadable answers by status."""
    clusters: tuple[str, ...]
    """Columns of the clusters: the requested ones that are known for every answer, in the order of `cells`."""
    unknown: dict[str, int] = {}
    """By requested column that is not known for every answer: the number of answers without it."""

    @property
    def totals(self) -> Array:
        """Return the counts of each unit, shape (units, 2, 4)."""
        totals: Array = self.cells.sum(axis=(0, 1))
        return totals


def readable(observations: pl.DataFrame) -> pl.DataFrame:
    """Check the observations, and mark as not ok what has no choice.

    Raises:
        DataError: a column is absent, or a polarity has an unknown name.
    """
    require_columns(observations, set(NEEDS))
    for column, known in (("given", GIVEN), ("chosen", CHOSEN)):
        found = set(observations[column].drop_nulls().unique().to_list())
        if unknown := sorted(found - set(known), key=str):
            raise DataError(
                f"unknown polarity {unknown[0]!r} in {column!r}. Use {', '.join(map(repr, known))}.",
                code="data.unknown-value",
            )
    if observations["given"].null_count():
        raise DataError(
            "the polarity of the given term is missing in some rows. Fill in the column 'given'.",
            code="data.missing-values",
        )
    observations = observations.with_columns(pl.col("chosen").cast(pl.String))
    lost = (pl.col("status") == "ok") & pl.col("chosen").is_null()
    return observations.with_columns(pl.when(lost).then(pl.lit("unreadable")).otherwise("status").alias("status"))


def blocks(observations: pl.DataFrame, clusters: Sequence[str]) -> Iterator[Block]:
    """Yield all answers with the pronouns, then each domain with its pronouns."""
    yield _block(observations, {}, clusters)
    for domain in observations["domain"].unique().sort():
        part = observations.filter(pl.col("domain") == domain)
        yield _block(part, {"domain": domain}, clusters)


def _block(frame: pl.DataFrame, group: dict[str, Scalar], clusters: Sequence[str]) -> Block:
    pronouns = frame["pronoun"].unique().sort().to_list()
    groups = [group, *({**group, "pronoun": name} for name in pronouns)]
    parts = [frame, *(frame.filter(pl.col("pronoun") == name) for name in pronouns)]
    counts = {name: frame[name].null_count() if name in frame.columns else frame.height for name in clusters}
    unknown = {name: count for name, count in counts.items() if count}
    known = tuple(name for name in clusters if name not in unknown)
    cells = _counted(frame.filter(pl.col("status") == "ok"), pronouns, known)
    return Block(groups, cells, [_missing(part) for part in parts], known, unknown)


def _counted(frame: pl.DataFrame, pronouns: list[str], clusters: Sequence[str]) -> Array:
    ways = [_codes(frame, name) for name in clusters] + [np.zeros(frame.height, np.int64)] * (2 - len(clusters))
    given = frame["given"].replace_strict(GIVEN, range(2), return_dtype=pl.Int64).to_numpy()
    chosen = frame["chosen"].replace_strict(CHOSEN, range(1, 4), return_dtype=pl.Int64).to_numpy()
    unit = frame["pronoun"].replace_strict(pronouns, range(1, len(pronouns) + 1), return_dtype=pl.Int64).to_numpy()
    shape = (*(int(way.max(initial=0)) + 1 for way in ways), len(pronouns) + 1, 2, 4)
    cells = np.zeros(shape)
    for units in (np.zeros_like(unit), unit):
        for column in (np.zeros_like(chosen), chosen):
            place = np.ravel_multi_index((*ways, units, given, column), shape)
            cells += np.bincount(place, minlength=cells.size).reshape(shape)
    return cells


def _codes(frame: pl.DataFrame, name: str) -> Codes:
    codes: Codes = frame[name].rank("dense").cast(pl.Int64).to_numpy() - 1
    return codes


def _missing(frame: pl.DataFrame) -> dict[str, dict[str, int]]:
    lost = frame.filter(pl.col("status") != "ok").group_by("given", "status").len().sort("given", "status")
    found: dict[str, dict[str, int]] = {name: {} for name in GIVEN}
    for given, status, count in lost.iter_rows():
        found[given][status] = count
    return found


def statistics(totals: Array) -> Array:
    """Return all of `STATISTICS` of totals (..., 2, 4), shares from 0 to 1; undefined is NaN."""
    shares = ratio(totals[..., DISPLAYED], totals[..., :1])
    pooled = totals.sum(axis=-2)
    rates = ratio(pooled[..., DISPLAYED], pooled[..., :1])
    negative, positive = shares[..., 0, :], shares[..., 1, :]
    ranked = [tau[..., None] for table in tables(totals) for tau in taus(table)]
    return np.concatenate([rates, positive, negative, positive - negative, *ranked], axis=-1)


def distances(totals: Array) -> Array:
    """Return how far `DELTAS` and tau-c (coded by polarity) lie from 0, the last axis (4,)."""
    shares = ratio(totals[..., DISPLAYED], totals[..., :1])
    apart = shares[..., 1, :] - shares[..., 0, :]
    away: Array = np.abs(np.concatenate([apart, tau_c(tables(totals)[0])[..., None]], axis=-1))
    return away


def tables(totals: Array) -> tuple[Array, Array]:
    """Return the counts (..., 2, 3) in ascending order of the answer, in both codings."""
    by_polarity = totals[..., 1:]
    matched = by_polarity.copy()
    # A negative answer to a negative term is the stereotype: there the scale runs the other way.
    matched[..., 0, :] = by_polarity[..., 0, ::-1]
    return by_polarity, matched
