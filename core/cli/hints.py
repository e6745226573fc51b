"""What a person meant by a word that the command line does not know: a command, a choice, or an option of a study."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

from ..catalogue.study import Catalogue
from ..contracts.errors import PrejudgeError, nearest
from ..contracts.meanings import meant

COMMANDS = {
    "annotate": "view",
    "browse": "view",
    "check": "doctor",
    "label": "view",
    "models": "list",
    "report": "score",
    "rescore": "score",
    "runs": "list",
    "serve": "view",
    "show": "list",
    "studies": "list",
    "verify": "cache",
}
"""Commands by other words for what they do."""
OPERATIONS = {
    "answer": "generate",
    "chat": "generate",
    "classification": "classify",
    "completion": "generate",
    "embedding": "embed",
    "fill-mask": "pseudo_likelihood",
    "generation": "generate",
    "image": "draw",
    "images": "draw",
    "logprobs": "likelihood",
    "masked": "pseudo_likelihood",
    "mlm": "pseudo_likelihood",
    "text": "generate",
    "text-to-image": "draw",
}
"""Operations by the words that other tools have for them, and for the models that can do them."""
SIMILAR = 0.6


def suggestion(word: str, known: Iterable[str], meanings: Mapping[str, str] | None = None) -> str:
    """Return a question that names what is meant, with a space before it; empty if nothing is spelt or means so."""
    means = {name: own for name, own in (meanings or {}).items()}
    found = nearest(word.lower(), [*known, *means], SIMILAR)
    return "" if found is None else f" Did you mean {means.get(found, found)!r}?"


class Among(click.Choice[str]):
    """One of a few words; others that mean one are taken for it, and a misspelling is told."""

    def __init__(self, choices: Iterable[str], meanings: Mapping[str, str] | None = None) -> None:
        super().__init__(list(choices))
        self.meanings = meanings or {}

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the choice that is named or meant."""
        return super().convert(self.meanings.get(str(value).lower(), value), param, ctx)

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """Return the choices, and which one is spelt most alike."""
        told = super().get_invalid_choice_message(value, ctx)
        return told + suggestion(str(value), self.choices, self.meanings)


def option_of_study(error: click.NoSuchOption, words: Sequence[str]) -> str:
    """Return how an option of a study is set, for an option that a command with --set does not have.

    `words` are those of the command line: one of them is the study, and the next one may be the value.
    """
    takes = {name for one in (error.ctx.command.params if error.ctx else []) for name in one.opts}
    name = error.option_name.lstrip("-").replace("-", "_")
    if "--set" not in takes or error.possibilities or not name.isidentifier():
        return ""
    own = _meant(name, words)
    return f"Options of a study are set so: --set {own or name}={_value(error.option_name, words)}"


def _meant(name: str, words: Sequence[str]) -> str | None:
    """Return the option that a study among these words has by this name or meaning."""
    try:
        catalogue = Catalogue.load(None)
        study = next(word for word in words if word in catalogue.registry.studies)
        return meant(name, catalogue.plugins.load("probe", catalogue.registry.studies[study].probe).options)
    except (PrejudgeError, StopIteration):
        return None


def _value(option: str, words: Sequence[str]) -> str:
    """Return the value that was given to an option."""
    for word, after in zip(words, [*words[1:], ""], strict=True):
        found = re.fullmatch(rf"{re.escape(option)}(?:=(.*))?", word, re.S)
        if found is not None:
            given = found[1] if found[1] is not None else after
            return given if given and not given.startswith("-") else "VALUE"
    return "VALUE"
