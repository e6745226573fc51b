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
_SENTENCE = re.compile(r"[.?!]\s+(?=[A-Z])")
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


@lru_cache(1 << 14)
def listed(prompt: str) -> Listed | None:
    """Return the last list of two or more options in a prompt, or None if there is none.

    Labels run from a, A or 1 without a gap. `Respond with (a) or (b).` lists nothing, and an option in a line ends with
    its sentence.
    """
    for pattern in (_LINE, _INLINE):
        run = _last_run(pattern.finditer(prompt))
        if len(run) > 1:
            last, over = run[-1], _SENTENCE.search(run[-1]["text"]) if pattern is _INLINE else None
            whole, end = (last["text"], last.end()) if over is None else _cut(last, over)
            stem = prompt[: run[0].start()] + "\n" + prompt[end:]
            texts = [_trimmed(text) for text in (*(match["text"] for match in run[:-1]), whole)]
            marks = [match["mark"] for match in run]
            return Listed(stem, tuple(Choice(f"{m} {t}", t) for m, t in zip(marks, texts, strict=True)))
    return None


def _cut(option: re.Match[str], over: re.Match[str]) -> tuple[str, int]:
    """Return the text of an option up to the end of its sentence, and where the next one begins."""
    return option["text"][: over.start()], option.start("text") + over.end()


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
        if len(run) > 1 and all(_trimmed(match["text"]) for match in run):
            best = [*run]
    return best


def _follows(label: str, first: str, place: int) -> bool:
    labels = LABELS[first == "1"]
    return place < len(labels) and label == labels[place]
