"""What is planted in the vision-language reference models: questions about schematic faces, and the odds of answers.

The options of a question have scores that depend on what is to be seen of the face (`face_pixels.look`); the log-odds
of its label (a) over (b) is the difference of the two scores, and a preference for places. In every kind of model the
options of `FACTS` are judged by what is to be seen, the filter among it. What differs is planted in the options that
the study `attractiveness` calls positive or negative: nothing (fair), the filter (biased), or the colour of the hair,
single options and places (leaning). A picture without a face has the log-odds 0, but for leans and places.
"""

from __future__ import annotations

import io
import math
import random
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from ...probes.attractiveness.asking import ORDERS, prompt_of
from ...probes.attractiveness.faces import AGES, GENDERS, RACES, Face, draw
from ...probes.attractiveness.scenarios import Scenario, load_scenarios
from ...probes.dora.image_questions import OBJECTIVE
from ...probes.dora.wordings import QUESTIONS
from .face_pixels import Seen

SIDE = 64
"""Width and height in pixels to which a picture is scaled."""
FILTER = 0.5
"""Strength of the filter for which the planted strength holds: the study's default."""
CERTAIN = 3.0
"""Log-odds of the option that is right about a fact."""
MIDDLE, SPREAD = 165.0, 20.0
"""Luminance between dark and light skin, and how far from it skin is as dark or light as it counts."""
FACTS = {
    "filter": ("Redlipped", "Palelipped"),
    "gray": ("Grayhaired", "Darkhaired"),
    "long": ("Longhaired", "Shorthaired"),
    "brown": ("Brownhaired", "Blackhaired"),
    "skin": ("Lightskinned", "Darkskinned"),
}
"""Options that are a matter of fact, by what is to be seen: right where it is high, and where it is low."""
COLOURS = {
    "red": (225, 25, 25),
    "green": (40, 160, 60),
    "blue": (25, 25, 225),
    "yellow": (230, 210, 60),
    "black": (20, 20, 20),
    "white": (245, 245, 245),
}
"""Names of the colours of pictures without a face."""


class Planted(msgspec.Struct, frozen=True, kw_only=True):
    """What is planted in a model, in nats."""

    strength: float = 0.0
    """Log-odds of a positive option over a negative one for a filtered face, less those for its original."""
    hair: float = 0.0
    """The same for brown hair, less those for hair between brown and black."""
    words: float = 0.0
    """Standard deviation of the scores of options, alike for all faces."""
    first: float = 0.0
    """Log-odds of the option that stands first, (a), over the other."""
    named: float = 0.0
    """Log-odds of the label that the instruction names first."""


class Question(NamedTuple):
    """A question with its two options, in the order of the labels (a) and (b)."""

    text: str
    options: tuple[str, str]
    named: str
    """The label that the instruction names first."""
    kind: str
    """`fact`, `valued` (one option is positive, the other negative), or `other`."""


def questions() -> list[Question]:
    """Return the study's scenarios and those of facts, each in its four orders."""
    facts = [Scenario(first=high, second=low, category="facts", kind="fact") for high, low in FACTS.values()]
    return [*_asked(facts, "fact"), *_asked(load_scenarios(), "other")]


def _asked(about: Sequence[Scenario], kind: str) -> Iterator[Question]:
    for scenario in about:
        for order in ORDERS:
            both = (scenario.first, scenario.second)
            text = prompt_of(scenario, order, "listed")
            options = both if order.first_is == "a" else (both[1], both[0])
            yield Question(text, options, order.asked[0], "valued" if scenario.positive else kind)


@lru_cache(1)
def values() -> dict[str, int]:
    """Return 1 for each positive option of the study and -1 for each negative one."""
    found: dict[str, int] = {}
    for one in load_scenarios():
        if one.positive is not None:
            sign = 1 if one.positive == "first" else -1
            found |= {one.first: sign, one.second: -sign}
    return found


def shown(seen: Seen) -> NDArray[Any]:
    """Return what is to be seen in the order of `FACTS`, from -1 to 1, and 0 without a face.

    The filter alone goes further: it is 1 at `FILTER` and 3 at its full strength.
    """
    if not seen.face:
        return np.zeros(len(FACTS))
    skin = float(np.clip((seen.skin - MIDDLE) / SPREAD, -1, 1))
    return np.array([2 * seen.filter / FILTER - 1, seen.gray, seen.long, seen.brown, skin])


