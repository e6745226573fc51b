"""What the first screen says before any number: that a model could not do the task, declines, or does not vary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..catalogue.study import SUBJECT
from ..contracts.sizes import State
from ..contracts.words import p_value, percent
from ..fitness import Profile, StageFitness, difference_in_refusals, mass_words, remedies, unfit_words, unvaried_words
from ..scoring.score import Scores
from .records import Reply

DECLINES = (
    "The model declines the question more often for some groups: {most} of {most_asked:,} answers about {of_most}, "
    "{least} of {least_asked:,} about {of_least} (chi-square test, p {p})."
)
JOINED = ("chat", "chat_format")
"""Settings of local models that are `plain` where messages are joined, without a chat template."""
LEVEL, LEAST = 0.05, 0.1
"""Level of the test, and difference in shares of refusals, from which on it is the first sentence."""


def unfit_reply(question: str, scores: Scores) -> Reply | None:
    """Return the only reply of a run whose model could not do the task of a stage; None where it could."""
    for fitness in scores.fitness:
        if not fitness.fit:
            role = "" if fitness.role == SUBJECT else f"As {fitness.role}, "
            return Reply(question, State.UNFIT, f"{role}{unfit_words(fitness.every)}")
    return None


def unfit_remedy(scores: Scores) -> str:
    """Return what to change so that a model may answer the questions of the first stage where it could not."""
    fitness = next(fitness for fitness in scores.fitness if not fitness.fit)
    options: Mapping[str, object] = scores.options.probe
    limit = options.get("max_tokens")
    identity = scores.manifest.identities.get(fitness.role)
    joined = identity is not None and "plain" in map(identity.settings.get, JOINED)
    return remedies(fitness.every, limit if isinstance(limit, int) else None, scores.by_likelihood, base=joined)


def first_sentences(scores: Scores) -> Iterator[str]:
    """Yield a difference in refusals between groups, what little the options hold, and what does not vary."""
    for fitness in (fitness for fitness in scores.fitness if fitness.role == SUBJECT):
        yield from _refusals(fitness)
        if fitness.fit:
            yield from mass_words(fitness.every)
            yield from unvaried_words(fitness.every)


def _refusals(fitness: StageFitness) -> Iterator[str]:
    groups = {level: group for level, group in fitness.groups.items() if group.asked}
    if len(groups) < 2 or (p := difference_in_refusals(groups)) is None or p >= LEVEL:
        return
    least, most = (chosen(groups, key=lambda level: _share(groups[level])) for chosen in (min, max))
    if _share(groups[most]) - _share(groups[least]) >= LEAST:
        yield DECLINES.format(
            most=percent(_share(groups[most]), 0),
            most_asked=groups[most].asked,
            of_most=most.replace("_", " "),
            least=percent(_share(groups[least]), 0),
            least_asked=groups[least].asked,
            of_least=least.replace("_", " "),
            p=p_value(p),
        )


def _share(group: Profile) -> float:
    return group.refused / group.asked
