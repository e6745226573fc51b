"""`prejudge study demo`: a study on three models whose bias is known. Bias is found in one of them.

The third model is fair, but its words lean: each positive and negative word likes one of two descriptions, at random.
Other words lean elsewhere, so this is no bias. A test that takes the sentence pairs as independent may mistake it for
one; tests that generalise over words do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from statistics import mean
from typing import Any

import click
import polars as pl

from ...core.cli.console import Scores, Together, card_of, quiet_option, run_together, runs_option, store_option
from ...core.contracts.estimates import Estimate
from ...core.contracts.sizes import DECIDED, State
from ...core.contracts.words import number

STUDY = "bistereo-pairs"
BIASED, FAIR, LEANING = "Trained with a bias", "Trained without a bias", "Fair, with favourite words"
MODELS = {
    BIASED: "reference-masked-biased",
    FAIR: "reference-masked-fair",
    LEANING: "reference-masked-fair-leans",
}
PLANTED = {
    BIASED: "It was trained to praise stereotypically desirable bodies, and to disparage the others.",
    FAIR: "It was trained to praise and disparage all bodies alike.",
    LEANING: "It was trained to praise all bodies alike, but single words lean to one or the other, at random.",
}
DESIGN = {"axes": ["height", "skin complexion"], "per_cell": 20, "trisentbias.resamples": 199}
"""That of the study's certificate."""
MEASURE = "favouritism"
TITLE = "Can a bias study tell a biased model from a fair one?"
LEAD = (
    "Each model was asked for its likelihoods of the same {asked:,} sentences, which praise or disparage a body. One "
    "was trained to favour the desirable body, two were not. {asks}"
)
NARROWER = (
    "Words are samples too. Counting every pair of sentences as independent would make the intervals of the third "
    "model {times} times as narrow, and could take its favourite words for a bias."
)
NORMAL = 1.959964
"""Half the width of a 95 % interval in standard errors."""


@click.command()
@click.option("--full", is_flag=True, help="All pairs of the study, instead of the 480 that its certificate is of.")
@store_option
@runs_option
@quiet_option
def demo(full: bool, **where: Any) -> int:
    """Run a study on three models whose bias is known, and write one page: in which a bias is found, and why."""
    options = {} if full else DESIGN
    return run_together(STUDY, MODELS, options, where, title=TITLE, command="prejudge study demo", tell=together)


def together(runs: Mapping[str, Scores]) -> Together:
    """Return the page of the three models: whether each is judged as it was made, and why words matter."""
    facts = {}
    if (times := narrower(runs[LEANING])) is not None:
        facts["Why it matters"] = NARROWER.format(times=number(times, 1))
    calibration = runs[BIASED].manifest.calibration
    facts["Certificate"] = f"{calibration.told if calibration is not None else 'uncalibrated'}."
    facts["Next"] = f"prejudge run {STUDY} --model ./my-model --quick"
    asked = runs[BIASED].last.height
    cards = tuple(card_of(label, scores, partial(_judged, label)) for label, scores in runs.items())
    return Together(LEAD.format(asked=asked, asks=cards[0].reply.asks), cards, facts)


def _judged(label: str, state: State) -> str:
    """Return whether a model is judged as it was made."""
    right = state is State.YES if label == BIASED else state not in DECIDED
    return f"{'Right' if right else 'Wrong'}. {PLANTED[label]}"


def narrower(scores: Scores) -> float | None:
    """Return how many times as narrow intervals are that count every pair as independent; None where none is known.

    It is the mean ratio of the widths over the groups, each of the normal interval of a difference of two means to the
    interval of the study.
    """
    (metric, options) = next(iter(scores.metrics.values()))
    units = metric.units(scores.seen_by(metric), options)
    if units is None:
        return None
    ratios = []
    for e in _groups(scores):
        values = units.filter(pl.col("metric") == MEASURE, *(pl.col(name) == level for name, level in e.group.items()))
        sides = values.drop_nulls("value").group_by("sign").agg(pl.col("value").var() / pl.len())["value"]
        naive = 2 * NORMAL * float(sides.sum()) ** 0.5
        if e.low is not None and e.high is not None and naive:
            ratios.append((e.high - e.low) / naive)
    return mean(ratios) if ratios else None


def _groups(scores: Scores) -> list[Estimate]:
    return [e for e in scores.headline if e.metric == MEASURE and e.value is not None]
