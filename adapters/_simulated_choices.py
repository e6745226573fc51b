"""The options that a prompt lists: `(a) ... (b) ...` in one line, or a line each."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

_LINE = re.compile(
    r"^[ \t]*(?P<mark>(?:option[ \t]+)?[(\[]?(?P<label>[a-z]|\d{1,2})[)\].:])[ \t]*(?P<text>\S.*)$", re.I | re.M
)
_INLINE = re.compile(
    r"(?P<mark>\((?P<label>[a-z]|\d{1,2})\))[ \t]*(?P<text>\S.*?)(?=\((?:[a-z]|\d{1,2})\)|$)", re.I | re.M
)
_TAIL = re.compile(r"[\s,;.?!]*(?:\bor)?[\s,;.?!]*$")
LABELS = ("abcdefghijklmnopqrstuvwxyz", tuple(str(number) for number in range(1, 100)))


class Choice(NamedTuple):
    """One option of a prompt."""

    answer: str
    """The option as a model would answer it, label and text."""
    text: str


class Listed(NamedTuple):
    """A prompt that lists options."""

    stem: str
    """The prompt without the options."""
    choices: tuple[Choice, ...]


def listed(prompt: str) -> Listed | None:
    """Return the last list of two or more options in a prompt, or None if there is none.

    Labels run from a, A or 1 without a gap.
    """
    for pattern in (_LINE, _INLINE):
        run = _last_run(pattern.finditer(prompt))
        if len(run) > 1:
            stem = prompt[: run[0].start()] + "\n" + prompt[run[-1].end() :]
            texts = [_trimmed(match["text"]) for match in run]
            marks = [match["mark"] for match in run]
            return Listed(stem, tuple(Choice(f"{m} {t}", t) for m, t in zip(marks, texts, strict=True)))
    return None


@lru_cache(1 << 14)
def _trimmed(option: str) -> str:
    return _TAIL.sub("", option)


def _last_run(matches: Iterable[re.Match[str]]) -> list[re.Match[str]]:
    best: list[re.Match[str]] = []
    run: list[re.Match[str]] = []
    for match in matches:
        label = match["label"].lower()
        if label in ("a", "1"):
            run = [match]
        elif run and _follows(label, run[0]["label"].lower(), len(run)):
            run.append(match)
        else:
            run = []
        if len(run) > 1:
            best = run
    return best


def _follows(label: str, first: str, place: int) -> bool:
    labels = LABELS[first == "1"]
    return place < len(labels) and label == labels[place]
