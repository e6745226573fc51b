"""What `bistereo-pairs` can find, beside a test that knows all variances; and what moderated variances change.

Answers are drawn in closed form: the log-odds of a pair are the preferences of its opening, place and word, each drawn
anew in praise and blame, and noise. Favouritism shifts them, so that one set of draws says what every effect gives.

`make bench-power` writes docs/calibration-power.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
from scipy import optimize, stats

from prejudge.core.catalogue.study import Catalogue
from prejudge.core.report.markdown import marked_table
from prejudge.core.statistics.estimates import adjust
from prejudge.core.statistics.intervals import exact_interval
from prejudge.core.statistics.moderation import moderated
from prejudge.core.statistics.multiway import Cells, multiway_jackknife

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
PAGE = Path(__file__).resolve().parents[1] / "docs" / "calibration-power.md"
SIZES: dict[str, dict[str, Any]] = {
    "all pairs": {},
    "`per_cell=60`": {"per_cell": 60},
    "`per_cell=20`": {"per_cell": 20},
    "`--quick`": {"quick": True},
}
FACETS = ("opening", "place", "attribute")
NOISE, ALPHA, POWER = 1.0, 0.05, 0.8
SPREADS = (0.1, 0.3, 0.5)
PREFERRED = {
    "opening": (0.5, 0.0, 0.0),
    "place": (0.0, 0.5, 0.0),
    "word": (0.0, 0.0, 0.5),
    "all three": (0.5, 0.5, 0.5),
}
"""Preferences by facet, in nats."""
EFFECT = 0.6
FEW = "six levels of each facet, all crossed"
MODERATED = ("all pairs", "`per_cell=20`", FEW)
"""Sizes at which moderated variances are tried."""


class Group(msgspec.Struct, frozen=True, dict=True):
    """The pairs of one axis and gender, in praise and blame."""

    codes: Codes
    """Shape (pairs, facets): levels, by the names that all groups share."""
    sides: Codes
    """0: praise, 1: blame."""

    @cached_property
    def cells(self) -> tuple[Codes, Codes]:
        """Return the cells' levels from 0 up, and the cell and side of each pair, as one number."""
        own = np.stack([np.unique(column, return_inverse=True)[1] for column in self.codes.T], axis=-1)
        codes, places = np.unique(own, axis=0, return_inverse=True)
        return codes, 2 * places.ravel() + self.sides

    def table(self, values: Array) -> Cells:
        """Return the sums of values by cell, of one unit with two sides."""
        codes, places = self.cells
        counts, sums = (np.bincount(places, weights, 2 * len(codes)) for weights in (None, values))
        return Cells(codes, np.stack([counts, sums], axis=-1).reshape(len(codes), 1, 2, 2))

    def ideal(self, spread: float) -> float:
        """Return the standard error of the best estimate that knows the variances: generalised least squares."""
        return float(np.sqrt(sum(self._best(self.codes[self.sides == side], spread) for side in (0, 1))))

    def _best(self, codes: Codes, spread: float) -> float:
        levels = [np.unique(column, return_inverse=True)[1] for column in codes.T]
        incidence = np.hstack([np.eye(int(column.max()) + 1)[column] for column in levels])
        # The sum of the inverse covariance, by Woodbury's identity.
        inner = np.eye(incidence.shape[1]) * NOISE**2 / spread**2 + incidence.T @ incidence
        met = incidence.sum(axis=0)
        return float(NOISE**2 / (len(codes) - met @ np.linalg.solve(inner, met)))


def difference(totals: Array) -> Array:
    """Return the mean in praise less that in blame."""
    means = totals[..., 1] / totals[..., 0]
    found: Array = means[..., :1] - means[..., 1:]
    return found


