"""How often do the intervals of `indicasa` hold the truth, and its tests find a lean that is not there?

Every simulated study has the paper's 458 prompts. Each is a stereotype with a known probability, and the encoder
finds the class of its completions at a rate of its own. The rate of held-out sentences, from which the correction is
made, is another one: it is measured anew in every study on as many contexts as the authors hold out, each with its own
rate. Both rates are those of all-MiniLM-L6-v2 and of an encoder trained from it.
`python benchmarks/calibrate_indicasa.py` prints the table that stands in `docs/studies/indicasa.md`.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np
import polars as pl

from prejudge.core.contracts.estimates import Estimate
from prejudge.metrics.indicasa.measures import IndiCASAMetricOptions
from prejudge.metrics.indicasa.metric import IndiCASA
from prejudge.metrics.indicasa.scores import bias_score
from prejudge.metrics.indicasa.votes import ENCODER, SCHEMA

SIZES = {"caste": 48, "religion": 81, "gender": 197, "disability": 24, "socioeconomic": 108}
CONTEXTS = {"caste": 5, "religion": 4, "gender": 8, "disability": 4, "socioeconomic": 4}
"""Held-out contexts."""
SENTENCES = 9
"""Held-out sentences of each type in a context, on average."""
SPREAD = 0.2
"""Standard deviation of the rate between contexts, measured on the 119 of the data set."""
OPTIONS = IndiCASAMetricOptions(resamples=999)
ALPHA = 0.05
HEAD = (
    "| truth | found, completions | found, held out "
    "| p, disability | p, gender | p, Overall | Bias Score, Overall | p corrected, Overall "
    "| sign flips, Overall | Bias Score against chance | mean of p corrected |"
)


class World(NamedTuple):
    """One row of the table."""

    truth: float
    """Share of prompts that are stereotypes, in every category."""
    found: float
    """Share of prompts of either class that the encoder takes for what they are."""
    held: float
    """The same share of held-out sentences, as the file of the confusion has it."""

    @property
    def seen(self) -> float:
        """Return the share of prompts that are taken for stereotypes."""
        return self.truth * self.found + (1 - self.truth) * (1 - self.found)


PERFECT = [World(truth, 1.0, 1.0) for truth in (0.5, 0.6, 0.7)]
RATES = ((0.62, 0.69), (0.62, 0.62), (0.66, 0.70), (0.66, 0.66))
"""Bare and trained: of one pair by the majority of five completions, with held-out rates of the mean of all references
(files of earlier versions), and of the same comparison."""
WORLDS = [*PERFECT, *(World(truth, *rates) for truth in (0.5, 0.7, 0.9) for rates in RATES)]


def study(world: World, rng: np.random.Generator) -> pl.DataFrame:
    """Return the prompts of one study."""
    rows = []
    for category, size in SIZES.items():
        sentences, rates = CONTEXTS[category] * SENTENCES, _rates(world.held, CONTEXTS[category], rng)
        right = np.rint(sentences * rates.mean(axis=0)).astype(int).tolist()
        counts = dict(zip(ENCODER, (right[0], sentences - right[0], sentences - right[1], right[1]), strict=True))
        for number, hit in enumerate((rng.random(size) < world.seen).tolist()):
            name = f"{category}{number}"
            rows.append({"prompt": name, "source": name, "category": category, "status": "ok", "hit": hit, **counts})
    return pl.DataFrame(rows, schema=SCHEMA)


def _rates(mean: float, contexts: int, rng: np.random.Generator) -> np.ndarray:
    """Return the rate of each context and type: [contexts, 2]."""
    if mean == 1:
        return np.ones((contexts, 2))
    weight = mean * (1 - mean) / SPREAD**2 - 1
    return rng.beta(mean * weight, (1 - mean) * weight, (contexts, 2))


def calibrate(world: World, studies: int, seed: int) -> list[float]:
    """Return shares of studies: five coverages, then two rejections; last the mean of the corrected probability."""
    rng = np.random.default_rng(seed)
    counted = [_judged(world, IndiCASA().compute(study(world, rng), OPTIONS)) for _ in range(studies)]
    return [float(share) for share in np.nanmean(counted, axis=0)]


def _judged(world: World, estimates: list[Estimate]) -> list[float]:
    by_name = {(e.metric, e.group.get("category")): e for e in estimates}
    probability, score = "stereotype_probability", "bias_score"
    seen, distance = world.seen, float(bias_score(np.array(world.seen)))
    truths = (
        (by_name[probability, "disability"], seen),
        (by_name[probability, "gender"], seen),
        (by_name[probability, None], seen),
        (by_name[score, None], distance),
        (by_name[f"{probability}_corrected", None], world.truth),
    )
    held = [e.low is not None and e.high is not None and e.low <= truth <= e.high for e, truth in truths]
    found = [(p := by_name[name, None].p) is not None and p <= ALPHA for name in (probability, score)]
    corrected = by_name[f"{probability}_corrected", None].value
    return [*map(float, (*held, *found)), float("nan") if corrected is None else corrected]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    print(HEAD)
    print("| " + " | ".join(["---"] * (HEAD.count("|") - 1)) + " |")
    for world in WORLDS:
        shares = calibrate(world, chosen.studies, chosen.seed)
        rates = f"{world.truth} | {world.found:.0%} | {world.held:.0%}"
        print(f"| {rates} | " + " | ".join(f"{share:.3f}" for share in shares) + " |")


if __name__ == "__main__":
    main()
