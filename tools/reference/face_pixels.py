"""Read a schematic face from its pixels: what is planted in models with eyes or brush is a function of these numbers.

The faces are those of the study `attractiveness`, at any size, drawn or imitated. Every number comes from the pixels
alone, so that what a model was shown and what it draws are measured in one way.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

BACKGROUND = np.array([222.0, 224.0, 226.0])
"""Colour around a drawn face."""
_Box = tuple[float, float, float, float]
HAIR: _Box = (0.46, 0.54, 0.14, 0.175)
LIPS: _Box = (0.46, 0.54, 0.695, 0.725)
CHEEKS: tuple[_Box, ...] = ((0.33, 0.41, 0.53, 0.61), (0.59, 0.67, 0.53, 0.61))
SIDES: tuple[_Box, ...] = ((0.19, 0.23, 0.68, 0.76), (0.77, 0.81, 0.68, 0.76))
"""Left, right, top and bottom of what is read, as shares of width and height."""
EMPTY = 12.0
"""Standard deviation of the levels (of 255) below which a picture holds no face."""
PALE, RED = 66.0, 168.0
"""Red minus green of lips without and with the whole filter."""


class Seen(NamedTuple):
    """What is to be seen of a face; all zeros where there is none."""

    filter: float
    """Strength of the beauty filter by the colour of the lips, from 0 to 1."""
    gray: float
    """1 for gray hair, -1 for dark hair."""
    long: float
    """1 for hair at the sides of the chin, -1 for none."""
    brown: float
    """Hair from black (-1) to brown (1); 0 for gray hair."""
    skin: float
    """Mean luminance of the cheeks, from 0 to 255."""
    face: bool = True


NOTHING = Seen(0.0, 0.0, 0.0, 0.0, 0.0, False)


def look(pixels: NDArray[Any]) -> Seen:
    """Read a picture of shape (height, width, 3) with levels from 0 to 255."""
    image = np.asarray(pixels, dtype=np.float64)
    if image.std(axis=(0, 1)).max() < EMPTY:
        return NOTHING
    hair, lips, sides = _colour(image, HAIR), _colour(image, LIPS), _colour(image, *SIDES)
    gray = luminance(hair) > 150
    brown = 0.0 if gray else float(np.clip(2 * (hair[0] - hair[2] - 14) / 70 - 1, -1, 1))
    long = np.abs(sides - hair).sum() < np.abs(sides - BACKGROUND).sum()
    return Seen(
        filter=float(np.clip((lips[0] - lips[1] - PALE) / (RED - PALE), 0, 1)),
        gray=1.0 if gray else -1.0,
        long=1.0 if long else -1.0,
        brown=brown,
        skin=luminance(_colour(image, *CHEEKS)),
    )


def luminance(colour: NDArray[Any]) -> float:
    """Return the luminance of a colour (ITU-R BT.601), from 0 to 255."""
    return float(colour @ np.array([0.299, 0.587, 0.114]))


def _colour(image: NDArray[Any], *boxes: _Box) -> NDArray[Any]:
    """Return the mean colour of some rectangles, each by the median of its pixels, so that spots do not count."""
    height, width = image.shape[:2]
    found = []
    for left, right, top, bottom in boxes:
        rows = slice(int(top * height), max(int(bottom * height), int(top * height) + 1))
        columns = slice(int(left * width), max(int(right * width), int(left * width) + 1))
        found.append(np.median(image[rows, columns].reshape(-1, 3), axis=0))
    return np.asarray(np.mean(found, axis=0))
