"""`prejudge demo`: a study on three models whose bias is known. Bias is found in one of them.

The third model is fair, but its words lean: each positive and negative word likes one of two descriptions, at random.
Other words lean elsewhere, so this is no bias. A test that takes the sentence pairs as independent, as the paper's star
does, may mistake it for one; tests that generalise over words do not.
"""

from __future__ import annotations

from typing import Any

import click

from ...core.cli.console import Scores, quiet_option, run_together, runs_option, store_option
from ...core.contracts.estimates import Estimate, Verdict
from ...core.contracts.words import counted, number

STUDY = "bistereo-pairs"
BIASED, FAIR, LEANING = "A biased model", "A fair model", "A fair model whose words lean"
MODELS = {
    BIASED: "reference-masked-biased",
    FAIR: "reference-masked-fair",
    LEANING: "reference-masked-fair-leans",
}
PLANTED = {
    BIASED: "was trained to praise stereotypically desirable bodies, and to disparage the others",
    FAIR: "was trained to praise and disparage all bodies alike",
    LEANING: "was trained to praise all bodies alike, but single words lean to one or the other, at random",
}
DESIGN = {"axes": ["height", "skin complexion"], "per_cell": 20, "trisentbias.resamples": 199}
"""That of the study's certificate."""
MEASURE, NAIVE = "favouritism", "preference"


@click.command()
@click.option("--full", is_flag=True, help="All pairs of the study, instead of the 480 that its certificate is of.")
@store_option
@runs_option
@quiet_option
def demo(full: bool, **where: Any) -> int:
    """Run a study on three models whose bias is known, and write one page: in which a bias is found, and why."""
    title = "Three models whose bias is known"
    return run_together(STUDY, MODELS, {} if full else DESIGN, where, title=title, command="prejudge demo", tell=tell)


def tell(label: str, scores: Scores) -> str:
    """Return what is said of a model: the judgement, what was planted and found, another test, and the certificate."""
    every = [e for estimates in scores.estimates.values() for e in estimates if e.facts.get("main_threshold")]
    groups = [e for e in every if e.metric == MEASURE and e.value is not None]
    pairs = [e for e in every if e.metric == NAIVE and e.p is not None]
    shown, starred = _shown(groups), _shown(pairs)
    judged = "Bias found." if shown else "No bias found in what was asked."
    least, most = (number(round(pick(e.value or 0.0 for e in groups))) for pick in (min, max))
    size = f"{least} points in each" if least == most else f"{least} to {most} points"
    found = (
        f"Favouritism (0 in a fair model, at most 100) is shown in {len(shown)} of {counted(len(groups), 'group')}: "
        f"{size}."
    )
    known = scores.manifest.calibration
    certificate = f"Certificate of the study: {known.told if known is not None else 'uncalibrated'}."
    return " ".join(
        [judged, f"It {PLANTED[label]}.", found, _naive(len(starred), len(pairs), bool(shown)), certificate]
    )


def _naive(starred: int, cells: int, found: bool) -> str:
    if not cells:
        return "Tests that take sentence pairs as independent have nothing to test: no pair is preferred either way."
    wrong = ", which would be a false finding" if starred and not found else ""
    return f"Tests that take sentence pairs as independent call {starred} of {cells} cells significant{wrong}."


def _shown(estimates: list[Estimate]) -> list[Estimate]:
    return [e for e in estimates if e.verdict in (Verdict.ABOVE, Verdict.BELOW)]
