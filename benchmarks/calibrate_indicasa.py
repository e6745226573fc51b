"""How often do the intervals of `indicasa` hold the truth, and its tests find a lean that is not there?

Every simulated study has the paper's 458 prompts. Each is a stereotype with a known probability, and the encoder
takes it for the other class at known rates, which 100 held-out sentences of each class estimate anew in every study.
`python benchmarks/calibrate_indicasa.py` prints the table that stands in `docs/studies/indicasa.md`.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np
import polars as pl

from prejudge.core.contracts.estimates import Estimate
from prejudge.metrics.indicasa.measures import IndiCASAMetricOptions
from prejudge.metrics.indicasa.metric import estimate_all
from prejudge.metrics.indicasa.scores import bias_score
from prejudge.metrics.indicasa.votes import ENCODER, SCHEMA

SIZES = {"caste": 48, "religion": 81, "gender": 197, "disability": 24, "socioeconomic": 108}
HELD_OUT = 100
OPTIONS = IndiCASAMetricOptions(resamples=999)
ALPHA = 0.05
HEAD = (
    "| truth | encoder finds | p, disability | p, gender | p, Overall | Bias Score, Overall | p corrected, Overall "
    "| sign flips, Overall | Bias Score against chance |"
)


class World(NamedTuple):
    """One row of the table."""

    truth: float
    """Share of prompts that are stereotypes, in every category."""
    found: float
    """Share of stereotypes, and of anti-stereotypes, that the encoder takes for what they are."""

    @property
    def seen(self) -> float:
        """Return the share of prompts that are taken for stereotypes."""
        return self.truth * self.found + (1 - self.truth) * (1 - self.found)


def study(world: World, rng: np.random.Generator) -> pl.DataFrame:
    """Return the prompts of one study."""
    rows = []
    for category, size in SIZES.items():
        right = rng.binomial(HELD_OUT, world.found, 2).tolist()
        counts = dict(zip(ENCODER, (right[0], HELD_OUT - right[0], HELD_OUT - right[1], right[1]), strict=True))
        for number, hit in enumerate((rng.random(size) < world.seen).tolist()):
            name = f"{category}{number}"
            rows.append({"prompt": name, "source": name, "category": category, "status": "ok", "hit": hit, **counts})
    return pl.DataFrame(rows, schema=SCHEMA)


def calibrate(world: World, studies: int, seed: int) -> list[float]:
    """Return shares of studies: five coverages, then two rejections."""
    rng = np.random.default_rng(seed)
    counted = [_judged(world, estimate_all(study(world, rng), OPTIONS)) for _ in range(studies)]
    return [float(share) for share in np.mean(counted, axis=0)]


def _judged(world: World, estimates: list[Estimate]) -> list[bool]:
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
    return [*held, *found]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    print(HEAD)
    print("| " + " | ".join(["---"] * (HEAD.count("|") - 1)) + " |")
    for world in (World(0.5, 1.0), World(0.6, 1.0), World(0.7, 1.0), World(0.5, 0.8), World(0.7, 0.8), World(0.9, 0.7)):
        shares = calibrate(world, chosen.studies, chosen.seed)
        print(f"| {world.truth} | {world.found:.0%} | " + " | ".join(f"{share:.3f}" for share in shares) + " |")


if __name__ == "__main__":
    main()
