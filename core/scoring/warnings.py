"""Warnings of a run: unfinished, other options, unanswered trials, answers missing in some groups more than others."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from ..catalogue.origins import changes
from ..contracts.estimates import Caveat, Estimate
from ..contracts.secrets import secret_place
from ..contracts.words import counted, p_value, percent
from ..engine.manifest import in_words
from .score import Scores

AGAIN = "Scored again with {options}: the numbers may differ from those with the run's own options."
INCOMPLETE = "This run is not complete: {done} of {planned} trials of stage {stage!r} are recorded. {mend}"
REWRITTEN = "Asked and scored with different code: {change}."
RENEWED = (
    "{count} were asked for because the answer before was {outcomes}: they were chosen by their outcome, so these "
    "numbers are not those of the model's first answers."
)
SECRET = (
    "{place!r} of this run looks like a secret, and is stored with it. Do not share its store, bundle or report, and "
    "replace the secret."
)
UNEVEN = (
    "{label} differ between groups, from {least} ({least_of}) to {most} ({most_of}), p {p}: "
    "differences between these may come from what is lost."
)


def warnings_of(scores: Scores, place: str = "") -> list[str]:
    """Return the warnings that a reader needs with the numbers; `place` has a command's options to find the store."""
    remeasured = scores.manifest.remeasured
    again = [AGAIN.format(options=in_words(remeasured))] if remeasured else []
    damage = [scores.damage] if scores.damage else []
    warnings = [
        *damage,
        *again,
        *_secret(scores),
        *_renewed(scores),
        *_rewritten(scores),
        *scores.manifest.notes,
        *_unanswered(scores),
        *_uneven(scores),
    ]
    if scores.run.state == "imported":
        return warnings
    for stage in scores.stages:
        done, record = scores.observations[stage.name].height, scores.manifest.stages.get(stage.name)
        if scores.run.state != "finished" or record is None or done < record.planned:
            planned = f"{record.planned}" if record else "an unknown number of"
            mend = f"Resume it: prejudge resume {scores.run.name}{place}"
            warnings.append(INCOMPLETE.format(done=done, planned=planned, stage=stage.name, mend=mend))
    return warnings


def _secret(scores: Scores) -> list[str]:
    """Warn of a run whose models or options hold what looks like a secret; it is part of the keys and stays there."""
    manifest = scores.manifest
    identities = {role: [i.model, *map(str, i.settings.values())] for role, i in manifest.identities.items()}
    place = secret_place(identities | manifest.study.options | {"command": manifest.command})
    return [] if place is None else [SECRET.format(place=place)]


def _rewritten(scores: Scores) -> list[str]:
    """Warn of third-party parts that are not those with which the run was made."""
    made, now = scores.manifest.origins, scores.manifest.measured
    # Runs of versions that kept no record have none; the adapters are not loaded to score.
    known = {part: origin for part, origin in made.items() if not part.startswith("adapter ")}
    return [REWRITTEN.format(change=change) for change in changes(known, now)] if made else []


def _renewed(scores: Scores) -> list[str]:
    """Describe the answers that were chosen by outcome (`run --refresh`)."""
    if not (renewed := scores.manifest.renewed):
        return []
    outcomes = ", ".join(f"{outcome} ({count:,})" for outcome, count in renewed.items())
    return [RENEWED.format(count=counted(sum(renewed.values()), "answer"), outcomes=outcomes)]


def _unanswered(scores: Scores) -> list[str]:
    """Describe the trials that the model never answered: number, shares, the most frequent reason."""
    warnings = []
    for name, frame in scores.observations.items():
        failed = frame.filter(pl.col("status") == "failed")
        if failed.height:
            reason, count = failed["reason"].fill_null("no reason recorded").value_counts(sort=True).row(0)
            shares = f"{failed.height} of {frame.height} trials of stage {name!r} were not answered"
            warnings.append(f"{shares}; most often ({count} times): {reason}")
    return warnings


def _uneven(scores: Scores) -> Iterator[str]:
    """Describe shares of missing answers that differ significantly between groups, by the least and the greatest."""
    for estimates in scores.estimates.values():
        # Few estimates have the caveat, so that thousands are not compared with one another.
        for whole in (e for e in estimates if Caveat.UNEVEN_MISSING in e.caveats):
            own = [e for e in estimates if e.metric == whole.metric and e.group and "kind" not in e.group]
            if shares := sorted(((e.value, e) for e in own if e.value is not None), key=lambda share: share[0]):
                yield _from_to(whole, shares[0][1], shares[-1][1])


def _from_to(whole: Estimate, least: Estimate, most: Estimate) -> str:
    return UNEVEN.format(
        label=whole.label or whole.metric,
        least=percent((least.value or 0.0) / 100, 1),
        most=percent((most.value or 0.0) / 100, 1),
        least_of=", ".join(map(str, least.group.values())),
        most_of=", ".join(map(str, most.group.values())),
        p=p_value(whole.p),
    )