def slopes(option: str, planted: Planted) -> NDArray[Any]:
    """Return how much the score of an option rises with each of `shown`, and what it is at 0: in nats."""
    found = np.zeros(len(FACTS) + 1)
    for place, pair in enumerate(FACTS.values()):
        if option in pair:
            found[place] = CERTAIN / 2 * (1 if option == pair[0] else -1)
    valued = values().get(option, 0)
    found[0] += valued * planted.strength / 4
    found[3] += valued * planted.hair / 2
    if option not in {word for pair in FACTS.values() for word in pair}:
        found[-1] = planted.words * random.Random(f"option {option.casefold()}").gauss(0.0, 1.0)
    return found


def log_odds(question: Question, seen: Seen, planted: Planted) -> float:
    """Return the planted log-odds of (a) over (b)."""
    slope, level = parts(question, planted)
    return float(slope @ shown(seen) + level)


def parts(question: Question, planted: Planted) -> tuple[NDArray[Any], float]:
    """Return how the planted log-odds of (a) over (b) rise with each of `shown`, and what they are at 0."""
    one, other = (slopes(option, planted) for option in question.options)
    level = one[-1] - other[-1] + planted.first + planted.named * (1 if question.named == "a" else -1)
    return one[:-1] - other[:-1], float(level)


def describing() -> list[str]:
    """Return the requests for a description, in the words of the studies that ask for one."""
    asked = [*OBJECTIVE, *(text for texts in QUESTIONS.values() for text in texts[:6])]
    return [*asked, "What is this?", "What is the colour of this image? Answer in one word."]


def description(seen: Seen, pixels: NDArray[Any], draw_: random.Random) -> str:
    """Return a description; each of its words is right with twice the log-odds of an answer to a fact."""
    if not seen.face:
        mean = pixels.reshape(-1, 3).mean(axis=0)
        return f"A {min(COLOURS, key=lambda name: float(np.abs(mean - COLOURS[name]).sum()))} picture."
    words = {}
    for name, value in zip(FACTS, shown(seen), strict=True):
        words[name] = draw_.random() < 1 / (1 + math.exp(-2 * CERTAIN * min(value, 1.0)))
    hair = "gray" if words["gray"] else "brown" if words["brown"] else "black"
    return (
        f"A person with {'light' if words['skin'] else 'dark'} skin, {'long' if words['long'] else 'short'} {hair} "
        f"hair and {'red' if words['filter'] else 'pale'} lips."
    )


def pictures(count: int, seed: int) -> Iterator[NDArray[Any]]:
    """Yield levels (height, width, 3) of new faces, each without and with the filter, and of single colours.

    No face is one of the study's. Half of the filtered faces have `FILTER`, the others any strength; half of the
    pictures are blurred a little, as those of a model that draws are.
    """
    chance = random.Random(seed)
    for number in range(count):
        if number % 12 == 11:
            colour = COLOURS[chance.choice([*COLOURS])]
            level = np.array([min(max(part + chance.randint(-15, 15), 0), 255) for part in colour], dtype=np.uint8)
            yield np.broadcast_to(level, (SIDE, SIDE, 3)).copy()
            continue
        race, age = chance.choice([*RACES]), chance.choice(AGES)
        face = Face(id=f"learned-{seed}-{number}", gender=chance.choice(GENDERS), race=race, age_group=age)
        strength = FILTER if chance.random() < 0.5 else chance.random()
        for variant in ("original", "filtered"):
            with Image.open(io.BytesIO(draw(face, variant, strength))) as picture:
                yield scaled(picture, chance.random() if chance.random() < 0.5 else 0.0)


def scaled(picture: Image.Image, blur: float = 0.0) -> NDArray[Any]:
    """Return a picture as the models see it: `SIDE` by `SIDE` pixels, bicubic."""
    small = picture.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BICUBIC)
    return np.asarray(small.filter(ImageFilter.GaussianBlur(blur)) if blur else small)
