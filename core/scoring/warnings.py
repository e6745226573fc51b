"""Warnings of a run: unfinished, other options, unanswered trials, answers missing in some groups more than others."""

from __future__ import annotations

from collections.abc import Iterator

from ..catalogue.origins import changes
from ..contracts.estimates import Caveat, Estimate
from ..contracts.secrets import secret_place
from ..contracts.words import counted, p_value, percent
from ..engine.integrity.records import REPEATS, Integrity
from ..engine.manifest import in_words
from .score import Scores

AGAIN = "Scored again with {options}: the numbers may differ from those with the run's own options."
ALTERED = (
    "UNPROVED: the run is not as it was stored ({problem}). These numbers are not those of its head. `prejudge cache "
    "verify` names every damaged row."
)
INCOMPLETE = "This run is not complete: {done:,} of {planned} trials of stage {stage!r} are recorded. {mend}"
REWRITTEN = "Asked and scored with different code: {change}."
RENEWED = (
    "{count} were asked for because the answer before was {outcomes}: they were chosen by their outcome, so these "
    "numbers are not those of the model's first answers."
)
SECRET = (
    "{place!r} of this run looks like a secret, and is stored with it. Do not share its store, bundle or report, and "
    "replace the secret."
)
ONE_DRAW = (
    "The endpoint of stage {stage!r} repeats itself where draws must differ ({why}): its answers may not be drawn as "
    "the study asks. All samples of a prompt count as one draw{lost}."
)
FOUND = "The endpoint of stage {stage!r}: {what}. Seen {count:,} times in {checked:,} answers{key}."
EQUAL = (
    "{alike:,} of {prompts:,} prompts of stage {stage!r} that were asked several times got the same answer each time. "
    "The model may be sure of its answers, or the endpoint may repeat itself ({why})."
)
BATCHES = (
    "Stage {stage!r} was asked in batches, and a sample of {compared} by single calls, too: {texts} equal texts, "
    "{outcomes} equal outcomes{p}. The batches' answers count."
)
ENDED = (
    "Asked until the rules of a policy were decided ({state}): {units:,} of {every:,} levels of {unit}, "
    "{trials:,} of {planned:,} requests, {looks}. "
    "The intervals and tests of this report do not account for the looks; those of `prejudge gate` do."
)
NOT_COMPARED = (
    "Stage {stage!r} was asked in batches; whether single calls are answered alike was not checked by this run."
)
EQUAL_SHARE, EQUAL_PROMPTS = 0.9, 5
"""Share of prompts with equal answers from which on a reader is told, and the fewest prompts."""
UNEVEN = (
    "{label} differ between groups, from {least} ({least_of}) to {most} ({most_of}), p {p}: "
    "differences between these may come from what is lost."
)


def warnings_of(scores: Scores, place: str = "") -> list[str]:
    """Return the warnings that a reader needs with the numbers; `place` has a command's options to find the store."""
    remeasured = scores.manifest.remeasured
    again = [AGAIN.format(options=in_words(remeasured))] if remeasured else []
    damage = [scores.damage] if scores.damage else []
    altered = [ALTERED.format(problem=scores.unproved)] if scores.unproved else []
    warnings = [
        *altered,
        *damage,
        *again,
        *_secret(scores),
        *_renewed(scores),
        *_ended(scores),
        *_one_draw(scores),
        *_found(scores),
        *_batched(scores),
        *_equal(scores),
        *_rewritten(scores),
        *scores.manifest.notes,
        *_unanswered(scores),
        *_uneven(scores),
    ]
    return [*warnings, *unfinished_notes(scores, place)]


def unfinished_notes(scores: Scores, place: str = "") -> list[str]:
    """Return how much was asked of each stage that is not complete, and how to go on; `place` as of `warnings_of`."""
    notes: list[str] = []
    if scores.run.state == "imported":
        return notes
    for stage in scores.stages:
        done, record = scores.recorded(stage.name), scores.manifest.stages.get(stage.name)
        if scores.run.state != "finished" or record is None or done < record.planned:
            planned = f"{record.planned:,}" if record else "an unknown number of"
            mend = f"Resume it: prejudge resume {scores.run.name}{place}"
            notes.append(INCOMPLETE.format(done=done, planned=planned, stage=stage.name, mend=mend))
    return notes


