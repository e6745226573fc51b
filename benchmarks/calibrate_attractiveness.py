"""How often do the tests of `attractiveness` find a filter whose effect is planted, and one that does nothing?

Every simulated study is that of one scenario at the paper's size: 462 faces, with and without the filter, in four
orders and three seeds, answered by the closed form of the adapter `simulated` without a store. Another seed is another
model. Gender is planted nowhere: what the tests between women and men find, they find by chance. A second table plants
a bias by gender in either variant, and asks whether it became stronger. Both are closed forms, without a store.
`python benchmarks/calibrate_attractiveness.py` prints the table in `docs/studies/attractiveness.md`.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy import stats

from prejudge.adapters.simulated.adapter import Simulated, SimulatedOptions
from prejudge.core.contracts import Trial, Unreadable
from prejudge.core.contracts.adapter import Services
from prejudge.core.statistics.declaration import Declaration
from prejudge.core.statistics.declared_rows import part, prepared
from prejudge.core.statistics.inference import estimate
from prejudge.core.statistics.matched import signed_ranks
from prejudge.core.statistics.resampling import Resampling, flip_test
from prejudge.metrics.attractiveness.measures import change_of
from prejudge.metrics.attractiveness.metric import AttractivenessMetricOptions
from prejudge.probes.attractiveness.probe import AttractivenessOptions, LikelihoodStage

Numbers = npt.NDArray[np.float64]
SCENARIOS = "first,second,category,kind,positive\nKind,Rude,traits,directed,first\n"
FILTER, SEEDS, ORDERS = 0.5, 3, 4
NOISE, ALPHA = 0.5, 0.05
PLAN = Resampling(resamples=999)
OPTIONS = AttractivenessMetricOptions(resamples=999)
TESTS = (
    "filter: Kruskal-Wallis, images (the paper)",
    "filter: Wilcoxon, faces",
    "filter: sign flip, faces",
    "gender: Kruskal-Wallis, images (the paper)",
    "gender: Kruskal-Wallis, faces",
    "gender: change of bias, faces",
)
HEAD = "| spread | effect | mean gap | " + " | ".join(TESTS) + " |"


class World(NamedTuple):
    """One row of the table, in nats."""

    spread: float
    """Standard deviation between faces."""
    noise: float
    """Standard deviation between the questions about one face."""
    effect: float
    """What the filter adds to the log-odds of the positive option."""


class Study:
    """The trials of one scenario, and the pictures they are about."""

    def __init__(self, path: str) -> None:
        """Draw the faces."""
        options = AttractivenessOptions(asking="likelihood", scenarios=path, built_in=False, strength=FILTER)
        self._stage = LikelihoodStage(options)
        self._pictures = {hashlib.sha256(data).hexdigest(): data for data, _ in self._stage.images()}
        self._trials = list(self._stage.trials({}))
        # Two pictures of each face, in four orders each.
        self.women = np.array([trial.factors["gender"] == "female" for trial in self._trials[:: 2 * ORDERS]])

    def scores(self, world: World, seed: int) -> Numbers:
        """Return the scores (faces, variants) in twelfths: draws for each order and seed from the model's odds."""
        settings = SimulatedOptions(
            strength=world.effect / FILTER,
            noise=world.noise,
            spread=world.spread,
            seed=seed,
            positive=("kind",),
            negative=("rude",),
        )
        model = Simulated(settings)
        model.services = Services(blobs=self._pictures.__getitem__)
        answers = asyncio.run(model.likelihood_batch([trial.request for trial in self._trials]))
        odds = [self._odds(trial, answer) for trial, answer in zip(self._trials, answers, strict=True)]
        drawn = np.random.default_rng([seed, 9]).binomial(SEEDS, odds).astype(np.float64)
        return drawn.reshape(-1, 2, ORDERS).sum(axis=2)

    def _odds(self, trial: Trial, answer: Any) -> float:
        read = self._stage.read(trial.factors, answer)
        if isinstance(read, Unreadable):
            raise SystemExit(f"the simulated model gave no odds: {read.reason}")
        return float(str(read["score"]))


