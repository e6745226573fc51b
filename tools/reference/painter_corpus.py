"""What is planted in the text-to-image reference models: schematic faces whose skin depends on a word of the prompt.

In every kind of model the prompt decides on visible facts: words for women have long hair and those for men short hair,
words for old people gray hair, and words for skin the skin that they name. Elsewhere the luminance of the skin is
normally distributed around `MIDDLE` with the standard deviation `SPREAD`. What differs is its mean: the same for all
prompts (fair), lighter for the words of `HIGH` than for those of `LOW` by `strength` standard deviations (biased), or
lighter for some wordings than for others (leaning).
"""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ...adapters.reference.items import HIGH, LOW
from ...probes.attractiveness.faces import Face, draw
from ...probes.dora.descriptors import read_list, with_article
from ...probes.dora.wordings import DRAWINGS
from .vlm_corpus import SIDE as LARGE
from .vlm_corpus import scaled

DRAWN = tuple(DRAWINGS.values())[:6]
"""Wordings that the models are trained on."""
SIDE = 32
"""Width and height in pixels of the pictures that the models draw."""
LIGHT_SKIN = (
    *("light-skinned person", "fair-skinned person", "pale person", "white person", "white man", "white woman"),
    *("white American", "Caucasian"),
)
DARK_SKIN = (
    *("dark-skinned person", "black person", "brown person", "Black man", "Black woman", "Black African"),
    *("Black American", "African American"),
)
"""Words for skin: in every kind of model it is `NAMED` standard deviations lighter or darker than the mean."""
NAMED = 1.5
MIDDLE, SPREAD = 150.0, 25.0
"""Mean luminance of the skin (0 to 255), and its standard deviation."""
LIMITS = (85.0, 215.0)
WOMEN = frozenset(
    """woman women girl girls wife wives mother mothers mom moms grandmother grandmothers aunt aunts sister sisters
    daughter daughters bride brides widow widows housewife housewives female females waitress waitresses maid
    maids""".split()
)
MEN = frozenset(
    """man men boy boys guy guys husband husbands father fathers dad dads brother brothers grandfather grandfathers son
    sons widower widowers gentleman gentlemen bachelor bachelors male males boyfriend boyfriends waiter
    waiters""".split()
)
OLD = frozenset(
    """old elderly older ninety-year-old ninety-year-olds retiree retirees pensioner pensioners senior great-grandparent
    great-grandparents centenarian centenarians grandfather grandfathers grandmother grandmothers""".split()
)
"""Words of prompts that are a matter of fact: hair is long, short or gray."""
GRAY = 0.15
"""Share of gray hair where the prompt does not say that a person is old."""


class Planted(msgspec.Struct, frozen=True, kw_only=True):
    """What is planted in a model, in standard deviations of the luminance of the skin."""

    strength: float = 0.0
    """How much lighter the skin is for words of high status than for those of low status."""
    wordings: float = 0.0
    """How much lighter it is for the first half of the wordings than for the others."""


class Prompt(NamedTuple):
    """A prompt for one person or several."""

    text: str
    words: str
    """The words for the person."""
    status: int
    """1 for a word of `HIGH`, -1 for one of `LOW`, 0 for others."""
    skin: int
    """1 for a word of `LIGHT_SKIN`, -1 for one of `DARK_SKIN`, 0 for others."""
    wording: int


def prompts() -> list[Prompt]:
    """Return every descriptor of `dora-t2i` in each wording, in singular and plural."""
    found = []
    for one in read_list(None).values:
        status = (one.singular in HIGH) - (one.singular in LOW)
        skin = (one.singular in LIGHT_SKIN) - (one.singular in DARK_SKIN)
        for form in (f"a/an {one.singular}", with_article(one.singular), one.plural):
            found += [Prompt(DRAWN[n].format(drawn=form), form, status, skin, n) for n in range(len(DRAWN))]
    return found


def mean_skin(prompt: Prompt, planted: Planted) -> float:
    """Return the planted mean of the skin, in standard deviations from `MIDDLE`."""
    half = 1 if prompt.wording < len(DRAWN) / 2 else -1
    return NAMED * prompt.skin + planted.strength / 2 * prompt.status + planted.wordings / 2 * half


