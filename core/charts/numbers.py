"""The numbers of a figure, kept with it: a page shows them as tables, also to readers who cannot see the figure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ..contracts.records import Scalar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_KEPT = "_prejudge_numbers"
ENDS = ("value", "low", "high")


class Numbers(msgspec.Struct, frozen=True):
    """A table of what is drawn: a row per mark or bar. None is a value that there is not."""

    title: str
    """Name of the part of the figure; empty for a figure of one part."""
    columns: tuple[str, ...]
    rows: tuple[tuple[Scalar, ...], ...]


def tell(figure: Any, title: str, columns: Sequence[str], rows: Iterable[Sequence[Scalar]]) -> None:
    """Keep a table of numbers with a figure, after those it has; columns without a value are left out.

    The drawing functions of `charts` do this; call it for what you draw with matplotlib itself.

    Args:
        figure: a `Figure`, or the figure of an `Axes`.
        title: of the part of the figure that the numbers are drawn in.
        columns: one name per cell of a row.
        rows: texts and numbers.
    """
    found = [tuple(row) for row in rows]
    used = [n for n in range(len(columns)) if any(row[n] not in (None, "") for row in found)]
    cells = tuple(tuple(row[n] for n in used) for row in found)
    root = figure.figure
    # The figure keeps them, so that whoever hands it on hands them on.
    setattr(root, _KEPT, (*numbers_of(root), Numbers(title, tuple(columns[n] for n in used), cells)))


def numbers_of(figure: Figure) -> tuple[Numbers, ...]:
    """Return the tables of a figure; none if nothing was told of it."""
    return getattr(figure, _KEPT, ())
