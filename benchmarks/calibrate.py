"""Calibrate the statistics: how often do intervals cover the truth, and how often do tests cry wolf?

Run: python benchmarks/calibrate.py --write docs/calibration.md; with --leans only the tables about leans are made anew.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import calibrate_leans
import msgspec
from calibration_page import table
from simulations import (
    RANKED,
    SEED,
    Design,
    Grid,
    Rates,
    World,
    calibrate,
    coverage,
    crossed_coverage,
    false_positives,
    predicted_power,
    rank_false_positives,
    verdicts,
)
from simulations_power import Crossing, Ranking, crossed_power, rank_power

from prejudge.core.statistics.resampling import METHODS

WORLDS: tuple[dict[str, Any], ...] = (
    {},
    {"kind": "skewed"},
    {"kind": "ties"},
    {"missing": 0.1},
    {"uneven": True, "missing": 0.1, "kind": "ties"},
    {"icc": 0.0},
    {"icc": 0.6},
)
COUNTS = (5, 7, 10, 20, 150)
COVERS = (0.93, 0.97)
"""What a 95 % interval must do; anything else is set in bold."""
KEEPS = (0.0, 0.065)
"""What a test at 5 % must do; 0.015 is three standard errors of 2,000 studies."""
SMALL_KEEPS = (0.0, 0.08)
"""The same for tables from a quarter of the studies."""


class Section(msgspec.Struct, frozen=True):
    """One table of the page."""

    title: str
    text: str
    rows: list[dict[str, Any]]
    fair: tuple[float, float] | None = None
    judged: frozenset[str] = frozenset()
    """Columns that `fair` is about; all rates, if none is named."""


def sections(studies: int) -> Iterator[Section]:
    """Yield each table."""
    worlds = [World(clusters=clusters, **more) for clusters in COUNTS for more in WORLDS]
    part = max(studies // 4, 20)
    for method in METHODS:
        rows = [_shown(w) | coverage(w, method, studies) for w in worlds]
        yield Section(f"Coverage of 95 % intervals: {method}", COVERAGE[method], rows, COVERS)
    rows = [_shown(w) | false_positives(w, studies) for w in worlds]
    yield Section("False positives of permutation tests", LEVEL, rows, KEEPS)
    some = [w for w in worlds if w.clusters != 7 and (w.kind != "normal" or w.missing)]
    rows = [_shown(w) | rank_false_positives(w, part) for w in some]
    judged = frozenset(name for name in rows[0] if name in RANKED)
    yield Section("False positives of rank tests and McNemar's", RANKS.format(part), rows, SMALL_KEEPS, judged)
    grids = [Grid(*g) for g in ((5, 20, 0.2, 0.2), (10, 10, 0.2, 0.2), (10, 10, 0.0, 0.0), (20, 20, 0.1, 0.1))]
    grids += [Grid(20, 150, *shares) for shares in ((0.2, 0.2), (0.2, 0.0), (0.0, 0.2), (0.0, 0.0))]
    rows = [msgspec.structs.asdict(g) | crossed_coverage(g, 2 * part) for g in grids]
    judged = frozenset(rows[0]) - {"row_share", "column_share"}
    yield Section("Coverage with crossed clusters", CROSSED.format(2 * part), rows, COVERS, judged)
    same = [World(clusters=clusters) for clusters in COUNTS]
    rows = [{"clusters": w.clusters} | verdicts(w, 0.3, studies) for w in same]
    judged = frozenset({"shown to differ, truth 0", "shown to be near neutral, truth at margin"})
    yield Section("Verdicts of equivalence", EQUIVALENCE, rows, KEEPS, judged)
    plans = [World(clusters=c, icc=icc) for c in COUNTS for icc in (0.0, 0.2, 0.6)]
    # The formula is to be met within 0.02, so its check must be surer than that.
    rows = [{"clusters": w.clusters, "icc": w.icc} | predicted_power(w, 5 * studies) for w in plans]
    yield Section("Power", POWER, rows, (0.78, 0.82), frozenset({"t of clusters"}))
    yield from _further_power(part)
    designs = [Design(clusters=c, **m) for c in (7, 14, 30, 75, 150) for m in ({}, {"spread": 1.0}, {"skewed": True})]
    rows = [_designed(d) | msgspec.structs.asdict(calibrate(d, studies)) for d in designs]
    yield Section("The measures of TriSentBias", TRISENTBIAS, rows, COVERS, frozenset(Rates.__struct_fields__[:3]))
    yield from words_that_lean(part)


def words_that_lean(studies: int) -> Iterator[Section]:
    """Yield how often a model whose words lean is found biased: by study, and by what inference covers."""
    fewer = max(studies // 5, 10)
    most, least = calibrate_leans.limits(fewer)
    text = CONCLUSIONS.format(studies=fewer, most=most, least=least)
    yield Section("Default conclusions by study", text, calibrate_leans.default_conclusions(fewer))
    models = max(fewer // 10, 5)
    found = calibrate_leans.agreement(models, fewer)
    yield Section("Drawn and simulated models", AGREEMENT.format(models, fewer), found)
    yield Section("Claims of fair models", CLAIMS.format(fewer // 2), calibrate_leans.claims(fewer // 2))
    rows = calibrate_leans.one_way(studies)
    yield Section("Words that lean", WORDS.format(studies), rows, COVERS, frozenset({"log-odds covered"}))


def _further_power(part: int) -> Iterator[Section]:
    """Yield how often crossed designs and rank tests find the effects that they are said to find with power 0.8."""
    one = [Crossing(*c) for c in ((5, 20, 0.2, 0.2), (10, 10, 0.2, 0.2), (10, 10, 0.0, 0.0), (20, 150, 0.2, 0.0))]
    one += [Crossing(20, 150, 0.0, 0.2), Crossing(20, 40, 0.1, 0.3, missing=0.3)]
    two = [Crossing(*c, groups=2) for c in ((6, 10, 0.05, 0.1), (10, 20, 0.1, 0.2), (20, 40, 0.0, 0.2))]
    rows = [msgspec.structs.asdict(c) | crossed_power(c, 2 * part) for c in (*one, *two)]
    found = frozenset({"crossed jackknife"})
    yield Section("Power of crossed designs", CROSSED_POWER.format(2 * part), rows, (0.76, 0.84), found)
    worlds = [Ranking(c) for c in (10, 20, 60)] + [Ranking(c, 10, icc) for c in (10, 20) for icc in (0.05, 0.2, 0.6)]
    worlds += [Ranking(20, kind="laplace"), Ranking(20, 10, 0.2, kind="laplace")]
    rows = [msgspec.structs.asdict(w) | rank_power(w, part) for w in worlds]
    found = frozenset({"Wilcoxon", "Mann-Whitney", "Kruskal-Wallis"})
    yield Section("Power of rank tests", RANK_POWER.format(part), rows, (0.74, 1.0), found)


def _shown(world: World) -> dict[str, Any]:
    missing = f"{world.missing:.0%} missing" if world.missing else ""
    parts = [world.kind, f"icc {world.icc:g}", "uneven" if world.uneven else "", missing]
    return {"clusters": world.clusters, "answers": ", ".join(filter(None, parts))}


def _designed(design: Design) -> dict[str, Any]:
    noise = "skewed" if design.skewed else "normal"
    return {"clusters": design.clusters, "answers": f"{noise}, spread {design.spread:g}"}


def markdown(section: Section, page: Path | None = None) -> str:
    """Return a section; rates that are not what they should be are bold. With a page, long tables are beside it."""
    rows = [{name: _cell(value, _judges(section, name)) for name, value in row.items()} for row in section.rows]
    return "\n".join([f"## {section.title}", "", section.text, "", *table(section.title, rows, page)])


def _judges(section: Section, name: str) -> tuple[float, float] | None:
    return section.fair if not section.judged or name in section.judged else None


def _cell(value: Any, fair: tuple[float, float] | None) -> str:
    if not isinstance(value, float):
        return "" if value is None else str(value)
    return f"{value:.3f}" if fair is None or fair[0] <= value <= fair[1] else f"**{value:.3f}**"


def main() -> None:
    """Write or print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--write", type=Path, help="Markdown file to write in place of printing")
    parser.add_argument("--leans", action="store_true", help="make only the tables about leans anew")
    asked = parser.parse_args()
    page, start = {"": HEAD.format(studies=asked.studies, seed=SEED)}, time.perf_counter()
    if asked.leans and asked.write:
        page |= titled(asked.write.read_text(encoding="utf-8"))
    for section in words_that_lean(asked.studies // 4) if asked.leans else sections(asked.studies):
        page[section.title] = markdown(section, asked.write)
        print(f"{time.perf_counter() - start:6.0f} s  {section.title}", flush=True)
        if asked.write:
            asked.write.write_text("\n\n".join(page.values()) + "\n", encoding="utf-8")
        else:
            print(page[section.title])


def titled(page: str) -> dict[str, str]:
    """Return the sections of a page by title."""
    _, *parts = page.strip().split("\n\n## ")
    return {part.partition("\n")[0]: f"## {part}" for part in parts}


HEAD = """# Calibration

Tests of the statistics on simulated data with a known truth. Generated by `make calibrate` \
(`benchmarks/calibrate.py`): {studies:,} simulated studies per row unless a table says otherwise, seed {seed}. \
Do not edit. A rate from 2,000 studies has a standard error of 0.005. **Bold** marks a deviation: coverage of 95 \
% intervals outside 0.93 to 0.97, false positives above 5 % by more than three standard errors, power off the \
formula by more than 0.02.

Answers have mean 0 and variance 1, ten per cluster and side; `icc` is the correlation within clusters; `skewed` is a \
shifted exponential, in clusters and in answers; `ties` are five grades; `uneven` clusters hold 5 or 15 answers, and \
missing answers are more frequent in some clusters than in others. Two sides of one cluster share half of what is \
between clusters (`paired`); two groups of clusters have as many clusters each as the first column says."""
COVERAGE = {
    "percentile": "The default: expanded percentiles of the cluster bootstrap, below 10 clusters stretched to the t "
    "interval's reach; with two groups of clusters by Welch and Satterthwaite's degrees of freedom.",
    "bca": "BCa with expanded tails (`intervals=bca`): with 5 clusters the quantiles are still too narrow.",
    "jackknife": "Leaving clusters out, with Student's t (`intervals=jackknife`). It is symmetric, so "
    "the coverage of ratios such as the odds ratio is too low; use percentiles or BCa for these.",
}
LEVEL = (
    "Whole clusters are flipped, swapped, or exchange labels; 999 arrangements. With 5 clusters no sign flip can reach "
    "5 % (its minimum p is 0.0625): the test never rejects, and the note of the estimate says so."
)
RANKS = (
    "By permutation of whole clusters (199 arrangements, {:,} studies), and classic: with answers treated as "
    "independent. The classic p has too many false positives; it is shown for comparison with papers that use it. "
    "Kruskal-Wallis has three groups."
)
CROSSED = (
    "The mean of one answer per row and column, one in ten missing ({:,} studies). Shares are of the variance. "
    "Clustering by rows or columns alone fails if the other has random effects. The crossed jackknife is correct; it "
    "is too wide if neither rows nor columns have random effects."
)
EQUIVALENCE = (
    "Margin 0.3 standard deviations, alpha 0.05, icc 0.2. False verdicts are `differs` at truth 0 and `near` at the "
    "margin; `near` at truth 0 is the power of the test. With few clusters, equivalence can rarely be shown."
)
POWER = (
    "The effect that the closed form gives power 0.8, and how often a t test of cluster means and a sign-flip test "
    "find it, in five times as many studies. The sign flip needs at least 6 clusters."
)
CROSSED_POWER = (
    "The effect that the closed form gives power 0.8, how often the crossed jackknife finds it ({:,} studies; bold is "
    "off by more than 0.04), and the median of the effects that 200 of these studies give when each is taken for a "
    "pilot. With two groups, the effect of a row on both cancels in their difference. With 5 rows the formula gives "
    "slightly too much power."
)
RANK_POWER = (
    "The effects that the closed forms give power 0.8, and how often tests by permutation of whole clusters (499 "
    "arrangements) find them, in {:,} studies; bold is below by more than 0.06. Kruskal-Wallis has three groups. "
    "Its effect is that of normal answers: with heavy tails (`laplace`) the power of rank tests is higher."
)
TRISENTBIAS = (
    "Coverage of the mean log-odds difference, of its contrast and of favouritism; false positives of swap, sign flip "
    "and of the binomial test of pairs (the literal reading of the paper's star). `spread` is the standard deviation "
    "between templates, relative to 1 between pairs of one template."
)
WORDS = (
    "The design of `bistereo-pairs` (height, women, 6,150 pairs, 14 words), nothing planted, and a random lean of each "
    "word, of standard deviation `lean` in nats ({:,} studies). By templates alone the leans pass for "
    "favouritism. Templates crossed with words, the default, keep their level, and their intervals cover more than "
    "95 % where words hardly lean. The last rows have a planted contrast of 0.5 nats: there a significant test is "
    "right, and an ideal t test of the 7 and 7 words has a power of 0.74 to 0.82."
)
CONCLUSIONS = (
    "Every study with its default inference ({studies:,} studies per row): `significant` is the share of tests with "
    "p at most 0.05, where nothing is `planted` the false positives; `covered` the share of 95 % intervals that "
    "contain the true value; `width` the median distance of an interval's ends from the value over the 95 % quantile "
    "of the errors (1 is exact, more is conservative). What leans is the random facet: attribute words (pairs, NLI), "
    "premises by prompt (NLI prompts), groups and attributes (tuples), given terms (subtle), faces and scenarios "
    "(attractiveness), pairs (CrowS-Pairs). `unequal`: most leans small and a few large; `paired`: two words each "
    "share half of the variance, as synonyms do, so that there are fewer independent words than are counted. **Bold** "
    "is beyond what chance explains (1 %): false positives above {most:.3f}, coverage below {least:.3f}. `options too` "
    "and `shared words` lean in a facet that the study takes as fixed, and their conclusions say so."
)
CLAIMS = (
    "How often a fair model (leans of 0.3) is called biased at all, with all of a study's tests corrected, by one-way "
    "inference and by the default ({:,} studies)."
)
AGREEMENT = (
    "The standard deviation of estimates of models that are drawn in closed form, as above, and of {:,} models of "
    "`simulated` with the same leans (0.3), asked and read by the study's own stage; {:,} are drawn. **Bold**: a ratio "
    "outside of its 99 % limits, or more significant tests than chance explains."
)


if __name__ == "__main__":
    main()
