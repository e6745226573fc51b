"""The wordings of each setting: the paper's, which is the first, and this project's paraphrases of it.

An effect of one prompt is not an effect of the group it names, so the samples of a setting are divided over wordings.
Sentences that say the same in several settings are one wording, by its id in `data/wordings.toml`: ten of the settings
`singular` and `plural`, ten of `adjective`, `noun` and `verb`. `wordings=1` asks in the paper's words only.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from importlib.resources import files
from typing import Final

import msgspec

from ...core.contracts.errors import UsageError
from .descriptors import T2T_SETTINGS, with_article
from .options import DoraOptions

WORDINGS = 10
"""Wordings of every setting."""
FEWEST_CROSSED = 4
"""Fewest wordings that are paired: fewer make a single block, which no test is over."""


class Sentence(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A wording of sentences about people, up to the blank, in each setting that has it."""

    id: str
    singular: str = ""
    plural: str = ""
    adjective: str = ""
    noun: str = ""
    verb: str = ""
    source: str = ""
    """Where the paper prints it; empty: a paraphrase."""

    @property
    def settings(self) -> tuple[str, ...]:
        """Return the settings that have it."""
        return tuple(setting for setting in T2T_SETTINGS if getattr(self, setting))


class DrawingText(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A wording of requests for a drawing."""

    id: str
    text: str
    source: str = ""


class Listed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All wordings."""

    sentences: tuple[Sentence, ...]
    drawings: tuple[DrawingText, ...]
    questions: dict[str, tuple[str, ...]]


_LISTED = msgspec.toml.decode(files(__package__).joinpath("data/wordings.toml").read_bytes(), type=Listed)
SENTENCES: Final = {sentence.id: sentence for sentence in _LISTED.sentences}
FAMILIES: Final = {setting: sentence.settings[0] for sentence in _LISTED.sentences for setting in sentence.settings}
"""By setting the first of those whose sentences have the same wordings."""
DRAWINGS: Final = {drawing.id: drawing.text for drawing in _LISTED.drawings}
"""Requests for a drawing, by id; the first: the paper, Figure 9."""
QUESTIONS: Final = _LISTED.questions
"""By setting the questions about an image (the paper, Figure 11, and paraphrases)."""


def ensure_wordings(options: DoraOptions) -> None:
    """Raise `UsageError` where there are not so many wordings."""
    if not 1 <= options.wordings <= WORDINGS:
        raise UsageError(f"wordings is {options.wordings}. Give 1 to {WORDINGS}.", code="options.value")


def sentences_of(settings: tuple[str, ...], wordings: int, own: Sequence[Sentence] = ()) -> list[Sentence]:
    """Return the first wordings of each family of settings; `own` are all the wordings of other data."""
    if own:
        return [sentence for sentence in own[:wordings] if {*sentence.settings} & {*settings}]
    families = dict.fromkeys(FAMILIES[setting] for setting in settings)
    listed = ([sentence for sentence in SENTENCES.values() if family in sentence.settings] for family in families)
    return [sentence for sentences in listed for sentence in sentences[:wordings]]


def stem_in(setting: str, form: str, stem: str, wording: str, own: Sequence[Sentence] = ()) -> str:
    """Return the sentence about people up to the blank in a wording.

    `stem` is that of the paper, and of wordings that are not known. `own` are the wordings of other data.
    """
    if own:
        pattern = next((getattr(sentence, setting) for sentence in own if sentence.id == wording), "")
        return filled(pattern, form) if pattern else stem
    sentence = SENTENCES.get(wording)
    if sentence is None or sentence.source:
        return stem
    return filled(getattr(sentence, setting), form)


@functools.lru_cache(maxsize=4096)
def filled(pattern: str, form: str) -> str:
    """Return a sentence with the descriptor in it."""
    a = with_article(form)
    return pattern.format(a=a, A=a[:1].upper() + a[1:], form=form, Form=form[:1].upper() + form[1:])


def block_of(place: int, wordings: int) -> int:
    """Return the block of a wording by its place: two of the drawing and two of the question are crossed in a block.

    Blocks share no wording, so that they are independent whichever of the two a model has preferences by.
    """
    return place // 2 if wordings >= FEWEST_CROSSED else place


def in_block(place: int, wordings: int) -> list[int]:
    """Return the places of all wordings in the block of one."""
    return [at for at in range(wordings) if block_of(at, wordings) == block_of(place, wordings)]


def question_id(setting: str, place: int) -> str:
    """Return the id of a question's wording."""
    return f"{setting} {place + 1}"