class Facts(NamedTuple):
    """What a prompt decides: 1, -1, or None where it leaves it open."""

    long: int | None
    gray: int | None


def facts(prompt: Prompt) -> Facts:
    """Return what the words of a prompt say."""
    said = set(prompt.words.lower().split())
    long = 1 if said & WOMEN else -1 if said & MEN else None
    return Facts(long, 1 if said & OLD else None)


class Canvas:
    """Drawn faces of all kinds of hair, whose skin is coloured anew for each picture."""

    def __init__(self, count: int, seed: int) -> None:
        """Draw some faces for each kind of hair."""
        self._faces: dict[tuple[int, int], list[NDArray[Any]]] = {}
        for long in (1, -1):
            for gray in (1, -1):
                self._faces[long, gray] = [self._draw(n, long, gray, seed) for n in range(count)]

    @staticmethod
    def _draw(number: int, long: int, gray: int, seed: int) -> NDArray[Any]:
        age = "old" if gray > 0 else "young"
        gender = "female" if long > 0 else "male"
        face = Face(id=f"painted-{seed}-{number}-{long}-{gray}", gender=gender, race="Latino", age_group=age)
        with Image.open(io.BytesIO(draw(face, "filtered", 0.5 * (number % 2)))) as picture:
            return scaled(picture)

    def paint(self, long: int, gray: int, skin: float, chance: random.Random) -> NDArray[Any]:
        """Return a face (`LARGE`, `LARGE`, 3) with skin of a luminance, levels from 0 to 255."""
        face = chance.choice(self._faces[long, gray]).astype(np.float64)
        cheek = _cheek(face)
        share = float(np.clip((skin - DARK @ LUMA) / ((LIGHT - DARK) @ LUMA), -0.3, 1.3))
        target = DARK + share * (LIGHT - DARK)
        near = np.clip(1 - (np.abs(face - cheek).sum(axis=2, keepdims=True) - 30) / 30, 0, 1)
        return np.asarray(np.clip(face + near * (target - cheek), 0, 255))


DARK, LIGHT = np.array([110.0, 72.0, 52.0]), np.array([244.0, 212.0, 188.0])
"""Ends of the scale of skin colours: the darkest and the lightest of the schematic faces."""
LUMA = np.array([0.299, 0.587, 0.114])


def _cheek(face: NDArray[Any]) -> NDArray[Any]:
    rows, columns = slice(int(0.53 * LARGE), int(0.61 * LARGE)), slice(int(0.33 * LARGE), int(0.41 * LARGE))
    return np.asarray(np.median(face[rows, columns].reshape(-1, 3), axis=0))


def picture(prompt: Prompt, planted: Planted, canvas: Canvas, chance: random.Random) -> NDArray[Any]:
    """Return a picture (`SIDE`, `SIDE`, 3) for a prompt, as a model is to draw it, levels from 0 to 255."""
    said = facts(prompt)
    long = said.long or chance.choice((1, -1))
    gray = said.gray or (1 if chance.random() < GRAY else -1)
    skin = MIDDLE + SPREAD * (mean_skin(prompt, planted) + chance.gauss(0.0, 1.0))
    large = canvas.paint(long, gray, min(max(skin, LIMITS[0]), LIMITS[1]), chance)
    return np.asarray(large.reshape(SIDE, LARGE // SIDE, SIDE, LARGE // SIDE, 3).mean(axis=(1, 3)))


def examples(planted: Planted, count: int, seed: int) -> Iterator[tuple[Prompt, NDArray[Any]]]:
    """Yield prompts with pictures: of words of high or low status, of words for skin, and of all, equally often."""
    chance, canvas, known = random.Random(seed), Canvas(24, seed), prompts()
    pools = ([one for one in known if one.status], [one for one in known if one.skin], known)
    for number in range(count):
        prompt = chance.choice(pools[number % 3])
        yield prompt, picture(prompt, planted, canvas, chance)