def tested(scores: Numbers, women: npt.NDArray[np.bool_]) -> tuple[float, ...]:
    """Return the p of each test, and the gap."""
    faces, moved = scores.sum(axis=1), scores[:, 1] - scores[:, 0]
    return (
        float(stats.kruskal(scores[:, 0], scores[:, 1]).pvalue),
        signed_ranks(moved)[1],
        float(flip_test(np.stack([np.ones(len(moved)), moved], axis=-1)[:, None, None], PLAN)[0, 0]),
        float(stats.kruskal(scores[women].ravel(), scores[~women].ravel()).pvalue),
        float(stats.kruskal(faces[women], faces[~women]).pvalue),
        change(scores, women),
        float(moved.mean()) / (SEEDS * ORDERS),
    )


def change(scores: Numbers, group: npt.NDArray[np.bool_]) -> float:
    """Return the p of the test of a change of bias between a group and the others."""
    faces = pl.DataFrame({"score": scores[:, 0], "score_filtered": scores[:, 1], "gender": group.astype(str)})
    design = Declaration(measures=(change_of("gender", ("False", "True")),))
    rows = prepared(faces.with_columns(status=pl.lit("ok")), design)
    return estimate(design.measures[0], part({}, rows, design), design, OPTIONS).p or 1.0


def rows(study: Study, repeats: int) -> Iterator[str]:
    """Yield the table line by line."""
    yield HEAD
    yield "|" + " --- |" * HEAD.count(" | ") + " --- |"
    for spread, effect in product((0.5, 2.0), (0.0, 0.05, 0.1, 0.2, 0.4)):
        world = World(spread, NOISE, effect)
        found = np.array([tested(study.scores(world, seed), study.women) for seed in range(repeats)])
        cells = [f"{100 * (found[:, test] < ALPHA).mean():.1f}" for test in range(len(TESTS))]
        yield f"| {spread} | {effect:g} | {found[:, -1].mean():.3f} | {' | '.join(cells)} |"


PLANTED = ((0, 0, 0), (0, 0, 1), (0.5, 0.5, 0), (1, 1, 0), (-1, 1, 0), (0, 0.5, 0), (0.5, 1, 0), (0.5, 0.9, 0.5))
"""Nats by which men get the counted option more often: without the filter, with it; and what the filter does to all."""
FACES, TWELVE = 462, SEEDS * ORDERS


def changed(repeats: int) -> Iterator[str]:
    """Yield the table of tests of a change of bias, in per cent of studies."""
    yield "| gender, original | gender, filtered | filter | bias_change | filter_between_groups |"
    yield "|" + " --- |" * 5
    male = np.arange(FACES) % 2
    for original, filtered, shift in PLANTED:
        rng, found = np.random.default_rng(1), []
        for _ in range(repeats):
            own, sides = rng.normal(0, 1, FACES), []
            for bias, filtering in ((original, 0.0), (filtered, shift)):
                lean = own + filtering + bias * (male - 0.5) + rng.normal(0, 0.3, FACES)
                sides.append(rng.binomial(TWELVE, 1 / (1 + np.exp(-lean))).astype(np.float64))
            counts = np.stack(sides, axis=1)
            moved = counts[:, 1] - counts[:, 0]
            between = stats.kruskal(*(moved[male == side] for side in (0, 1))).pvalue
            found.append((change(counts, male == 1), between))
        stronger, apart = 100 * (np.array(found) < ALPHA).mean(axis=0)
        yield f"| {original:g} | {filtered:g} | {shift:g} | {stronger:.1f} | {apart:.1f} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=400, help="simulated studies per row")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scenarios.csv"
        path.write_text(SCENARIOS, encoding="utf-8")
        for line in rows(Study(str(path)), asked.studies):
            print(line, flush=True)
    for line in changed(asked.studies):
        print(line, flush=True)


if __name__ == "__main__":
    main()
