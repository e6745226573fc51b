"""The content of a report: a run fills this record, and `render` makes the page.

No string is trusted, because each may come from a model or from a user's file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from ..answer import Answer, Reply
from ..contracts.adapter import Identity
from ..contracts.estimates import Chart, Estimate, Example, Listing
from ..contracts.records import Scalar
from .marked import Pieces
from .pictures import Picture

if TYPE_CHECKING:
    import polars as pl

    from .forest import Forest

Nested: TypeAlias = "Scalar | Sequence[Nested] | Mapping[str, Nested]"
"""Plain values in nested mappings and lists."""


class StudyInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The study and its source."""

    name: str
    summary: str = ""
    citation: str = ""
    """Authors, title, section of the publication."""
    url: str = ""
    """URL of the source; a link only if it is http or https."""


class Table(msgspec.Struct, frozen=True):
    """A small table of plain values. None is shown as undefined, not as 0."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Scalar, ...], ...]

    @classmethod
    def from_frame(cls, caption: str, frame: pl.DataFrame) -> Table:
        """Make a table from a polars frame with columns of numbers, strings and booleans."""
        return cls(caption, tuple(frame.columns), tuple(frame.rows()))


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """A published value with the measured one."""

    metric: str
    group: dict[str, Scalar] = {}
    published: float
    measured: float | None = None
    tolerance: float | None = None
    """Largest difference, in either direction, that counts as a replication; None if there is no tolerance."""
    note: str = ""


class ShownExample(msgspec.Struct, frozen=True):
    """An example with its texts, which are hidden until the reader opens it."""

    example: Example
    """Title and group are always visible, so they must not contain a stimulus or answer; the caption is hidden."""
    texts: tuple[tuple[str, str], ...]
    """Pairs of a label (`prompt`, `answer`, `sentence 1` ...) and a text."""
    images: tuple[tuple[str, str], ...] = ()
    """Pairs of a label and the sha256 (hex) of an image."""


class Twin(msgspec.Struct, frozen=True):
    """One of two questions that differ in their group: its level, what was asked, and the answer."""

    level: str
    asked: Pieces
    answer: str


class Twins(msgspec.Struct, frozen=True):
    """Two questions that differ in one group, and how often such pairs are answered differently."""

    factor: str
    pair: tuple[Twin, Twin]
    differ: int
    pairs: int

    @property
    def count(self) -> str:
        """Return how many of such pairs are answered differently."""
        return f"{self.differ:,} of {self.pairs:,} such pairs are answered differently"


class Card(msgspec.Struct, frozen=True):
    """The answer of one of several models, on a page that puts them together."""

    label: str
    reply: Reply
    size: str
    """What was measured, as a sentence."""
    notes: tuple[str, ...] = ()
    """Sentences that follow it."""


class ReportContent(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a report. The page leaves out empty parts."""

    title: str
    study: StudyInfo
    models: dict[str, Identity]
    """Models by role (`subject`, `judge` ...)."""
    names: Mapping[str, str] = {}
    """Names of the models in the catalogue, by role."""
    settings: Mapping[str, Mapping[str, Scalar]] = {}
    """Settings that differ from the adapter's defaults, by role."""
    when: str = ""
    """Time of the requests."""
    answer: Answer | None = None
    """The first screen of a run; a page without one begins with `conclusions` and `headline`."""
    cards: Sequence[Card] = ()
    """The answers of several models, in the place of one."""
    forest: Forest | None = None
    """The figure of the cards."""
    facts: Mapping[str, str] = {}
    """What else the reader of the cards has to know, by a heading."""
    estimates: Sequence[Estimate]
    headline: Sequence[Estimate] | None = None
    """The rows to show first; None: per metric, the estimates with the broadest groups, if they are few."""
    conclusions: dict[str, str] = {}
    """A conclusion per metric that answers the study's question, with uncertainty."""
    calibration: str = ""
    """Whether the study is certified as it was made."""
    confused: Sequence[str] = ()
    """What the study cannot tell from bias, by its certificate."""
    warnings: Sequence[str] = ()
    """Warnings, such as an unfinished run or corrected input."""
    charts: Sequence[Chart] = ()
    leading: int = 0
    """How many of the first charts stand on the first screen."""
    listings: Sequence[Listing] = ()
    """Tables over several runs, which are hidden until the reader opens them."""
    published: Sequence[Published] = ()
    missing: Sequence[Table] = ()
    """Counts of statuses: a table per stage, with reasons where answers are missing."""
    twins: Twins | None = None
    """The pair of answers beside the findings, hidden until the reader opens it."""
    examples: Sequence[ShownExample] = ()
    pictures: Mapping[str, Picture] = {}
    """The images of the examples, by sha256; an image that is not here is shown as its sha256 only."""
    left_out: str = ""
    """Parts of the examples that were left out, with the reason."""
    methods: Sequence[str] = ()
    """Paragraphs."""
    limits: Sequence[str] = ()
    deviations: Sequence[str] = ()
    """Differences from the paper."""
    provenance: Mapping[str, Nested] = {}
    """Versions, run id, times, store, cache counts, seeds, options, data file, command. Never a key or token."""

    @property
    def asks(self) -> str:
        """Return the question in the place of a title: the only one that is answered, or that of the study."""
        if self.answer is None:
            return ""
        replies = self.answer.replies
        return replies[0].asks if len(replies) == 1 else self.answer.question