def groups_of(size: dict[str, Any]) -> list[Group]:
    """Return the groups of the study at a size."""
    catalogue = Catalogue.load(None)
    stage = catalogue.instrument(catalogue.study("bistereo-pairs", {}, size)).every_stage()[0]
    design = stage.design  # type: ignore[attr-defined]
    rows = np.arange(design.size) if stage.rows is None else stage.rows  # type: ignore[attr-defined]
    asked = {name: np.array(design.column(name, rows)) for name in ("side", "sentiment", "axis", "gender", *FACETS)}
    pairs = (asked["side"] == "desirable") & (asked["sentiment"] != "neutral")
    named = np.char.add(np.char.add(asked["axis"].astype(str), "/"), asked["gender"].astype(str))
    levels = {name: np.unique(asked[name].astype(str), return_inverse=True)[1] for name in FACETS}
    return [
        Group(
            np.stack([levels[name][pairs & (named == group)] for name in FACETS], axis=-1),
            (asked["sentiment"][pairs & (named == group)] == "negative").astype(np.int64),
        )
        for group in np.unique(named)
    ]


def few_levels() -> Group:
    """Return a group with six openings, places, and words a side."""
    opening, place, word = (axis.ravel() for axis in np.indices((6, 6, 12)))
    return Group(np.stack([opening, place, word], axis=-1), word % 2)


class Drawn(NamedTuple):
    """Values, variances and degrees of freedom of fair models, (studies, groups)."""

    value: Array
    variance: Array
    freedom: Array


def draw(groups: Sequence[Group], spreads: Sequence[float], studies: int, *, shared: bool = False) -> Drawn:
    """Return what studies of fair models find, with preferences by facet; `shared`: the same in all groups."""
    rng = np.random.default_rng([2026, *(int(100 * spread) for spread in spreads), shared])
    levels = 1 + np.max([group.codes.max(axis=0) for group in groups], axis=0)
    scales = [(spread, (2, count)) for spread, count in zip(spreads, levels, strict=True)]
    found = []
    for _ in range(studies):
        common = [rng.normal(0, *one) for one in scales]
        for group in groups:
            own = common if shared else [rng.normal(0, *one) for one in scales]
            values = rng.normal(0, NOISE, len(group.sides))
            values += sum(table[group.sides, codes] for table, codes in zip(own, group.codes.T, strict=True))
            cells = group.table(values)
            variance, freedom = multiway_jackknife(cells, difference)
            found.append((difference(cells.totals)[0, 0], variance[0, 0], freedom[0, 0]))
    return Drawn(*np.array(found).T.reshape(3, studies, len(groups)))


def drawn_together(drawn: Drawn) -> Drawn:
    """Return the same with moderated variances."""
    pairs = zip(drawn.variance, drawn.freedom, strict=True)
    spreads = [next(moderated([(v[:, None], f[:, None])], [[""] * len(v)])) for v, f in pairs]
    return Drawn(
        drawn.value, *(np.array([getattr(s, name)[:, 0] for s in spreads]) for name in ("variance", "freedom"))
    )


def p_values(drawn: Drawn, effect: float = 0.0) -> Array:
    """Return the p of each group in each study, where the model favours by so much."""
    t = (drawn.value + effect) / np.sqrt(drawn.variance)
    found: Array = 2 * stats.t.sf(np.abs(t), drawn.freedom)
    return found


def smallest(drawn: Drawn) -> float:
    """Return the effect that is found in 80 % of the studies of one group."""
    # A fair model is as likely as its mirror image.
    both = Drawn(*(np.concatenate([one, other]) for one, other in zip(drawn, (-drawn.value, *drawn[1:]), strict=True)))
    return float(optimize.brentq(lambda effect: np.mean(p_values(both, effect) <= ALPHA) - POWER, 0, 20, xtol=1e-3))


def power_rows(studies: int) -> Iterator[tuple[str, ...]]:
    """Yield the smallest effects by size and preferences."""
    for name, size in SIZES.items():
        groups = groups_of(size)
        pairs = f"{sum(len(group.sides) for group in groups):,}"
        for spread in SPREADS:
            own = smallest(draw(groups, [spread] * 3, studies))
            reach = stats.norm.isf(ALPHA / 2) + stats.norm.isf(1 - POWER)
            ideal = reach * np.sqrt(np.mean([group.ideal(spread) ** 2 for group in groups]))
            yield name, pairs, f"{spread:g}", f"{own:.2f}", f"{ideal:.2f}", f"{own / ideal:.2f}"


