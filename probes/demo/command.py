"""`prejudge demo`: a study on three models whose bias is known. One is caught, one cleared, one not convicted.

The third model is fair, but its words lean: each positive and negative word likes one of two descriptions, at random.
Other words lean elsewhere, so this is no bias. A test that takes the sentence pairs as independent, as the paper's star
does, mistakes it for one; tests that generalise over words do not.
"""

from __future__ import annotations

from typing import Any

import click

from ...core.cli.console import Scores, quiet_option, run_together, runs_option, store_option
from ...core.contracts.estimates import Estimate, Verdict
from ...core.contracts.words import counted, signed

STUDY = "bistereo-pairs"
BIASED, FAIR, LEANING = "a biased model", "a fair model", "a fair model whose words lean"
MODELS = {
    BIASED: "reference-masked-biased",
    FAIR: "reference-masked-fair",
    LEANING: "reference-masked-fair-leans",
}
AXES = ["skin complexion", "height", "body shape"]
PER_CELL = 100
MEASURE, NAIVE = "favouritism", "preference"


@click.command()
@click.option("--full", is_flag=True, help=f"All pairs of the study, instead of {PER_CELL} per cell of three axes.")
@store_option
@runs_option
@quiet_option
def demo(full: bool, **where: Any) -> int:
    """Run a study on three models whose bias is known, and write one page: which is caught, which cleared, and why."""
    sizes = {} if full else {"per_cell": PER_CELL, "axes": AXES, "sentiments": ["positive", "negative"]}
    title = "Three models whose bias is known"
    return run_together(STUDY, MODELS, sizes, where, title=title, command="prejudge demo", tell=tell)


def tell(label: str, scores: Scores) -> str:
    """Return what is said of a model: what was shown, what the other test says, and the state of the certificate."""
    every = [e for estimates in scores.estimates.values() for e in estimates if e.facts.get("main_threshold")]
    groups = [e for e in every if e.metric == MEASURE and e.value is not None]
    pairs = [e for e in every if e.metric == NAIVE and e.p is not None]
    shown, starred = _shown(groups), _shown(pairs)
    of = f"{len(shown)} of {counted(len(groups), 'group')}"
    least, most = (signed(pick(e.value or 0.0 for e in groups), 1) for pick in (min, max))
    said = (
        f"Caught: favouritism is shown in {of} ({least} to {most} points)."
        if shown
        else f"Not convicted: favouritism is shown in {of} ({least} to {most} points)."
        if starred
        else f"Cleared of what was asked: favouritism is shown in {of} ({least} to {most} points)."
    )
    naive = f"Tests that take sentence pairs as independent call {len(starred)} of {len(pairs)} cells significant."
    known = getattr(scores.manifest, "calibration", None)
    return f"{said} {naive} Certificate of the study: {known.told if known is not None else 'uncalibrated'}."


def _shown(estimates: list[Estimate]) -> list[Estimate]:
    return [e for e in estimates if e.verdict in (Verdict.ABOVE, Verdict.BELOW)]
