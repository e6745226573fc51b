"""Drawn schematic face pairs for tests, the demonstration and calibration. They are no substitute for faces.

Answers about them do not show how a model judges people: they only have a skin colour, hair, lines and a shape.
`strength` is the strength of the filter: eyes become larger, skin smoother and lighter, lips redder, the chin narrower,
as with beauty filters (Riccio et al. 2022). At 0 the two variants differ only by noise.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import msgspec
import numpy as np

from ...core.contracts.errors import MissingExtraError, UsageError
from .stimuli import Stimulus

GENDERS = ("female", "male")
RACES = {
    "Asian": (236, 200, 164),
    "Black": (110, 72, 52),
    "Indian": (172, 122, 84),
    "Latino": (206, 158, 120),
    "Mixed-race": (184, 136, 102),
    "White": (244, 212, 188),
}
"""One skin colour per label; the drawing resembles nobody."""
AGES = ("young", "middle-aged", "old")
PER_RACE, PER_AGE = 25, 27
"""Number of faces per gender and race, and per gender and age group (the paper, section 3.2): 462 in all."""
SIZE, GRAIN = 112, 3
CHUNK = "prejudge-face"
"""Keyword of the text chunk in the PNG file."""
SOURCE_RACE, SOURCE_AGE = "schematic, by race", "schematic, by age"
RGB = tuple[int, int, int]


class Face(msgspec.Struct, frozen=True, kw_only=True):
    """A schematic person."""

    id: str
    gender: str
    race: str | None = None
    age_group: str | None = None
    source: str = ""


def paper_faces() -> Iterator[Face]:
    """Yield 462 faces in the cells of the paper: 25 per gender and race, 27 per gender and age group."""
    for gender in GENDERS:
        for race in RACES:
            for n in range(PER_RACE):
                yield Face(id=f"{gender}-{race}-{n:02d}".lower(), gender=gender, race=race, source=SOURCE_RACE)
    for gender in GENDERS:
        for age in AGES:
            for n in range(PER_AGE):
                yield Face(id=f"{gender}-{age}-{n:02d}", gender=gender, age_group=age, source=SOURCE_AGE)


@lru_cache(4096)
def draw(face: Face, variant: str, strength: float) -> bytes:
    """Return a PNG of the face, equal for equal arguments under one version of Pillow.

    Raises:
        UsageError: `strength` is not between 0 and 1.
        MissingExtraError: Pillow is not installed.
    """
    if not 0 <= strength <= 1:
        raise UsageError(f"strength is {strength}. Give a number from 0 to 1.", code="options.value")
    if find_spec("PIL") is None:
        raise MissingExtraError("drawing schematic faces", "images")
    from PIL import Image, ImageDraw
    from PIL.PngImagePlugin import PngInfo

    image = Image.new("RGB", (SIZE, SIZE), (222, 224, 226))
    applied = strength if variant == "filtered" else 0.0
    _paint(ImageDraw.Draw(image), face, applied)
    note, out = PngInfo(), io.BytesIO()
    note.add_text(CHUNK, json.dumps({"face": face.id, "filter": applied}))
    _grain(image, face.id, variant).save(out, "PNG", pnginfo=note)
    return out.getvalue()


def stimulus(face: Face, variant: str, strength: float) -> Stimulus:
    """Return a drawn face as a stimulus."""
    sha256 = hashlib.sha256(draw(face, variant, strength)).hexdigest()
    return Stimulus(
        face=face.id,
        variant=variant,
        name=sha256,
        sha256=sha256,
        media="image/png",
        gender=face.gender,
        age_group=face.age_group,
        race=face.race,
        source=face.source,
    )


def _unit(*names: str) -> float:
    """Return a number from 0 to 1, determined by `names`."""
    digest = hashlib.sha256("\x1f".join(names).encode()).digest()
    return int.from_bytes(digest[:4]) / (2**32 - 1)


def _mix(one: RGB, other: RGB, share: float) -> RGB:
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(one, other, strict=True))
    return red, green, blue


def _skin(face: Face, strength: float) -> RGB:
    base = RACES[face.race or "White"]
    own = _mix(base, (150, 110, 90), 0.2 * _unit(face.id, "skin"))
    return _mix(own, (255, 240, 228), 0.25 * strength)


def _paint(pen: Any, face: Face, strength: float) -> None:
    middle, skin = SIZE / 2, _skin(face, strength)
    wide = SIZE * (0.25 + 0.03 * _unit(face.id, "width"))
    top, chin = SIZE * 0.2, SIZE * (0.83 + 0.04 * _unit(face.id, "length"))
    hair = _hair(face)
    if face.gender == "female":
        pen.rounded_rectangle((middle - wide * 1.35, top * 0.6, middle + wide * 1.35, SIZE * 0.9), 24, fill=hair)
    else:
        pen.ellipse((middle - wide * 1.08, top * 0.6, middle + wide * 1.08, SIZE * 0.6), fill=hair)
    jaw = wide * (0.95 - 0.2 * strength if face.gender == "male" else 0.8 - 0.2 * strength)
    pen.ellipse((middle - wide, top, middle + wide, SIZE * 0.72), fill=skin)
    pen.polygon(
        [
            (middle - wide, SIZE * 0.46),
            (middle + wide, SIZE * 0.46),
            (middle + jaw * 0.6, chin),
            (middle - jaw * 0.6, chin),
        ],
        fill=skin,
    )
    _features(pen, face, strength)
    _lines(pen, face, strength, skin)


def _hair(face: Face) -> RGB:
    dark = _mix((34, 24, 20), (128, 84, 44), _unit(face.id, "hair"))
    return _mix(dark, (214, 214, 214), 0.9) if face.age_group == "old" else dark


def _features(pen: Any, face: Face, strength: float) -> None:
    middle, level = SIZE / 2, SIZE * 0.46
    apart = SIZE * (0.1 + 0.02 * _unit(face.id, "eyes"))
    tall = SIZE * (0.02 + 0.006 * _unit(face.id, "lids")) * (1 + 0.7 * strength)
    for side in (-1, 1):
        x = middle + side * apart
        pen.ellipse((x - 2 * tall, level - tall, x + 2 * tall, level + tall), fill=(250, 250, 250))
        pen.ellipse((x - tall, level - tall, x + tall, level + tall), fill=(48, 34, 26))
        pen.line((x - 6, level - 8, x + 6, level - 8), fill=_hair(face), width=3 if face.gender == "male" else 2)
    long = SIZE * (0.12 + 0.02 * _unit(face.id, "nose"))
    nose = 4 - 1.6 * strength
    pen.line((middle, level + 2, middle - nose, level + long, middle + nose, level + long), fill=(120, 80, 64), width=1)
    lips = _mix((158, 92, 84), (208, 40, 64), strength)
    mouth, thick = SIZE * (0.07 + 0.02 * _unit(face.id, "mouth")), 2 + 2.5 * strength
    y = SIZE * 0.71
    pen.ellipse((middle - mouth, y - thick, middle + mouth, y + thick), fill=lips)


def _lines(pen: Any, face: Face, strength: float, skin: RGB) -> None:
    """Draw wrinkles and spots, which the filter removes."""
    ink = _mix(_mix(skin, (60, 36, 28), 0.45), skin, strength)
    middle = SIZE / 2
    for n in range({"middle-aged": 2, "old": 5}.get(face.age_group or "", 0)):
        y = SIZE * (0.26 + 0.035 * n)
        pen.line((middle - 16, y, middle + 16, y), fill=ink, width=1)
    for n in range(6):
        x, y = (middle + SIZE * 0.36 * (_unit(face.id, axis, str(n)) - 0.5) for axis in "xy")
        pen.ellipse((x, y + 8, x + 2, y + 10), fill=ink)


def _grain(image: Any, *names: str) -> Any:
    """Return the image with faint noise, different for each image, so that two images never have the same bytes."""
    from PIL import Image

    stream = hashlib.shake_256("\x1f".join(names).encode()).digest(SIZE * SIZE)
    shift = np.frombuffer(stream, np.uint8).reshape(SIZE, SIZE, 1).astype(np.int16) % (2 * GRAIN + 1) - GRAIN
    return Image.fromarray(np.clip(np.asarray(image, np.int16) + shift, 0, 255).astype(np.uint8))
