"""Whole studies of `bistereo-pairs` in numbers: preferences at sampled facets, and what inference makes of them.

A simulated model prefers, in nats, a description by place, opening and attribute word, in praise and in blame by
independent draws of one law: no bias. Both genders share its preferences. `favours` plants a bias.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from prejudge.core.statistics.multiway import Cells, infer
from prejudge.probes.bistereo.pairs import BIStereoOptions, BIStereoPairs
from prejudge.probes.bistereo.pairs_design import CELL

FACETS = ("opening", "place", "attribute")
SENTIMENTS = ("positive", "negative")
NOISE = 0.5
"""Standard deviation of a pair's own preference, in nats."""
THRESHOLD = 0.02
ALPHA = 0.05


class Model(NamedTuple):
    """What simulated models prefer."""

    leans: tuple[str, ...] = ()
    """Facets with preferences."""
    spread: float = 0.0
    """Their standard deviation, in nats."""
    favours: float = 0.0
    """Planted log-odds of praise beside the desirable description, in nats."""


class Pairs:
    """The pairs of a study by axis and gender, as codes of their levels."""

    def __init__(
        self,
        per_cell: int | None = None,
        texts: str = "wide",
        over: tuple[str, ...] = FACETS,
        axes: tuple[str, ...] = (),
    ) -> None:
        """Read the design, or a sample of it; `over` is what the inference covers."""
        options = BIStereoOptions(sentiments=SENTIMENTS, per_cell=per_cell, texts=texts, axes=axes)
        (stage,) = BIStereoPairs().stages(options)
        design = stage.design
        places = np.arange(design.size) if stage.rows is None else stage.rows
        places = places[::2]
        names = dict.fromkeys((*CELL, *FACETS, *over))
        codes = {name: design.codes(name)[places] for name in names}
        self._over = over
        self.groups = list(self._split(codes, design.levels("gender")))

    def _split(self, codes: dict[str, np.ndarray], genders: Sequence[object]) -> Iterator[dict[str, Any]]:
        for axis in np.unique(codes["axis"]):
            for gender in np.unique(codes["gender"]):
                rows = np.flatnonzero((codes["axis"] == axis) & (codes["gender"] == gender))
                group = {name: column[rows] for name, column in codes.items()}
                yield group | {"row": rows, "name": genders[gender]}

    def tests(self, model: Model, studies: int, seed: int) -> np.ndarray:
        """Return p and the difference of favouritism in shares, shape (studies, groups, 2)."""
        rng = np.random.default_rng(seed)
        size = {name: 1 + max(int(group[name].max()) for group in self.groups) for name in FACETS}
        axes = 1 + max(int(group["axis"].max()) for group in self.groups)
        leans = {
            name: rng.normal(0, model.spread, (axes, size[name], len(SENTIMENTS), studies)).astype(np.float32)
            for name in model.leans
        }
        return np.stack([self._group(group, leans, model, rng, studies) for group in self.groups], axis=1)

    def _group(
        self, group: dict[str, Any], leans: dict[str, np.ndarray], model: Model, rng: np.random.Generator, studies: int
    ) -> np.ndarray:
        praised = group["sentiment"] == 0
        value = rng.normal(0, NOISE, (len(praised), studies)).astype(np.float32)
        value += np.where(praised, 1, -1)[:, None] * np.float32(model.favours)
        for name, lean in leans.items():
            value += lean[group["axis"][0], group[name], group["sentiment"]]
        return self.inferred(group, value)

    def inferred(self, group: dict[str, Any], value: np.ndarray) -> np.ndarray:
        """Return p and the difference of a group from the log-odds of its pairs, shape (pairs, studies)."""
        praised, studies = group["sentiment"] == 0, value.shape[1]
        liked = (np.tanh(value / 2) > THRESHOLD).astype(np.float64)
        codes, cell = np.unique(np.stack([group[name] for name in self._over], 1), axis=0, return_inverse=True)
        codes = np.stack([np.unique(column, return_inverse=True)[1] for column in codes.T], axis=1)
        sums = np.zeros((len(codes), studies, 2, 2))
        for side in (0, 1):
            rows = praised if side == 0 else ~praised
            np.add.at(sums[:, :, side, 0], cell.ravel()[rows], 1.0)
            np.add.at(sums[:, :, side, 1], cell.ravel()[rows], liked[rows])
        inferred = infer(Cells(codes, sums), _difference, 0.95)
        return np.stack([inferred.p[:, 0], _difference(sums.sum(axis=0))[:, 0]], axis=1)


def _difference(totals: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore", divide="ignore"):
        means = totals[..., 1] / totals[..., 0]
    return (means[..., 0] - means[..., 1])[..., None]


def significant(tests: np.ndarray) -> np.ndarray:
    """Return which studies find a bias in any group: favouritism above or below 0 after Holm's correction."""
    p = np.sort(np.nan_to_num(tests[..., 0], nan=1.0), axis=1)
    return p[:, 0] <= ALPHA / p.shape[1]


def share_of_groups(tests: np.ndarray) -> np.ndarray:
    """Return how often each group is significant without a correction."""
    return (tests[..., 0] <= ALPHA).mean(axis=0)
