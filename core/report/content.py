"""The content of a report: the record that a run fills and `render` lays out.

Nothing here is trusted: every string may come from a model or from a user's file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from ..contracts.adapter import Identity
from ..contracts.estimates import Chart, Estimate, Example
from ..contracts.records import Scalar
from .pictures import Picture

if TYPE_CHECKING:
    import polars as pl

Nested: TypeAlias = "Scalar | Sequence[Nested] | Mapping[str, Nested]"
"""Plain values in mappings and lists, as deep as need be."""


class StudyInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked, and where the question comes from."""

    name: str
    summary: str = ""
    citation: str = ""
    """Who published it: authors, title, section."""
    url: str = ""
    """A link to the source; shown as a link only if it is http or https."""


class Table(msgspec.Struct, frozen=True):
    """A small table of plain values. A None is shown as undefined, not as 0."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Scalar, ...], ...]

    @classmethod
    def from_frame(cls, caption: str, frame: pl.DataFrame) -> Table:
        """Make a table of a polars frame with columns of numbers, strings and booleans."""
        return cls(caption, tuple(frame.columns), tuple(frame.rows()))


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """A published value beside the measured one."""

    metric: str
    group: dict[str, Scalar] = {}
    published: float
    measured: float | None = None
    tolerance: float | None = None
    """Largest difference, in either direction, that counts as a replication; None where none was declared."""
    note: str = ""


class ShownExample(msgspec.Struct, frozen=True):
    """An example with the texts behind it, which stay covered until a reader asks for them."""

    example: Example
    """Its title and group are always visible, so no stimulus or answer belongs there; the caption is covered."""
    texts: tuple[tuple[str, str], ...]
    """Pairs of a label (`prompt`, `answer`, `sentence 1` ...) and a text."""
    images: tuple[tuple[str, str], ...] = ()
    """Pairs of a label and the sha256 (hex) of an image."""


class ReportContent(msgspec.Struct, frozen=True, kw_only=True):
    """All that one report says. A part that is empty is left out of the page."""

    title: str
    study: StudyInfo
    models: dict[str, Identity]
    """Who was asked, by role (`subject`, `judge` ...)."""
    names: Mapping[str, str] = {}
    """What the catalogue calls each model, by role."""
    settings: Mapping[str, Mapping[str, Scalar]] = {}
    """By role, the settings of a model that differ from the defaults of its adapter."""
    when: str = ""
    """When it was asked."""
    estimates: Sequence[Estimate]
    headline: Sequence[Estimate] | None = None
    """The rows to show first; None takes, per metric, the estimates with the broadest groups, if they are few."""
    conclusions: dict[str, str] = {}
    """One sentence per metric that answers the study's question with its uncertainty."""
    warnings: Sequence[str] = ()
    """What a reader must know before believing a number: an unfinished run, mended input ..."""
    charts: Sequence[Chart] = ()
    published: Sequence[Published] = ()
    missing: Sequence[Table] = ()
    """Counts of statuses, such as one table per stage and one per group."""
    examples: Sequence[ShownExample] = ()
    pictures: Mapping[str, Picture] = {}
    """The images of the examples, by sha256; one that is not here is shown by its number only."""
    left_out: str = ""
    """What the examples lack, and why."""
    methods: Sequence[str] = ()
    """Paragraphs."""
    limits: Sequence[str] = ()
    deviations: Sequence[str] = ()
    """What was done otherwise than in the paper."""
    provenance: Mapping[str, Nested] = {}
    """Versions, run id, times, store, cache counts, seeds, options, data file, command. Never a key or token."""