def false_rows(studies: int) -> Iterator[tuple[str, ...]]:
    """Yield how often any of six groups is found, after correction, by what a fair model prefers."""
    sizes = [groups_of(size) for size in SIZES.values()]
    for name, spreads in PREFERRED.items():
        rates = []
        for groups in sizes:
            corrected = np.array([adjust(list(p), "bh") for p in p_values(draw(groups, spreads, studies))])
            rates.append(rate(int((corrected <= ALPHA).any(axis=1).sum()), studies))
        yield name, *rates


def moderation_rows(studies: int) -> Iterator[tuple[str, ...]]:
    """Yield false positives and power with and without moderated variances."""
    for size, shared in product(MODERATED, (False, True)):
        groups = [few_levels()] * 6 if size == FEW else groups_of(SIZES[size])
        plain = draw(groups, [0.3] * 3, studies, shared=shared)
        for name, own in (("no", plain), ("yes", drawn_together(plain))):
            tests = p_values(own) <= ALPHA
            corrected = np.array([adjust(list(p), "bh") for p in p_values(own)]) <= ALPHA
            found = np.array([adjust(list(p), "bh") for p in p_values(own, EFFECT)]) <= ALPHA
            yield (
                size,
                "all groups" if shared else "each group its own",
                name,
                rate(int(tests[:, 0].sum()), studies),
                f"{100 * tests.mean():.1f}",
                rate(int(corrected.any(axis=1).sum()), studies),
                f"{100 * (p_values(own, EFFECT) <= ALPHA).mean():.1f}",
                f"{100 * found.mean():.1f}",
            )


def rate(count: int, of: int) -> str:
    """Return a rate in per cent with its interval."""
    low, high = exact_interval(count, of, 0.95)
    return f"{100 * count / of:.1f} ({100 * low:.1f} to {100 * high:.1f})"


def page(studies: int) -> str:
    """Return the page."""
    lines = [
        "# Power of `bistereo-pairs`, and moderated variances",
        "",
        f"Written by `make bench-power` (`benchmarks/power.py`), {studies:,} studies of six groups a row. Do not edit.",
        "",
        "Fair models prefer openings, places and words, each with the stated standard deviation, drawn anew in praise "
        f"and blame; pairs have noise of {NOISE:g} nat.",
        "",
        "## The smallest favouritism that is found in 80 % of the studies",
        "",
        "In nats, of one group, tested at 5 % and not corrected. The ideal test knows every variance and weighs the "
        "answers by them (generalised least squares, normal): the best there is.",
        "",
        *marked_table(
            ("size", "pairs in praise and blame", "preferences", "study", "ideal test", "ratio"), power_rows(studies)
        ),
        "",
        "## Findings of fair models",
        "",
        "Studies with a finding in any of the six groups, after correction, of models with preferences of 0.5 nats, in "
        "per cent with the 95 % interval.",
        "",
        *marked_table(("preference by", *SIZES), false_rows(studies)),
        "",
        "## Moderated variances",
        "",
        "The option `moderated`, with preferences of 0.3 nats: each group its own, or all groups the same. False "
        "positives of one group's test, with the 95 % interval, and of all six; studies in which any group is found "
        f"after correction; and the share of tests that find {EFFECT:g} nats in all groups. All in per cent. The "
        "option is off by default: with few levels it does not keep 5 %, and with many it gains next to nothing.",
        "",
        *marked_table(
            (
                "size",
                "preferences of",
                "moderated",
                "one test",
                "all tests",
                "any group, corrected",
                "found",
                "corrected",
            ),
            moderation_rows(studies),
        ),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--write", type=Path, default=PAGE)
    chosen = parser.parse_args()
    chosen.write.write_text(page(chosen.studies), "utf-8")


if __name__ == "__main__":
    main()
