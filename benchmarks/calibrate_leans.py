"""Calibrate the default conclusion of every study against models whose words, groups, items or faces lean.

A lean of a word is no bias, as another word has another: so where none is planted, a study that speaks of words like
these must rarely find one. Where a bias is planted, it must be found, and its interval must cover it.

Run: python benchmarks/calibrate_leans.py --studies 100 --simulated 10. That takes five minutes of one quiet core.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from leaning import NLI, Pairs, SixGroups, Study, World, all_studies
from scipy import stats

from prejudge.core.contracts import Estimate

SEED = 2025
ALPHA, RISK = 0.05, 0.01
"""Level of the tests, and the chance that a rate which is right is called wrong."""
LEANS = (0.0, 0.1, 0.3, 0.5)
FAIR = (*(World(lean) for lean in LEANS), World(0.3, "unequal"), World(0.3, "paired"))
PLANTED = World(0.3, effect=0.5)
WAYS: dict[str, dict[str, Any]] = {
    "template": {"over": "template"},
    "attribute": {"over": "attribute"},
    "template x attribute": {"over": ("template", "attribute")},
}


class Found(NamedTuple):
    """What one simulated study found."""

    value: float
    low: float
    high: float
    p: float
    """The least of several tests, corrected."""

    @classmethod
    def of(cls, estimates: Sequence[Estimate]) -> Found:
        """Return the estimate with the least p; what is undefined is NaN, and p then 1."""
        tests = [e.p if e.p_adjusted is None else e.p_adjusted for e in estimates]
        e, p = min(zip(estimates, tests, strict=True), key=lambda both: 1.0 if both[1] is None else both[1])
        ends = (np.nan if x is None else x for x in (e.value, e.low, e.high))
        return cls(*ends, 1.0 if p is None else p)


def found(study: Study, world: World, studies: int, **options: Any) -> dict[str, list[Found]]:
    """Return what so many studies find, by measure."""
    rng = np.random.default_rng([SEED, int(10 * world.lean), int(10 * world.effect)])
    kept: dict[str, list[Found]] = {name: [] for name in (*study.judged, *study.compared)}
    for _ in range(studies):
        _keep(kept, study.measure(study.draw(world, rng), **options))
    return kept


def simulated(study: Study, world: World, studies: int) -> dict[str, list[Found]]:
    """Return the same of `simulated` models, asked and read by the study's stage."""
    kept: dict[str, list[Found]] = {name: [] for name in study.compared or study.judged}
    for seed in range(studies):
        _keep(kept, study.measure(study.simulate(world, seed)))
    return kept


def _keep(kept: dict[str, list[Found]], estimates: Sequence[Estimate]) -> None:
    for name, own in kept.items():
        own.append(Found.of([e for e in estimates if e.metric == name]))


def rates(found: Sequence[Found], truth: float) -> dict[str, float]:
    """Return the share of tests at p <= 0.05, of intervals that cover the truth, and how wide these are.

    The width is the median distance of an end from the value over the 95 % quantile of the errors: 1 is exact, more is
    conservative.
    """
    value, low, high, p = np.array(found, dtype=np.float64).T
    there = ~np.isnan(low)
    error, half = np.abs(value - truth), (high - low) / 2
    return {
        "significant": float(np.mean(p <= ALPHA)),
        "covered": float(np.mean((low <= truth) & (truth <= high), where=there)) if there.any() else np.nan,
        "width": float(np.nanmedian(half) / np.nanquantile(error, 1 - ALPHA)) if there.any() else np.nan,
    }


def limits(studies: int) -> tuple[float, float]:
    """Return the largest rate of false positives and the least coverage that chance explains."""
    return (
        float(stats.binom.ppf(1 - RISK, studies, ALPHA)) / studies,
        float(stats.binom.ppf(RISK, studies, 1 - ALPHA)) / studies,
    )


NEUTRAL = {"metric_score": 50.0, "biased_preference_swapped": 50.0}
"""Values of a model without a bias; of all other measures 0."""