def _secret(scores: Scores) -> list[str]:
    """Warn of a run whose models or options hold what looks like a secret; it is part of the keys and stays there."""
    manifest = scores.manifest
    identities = {role: [i.model, *map(str, i.settings.values())] for role, i in manifest.identities.items()}
    place = secret_place(identities | manifest.study.options | {"command": manifest.command})
    return [] if place is None else [SECRET.format(place=place)]


def _rewritten(scores: Scores) -> list[str]:
    """Warn of third-party parts that are not those with which the run was made."""
    made, now = scores.manifest.origins, scores.manifest.measured
    # The adapters are not loaded to score.
    known = {part: origin for part, origin in made.items() if not part.startswith("adapter ")}
    return [REWRITTEN.format(change=change) for change in changes(known, now)]


def _renewed(scores: Scores) -> list[str]:
    """Describe the answers that were chosen by outcome (`run --refresh`)."""
    if not (renewed := scores.manifest.renewed):
        return []
    outcomes = ", ".join(f"{outcome} ({count:,})" for outcome, count in renewed.items())
    return [RENEWED.format(count=counted(sum(renewed.values()), "answer"), outcomes=outcomes)]


def _batched(scores: Scores) -> Iterator[str]:
    """Describe the stages whose batches answer otherwise than single calls, or were not compared."""
    for name, record in scores.manifest.stages.items():
        if record.batch is None or not record.batch.answers:
            continue
        found = record.batch.sentinel
        if found is None or not found.compared:
            yield NOT_COMPARED.format(stage=name)
        elif found.differs:
            p = "" if found.p is None else f" (p {p_value(found.p)} for their distributions)"
            counts = {"texts": found.equal_texts, "outcomes": found.equal_outcomes, "p": p}
            yield BATCHES.format(stage=name, compared=counted(found.compared, "request"), **counts)
        for note in record.batch.notes:
            yield f"{note[:1].upper()}{note[1:]}."


def _ended(scores: Scores) -> Iterator[str]:
    """Say that the run could end at every look, and when it did."""
    if (ending := scores.manifest.ending) is not None and ending.looks:
        last, looks = ending.looks[-1], counted(len(ending.looks), "look")
        counts = {"every": ending.units, "units": last.units, "trials": last.trials, "planned": ending.trials}
        yield ENDED.format(state=last.state, unit=ending.unit, looks=looks, **counts)


def _one_draw(scores: Scores) -> Iterator[str]:
    """Describe the stages in which all samples of a prompt count as one draw."""
    for name, found in scores.manifest.integrity.items():
        if found.repeated:
            lost = scores.left_out.get(name, 0)
            more = f"; {counted(lost, 'further sample')} are left out" if lost else ""
            yield ONE_DRAW.format(stage=name, why=found.repeated, lost=more)


def _found(scores: Scores) -> Iterator[str]:
    """Describe what the endpoint of a stage does not do as asked."""
    for name, found in scores.manifest.integrity.items():
        for one in found.findings:
            if one.name == REPEATS and found.repeated:
                continue  # said with its consequence
            key = f"; first at {one.key[:12]}" if one.key else ""
            yield FOUND.format(stage=name, what=one.words, count=one.count, checked=found.checked, key=key)


def _equal(scores: Scores) -> Iterator[str]:
    """Describe equal answers to repeats where no canary showed that draws differ."""
    for name, repeats in scores.manifest.repeats.items():
        found = scores.manifest.integrity.get(name)
        varied = found is not None and found.canary is not None and found.canary.verdict in ("varied", "narrow")
        if found is None or varied or found.repeated or repeats.prompts < EQUAL_PROMPTS:
            continue
        if repeats.alike >= EQUAL_SHARE * repeats.prompts:
            yield EQUAL.format(stage=name, alike=repeats.alike, prompts=repeats.prompts, why=_untold(found))


def _untold(found: Integrity) -> str:
    if found.canary is None:
        return "no draws were checked in this run"
    return f"the canary could not tell: {found.canary.first.reason}"


def _unanswered(scores: Scores) -> list[str]:
    """Describe the trials that the model never answered: number, shares, the most frequent reason."""
    warnings = []
    for name in scores.observations:
        failed = scores.lazy(name).filter(status="failed").select("reason").collect(engine="streaming")
        if failed.height:
            reason, count = failed["reason"].fill_null("no reason recorded").value_counts(sort=True).row(0)
            shares = f"{failed.height} of {scores.height(name)} trials of stage {name!r} were not answered"
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
