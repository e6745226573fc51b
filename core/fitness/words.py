"""Sentences about fitness, for first screens and for a run that is stopped."""

from __future__ import annotations

from collections.abc import Iterator

from ..contracts.words import percent
from .answers import FitAnswer
from .profile import Profile

LITTLE = 0.5
"""Probability of all options together, below which something else is likelier."""
MOST = 0.5
"""Share of the unreadable answers, from which on most fail in one way."""
SHOWN, CHARACTERS = 3, 200
"""Answers that are shown, and characters of each."""
MISPLACED = (
    "The answers stand in the reasoning field of the replies, and more tokens change nothing. The server takes a model "
    "that does not think for one that does: start it without its reasoning parser (vLLM, SGLang: --reasoning-parser), "
    'or let the model think (thinking = "on" in its entry).'
)
"""What to do where a server puts answers into the field for reasoning."""
BASE = "The model is asked without a chat template: it continues texts, and may not answer questions."
NO_LIKELIHOOD = "No way of asking in this study is by likelihood."
KINDS = {
    "misplaced": "stand in the field for reasoning",
    "empty": "have no text",
    "echo": "repeat the question",
    "cut": "reached their limit of tokens",
}
"""How answers fail, the clearest first: raising a limit helps no answer that repeats the question."""


def unfit_words(profile: Profile) -> str:
    """Return the share of answers that could not be read, and how most of them fail, as a clause."""
    kind = most_of(profile)
    which = f"; most {KINDS[kind]}" if kind else ""
    return f"{percent(1 - profile.answered, 0)} of {profile.asked:,} answers could not be read{which}"


def most_of(profile: Profile) -> str:
    """Return how most unreadable answers fail: one of `KINDS`; empty where no way is that of most."""
    return next((kind for kind in KINDS if profile.looked and getattr(profile, kind) > MOST * profile.looked), "")


def unvaried_words(profile: Profile) -> Iterator[str]:
    """Yield which outcomes do not vary, as sentences."""
    for name, (value, count, total) in profile.constant().items():
        label = name.replace("_", " ")
        yield f"The answers do not vary: {count:,} of {total:,} have the {label} {value!r}."


def mass_words(profile: Profile) -> Iterator[str]:
    """Yield that the options of a choice hold little of the probability, as a sentence."""
    if profile.values and profile.mass is not None and profile.mass < LITTLE:
        yield (
            f"The options hold {percent(profile.mass, 1)} of the probability (median): asked in words, the model would "
            "mostly say something else."
        )


def base_words(by_likelihood: str) -> str:
    """Return that a model has no chat template, and what to do, as sentences; the argument is as in `remedies`."""
    way = f"Ask it by likelihood: --set {by_likelihood}, or take" if by_likelihood else f"{NO_LIKELIHOOD} Take"
    return f"{BASE} {way} a model that follows instructions."


def remedies(profile: Profile, limit: int | None, by_likelihood: str, *, base: bool = False) -> str:
    """Return what to change so that a model may answer, as sentences.

    Args:
        profile: the shares of its answers.
        limit: tokens that the study's own requests allow, where `max_tokens` sets them.
        by_likelihood: assignment that has the study ask by likelihood; empty: it cannot, or does so.
        base: whether the model has no chat template.
    """
    if base:
        return base_words(by_likelihood)
    if (kind := most_of(profile)) == "misplaced":
        return MISPLACED
    if kind == "cut":
        longer = (
            f"--set max_tokens={4 * limit}; the study's requests allow {limit}" if limit else "max_tokens of the model"
        )
        first = f"Allow longer answers ({longer})."
    else:
        first = "Take a model that follows instructions."
    return " ".join(filter(None, [f"Ask by likelihood: --set {by_likelihood}." if by_likelihood else "", first]))


def shown_answers(answers: list[FitAnswer]) -> str:
    """Return the first answers that could not be read, numbered."""
    unread = [answer for answer in answers if answer.status == "unreadable"][:SHOWN]
    return " ".join(f"({number}) {short(answer.text)!r}" for number, answer in enumerate(unread, 1))


def short(text: str) -> str:
    """Return a text on one line, cut off where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= CHARACTERS else f"{line[: CHARACTERS - 3]}..."