def rows(study: Study, worlds: Sequence[World], studies: int) -> Iterator[dict[str, Any]]:
    """Yield a row per measure and world."""
    most, least = limits(studies)
    for world in worlds:
        for name, own in found(study, world, studies).items():
            if name not in study.judged:
                continue
            truth = NEUTRAL.get(name, 0.0)
            if world.effect:
                # What the measure is on average, but for the log-odds, whose truth is what is planted.
                truth = (
                    study.nats * world.effect if "log_odds" in name else float(np.nanmean([one.value for one in own]))
                )
            rate = rates(own, truth)
            yield {
                "study": study.name,
                "measure": name,
                "lean": f"{world.lean:g}{'' if world.kind == 'equal' else ', ' + world.kind}",
                "planted": f"{world.effect:g}",
                "significant": told(rate["significant"], 0.0, 1.0 if world.effect else most),
                "covered": told(rate["covered"], least, 1.0),
                "width": "" if np.isnan(rate["width"]) else f"{rate['width']:.2f}",
            }


def told(rate: float, low: float, high: float) -> str:
    """Return a rate, bold where it is beyond its limits; nothing where nothing varied."""
    if np.isnan(rate):
        return ""
    return f"{rate:.3f}" if low <= rate <= high else f"**{rate:.3f}**"


def default_conclusions(studies: int) -> list[dict[str, Any]]:
    """Return every study's rates: fair models by lean, and one with a bias."""
    return [row for study in all_studies() for row in rows(study, (*FAIR, PLANTED) if study.plants else FAIR, studies)]


def one_way(studies: int) -> list[dict[str, Any]]:
    """Return `bistereo-pairs` by what its inference covers: fair models, and one of 0.5 nats."""
    study, table = Pairs(), []
    for world in (*FAIR[: len(LEANS)], PLANTED):
        for way, options in WAYS.items():
            own = found(study, world, studies, **options)
            shares, nats = (rates(own[name], world.effect) for name in study.judged)
            table.append(
                {"lean": world.lean, "effect": world.effect, "cluster": way}
                | {"favouritism p <= 0.05": shares["significant"], "log-odds p <= 0.05": nats["significant"]}
                | {"log-odds covered": nats["covered"]}
            )
    return table


def claims(studies: int) -> list[dict[str, Any]]:
    """Return how often a fair model is called biased at all, where several tests are corrected."""
    table = []
    for study in (SixGroups(), NLI()):
        for way in ("template", "template x attribute"):
            own = found(study, World(0.3), studies, **WAYS[way])
            any_of = np.min([[one.p for one in measure] for measure in own.values()], axis=0)
            table.append({"study": study.name, "cluster": way, "any claim": float(np.mean(any_of <= ALPHA))})
    return table


def agreement(studies: int, drawn: int) -> list[dict[str, Any]]:
    """Return the spread of estimates of drawn and of simulated models at leans of 0.3; bold beyond 99 % limits."""
    table = []
    for study in all_studies():
        one, other = found(study, World(0.3), drawn), simulated(study, World(0.3), studies)
        for name in other:
            values = [np.array([x.value for x in own[name]]) for own in (one, other)]
            spreads = [float(np.nanstd(x, ddof=1)) for x in values]
            low, high = (np.sqrt(stats.f.ppf(q, studies - 1, drawn - 1)) for q in (RISK / 2, 1 - RISK / 2))
            false = np.mean([x.p <= ALPHA for x in other[name]])
            table.append(
                {"study": study.name, "measure": name, "drawn": f"{spreads[0]:.3g}", "simulated": f"{spreads[1]:.3g}"}
                | {"ratio": told(spreads[1] / spreads[0], float(low), float(high))}
                | {"significant": told(float(false), 0.0, limits(studies)[0])}
            )
    return table


def markdown(table: Sequence[dict[str, Any]]) -> str:
    """Return a table."""
    cells = [[f"{v:.3f}" if isinstance(v, float) else str(v) for v in row.values()] for row in table]
    head = [list(table[0]), ["---"] * len(table[0])]
    return "\n".join(f"| {' | '.join(row)} |" for row in [*head, *cells])


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=100)
    parser.add_argument("--simulated", type=int, default=10, help="models that are asked, to compare with those drawn")
    chosen = parser.parse_args()
    start = time.perf_counter()
    print(markdown(default_conclusions(chosen.studies)), end="\n\n", flush=True)
    print(markdown(claims(chosen.studies // 2)), end="\n\n", flush=True)
    print(markdown(agreement(chosen.simulated, chosen.studies)))
    print(f"{chosen.studies} studies each, {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
