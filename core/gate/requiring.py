"""`gate --require`: what must be true of a run besides its numbers.

That the model could do the task, that the run is as it was stored, and that its study has a certificate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..contracts.errors import UnknownNameError
from ..contracts.words import percent
from ..fitness import ENOUGH
from ..scoring.score import Scores
from .checks import State
from .judge import Outcome, Verdict

REQUIREMENTS = ("fit", "verified", "certified")


def read_requirements(text: str) -> tuple[str, ...]:
    """Return the names of a list that commas part, each once.

    Raises:
        UnknownNameError: there is no such requirement.
    """
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    for name in names:
        if name not in REQUIREMENTS:
            raise UnknownNameError("requirement", name, REQUIREMENTS)
    return names


def required(scores: Scores, names: Sequence[str]) -> list[Verdict]:
    """Return a verdict on each requirement; all are recomputed from the stored answers."""
    checks = {"fit": _fit, "verified": _verified, "certified": _certified}
    return [Verdict(f"the run is {name}", tuple(checks[name](scores))) for name in names]


def _fit(scores: Scores) -> Iterator[Outcome]:
    check = f"at least {percent(ENOUGH)} of the questions are answered or refused"
    for fitness in scores.fitness:
        profile = fitness.every
        answered = f"{percent(profile.answered, 1)} of {profile.asked:,}"
        state = State.of(fitness.fit) if profile.asked else State.OPEN
        yield Outcome(f"stage {fitness.stage}", check, answered, state)
    if not scores.fitness:
        yield Outcome(scores.run.name, check, "no answers", State.OPEN)


def _verified(scores: Scores) -> Iterator[Outcome]:
    problem = scores.unproved or scores.damage
    proved = bool(scores.manifest.head) and not problem
    result = problem or (f"head {scores.manifest.head[:16]}" if proved else "the run has no head, as it has not ended")
    yield Outcome(scores.run.name, "every answer is as it was stored", result, State.of(proved))


def _certified(scores: Scores) -> Iterator[Outcome]:
    calibration, check = scores.manifest.calibration, "a certificate of the study holds for this run"
    words = "uncalibrated" if calibration is None else calibration.told
    state = State.of(calibration is not None and calibration.state == "certified")
    yield Outcome(scores.manifest.study.name, check, words, state)
