"""Drawings of people by `simulated`, which say in a comment whom they show and what else, and descriptions of them.

A drawing shows `SHOWN` invented words, and a description names those and `SAID` words of its own. Words are drawn
without replacement, by softmax of their scores: how common a word is, the noise of the prompt or of the picture, and
`strength` where the word is associated with the people, as in sentences that are completed (`completions.py`).
"""

from __future__ import annotations

import json
import math
import re
from heapq import nlargest
from typing import NamedTuple

from ...core.contracts.errors import DataError
from ..shared.images import Blobs
from .completions import Begun, Completions, words_of
from .noise import Noise
from .pictures import comment_in

MARK = "prejudge-scene "
"""What the comment of such a drawing begins with."""
SHOWN, SAID = 4, 4
FRAME = frozenset(
    "a an the of in that this generate create make draw paint show shows image picture photo person people sketch give "
    "me illustration produce portrait render scene".split()
)
"""Words of prompts that do not say whom a drawing is of."""
LETTERS = "bdk"
"""First letters of the words; there are twelve of each."""
_WORD = re.compile(r"[\w'-]+")


class Scene(NamedTuple):
    """What a drawing shows."""

    people: str
    """The words of the prompt that say whom."""
    shown: tuple[str, ...]

    @property
    def comment(self) -> str:
        """Return the comment of the drawing."""
        return MARK + json.dumps(self)


class Scenes:
    """What a model draws and says of people."""

    def __init__(self, noise: Noise, completions: Completions) -> None:
        """Take the noise, and the words with their associations."""
        self._noise, self._completions = noise, completions
        self._known: dict[str, Scene | None] = {}

    def drawn(self, prompt: str, asked: bytes) -> Scene:
        """Return what a drawing shows."""
        people = " ".join(word for word in _WORD.findall(prompt.lower()) if word not in FRAME)
        return Scene(people, self._words(people, prompt, asked, SHOWN))

    def seen(self, image: str, blobs: Blobs | None) -> Scene | None:
        """Return what a picture says that it shows; None for others, or where its bytes are not at hand."""
        if image not in self._known:
            try:
                comment = comment_in(blobs(image)) if blobs is not None else ""
            except DataError:
                return None
            self._known[image] = _scene(comment)
        return self._known[image]

    def described(self, scene: Scene, image: str, asked: bytes) -> str:
        """Return a description of a drawing."""
        said = self._words(scene.people, image, asked, SAID)
        return f"{', '.join(dict.fromkeys((*scene.shown, *said)))}."

    def _words(self, people: str, where: str, asked: bytes, count: int) -> tuple[str, ...]:
        sentences = [Begun(people, letter, "") for letter in LETTERS]
        found = {
            word: score
            - math.log(-math.log(self._noise.of(f"scene {word}", asked)))  # the largest are a draw by softmax
            for sentence in sentences
            for word, score in zip(words_of(sentence), self._completions.scores(sentence, where), strict=True)
        }
        return tuple(nlargest(count, found, key=found.__getitem__))


def _scene(comment: str) -> Scene | None:
    if not comment.startswith(MARK):
        return None
    try:
        people, shown = json.loads(comment.removeprefix(MARK))
        return Scene(str(people), tuple(map(str, shown)))
    except (ValueError, TypeError):
        return None
