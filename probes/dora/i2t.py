"""`dora-i2t`: what a model associates with an image of a person (BiasDora, Raj et al. 2024).

Four questions that ask for more than the image shows, about each image that a model drew, or of a folder; there is no
list of associations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from ...core.contracts import Counting, LargeStage, Options, Probe, Stage, Trial, harmless
from ...core.contracts.records import Scalar
from ...core.design import Design
from .assessment import assess
from .associations import Associations
from .authors import asked_about
from .descriptors import T2I_SETTINGS, ensure_settings
from .design import folder_design, impressions_design
from .image_questions import TextStage, about
from .images import DrawingOptions, DrawingStage, Picture, drawn, list_pictures, read_pictures
from .wordings import DRAWINGS, QUESTIONS, WORDINGS, block_of, ensure_wordings, in_block, question_id

if TYPE_CHECKING:
    import polars as pl


class DoraI2TOptions(DrawingOptions, frozen=True, kw_only=True):
    """Parameters of `dora-i2t`."""

    option_effects = {
        "images": "file",
        **harmless("settings"),
    }

    images: str | None = None
    """A folder with `metadata.csv` (columns `file`, `descriptor`, `dimension`), or that file; None: drawn images."""
    settings: tuple[str, ...] = tuple(QUESTIONS)
    """`subjective`, `implicit`, `lexical`, `stereotypical`."""


class DrawnStage(DrawingStage):
    """The drawings of `dora-t2i` with equal requests, so images drawn there are not drawn again."""

    role: ClassVar[str] = "drawer"


class ImpressionStage(TextStage):
    """Every question about every image."""

    name: ClassVar[str] = "impressions"
    factors: ClassVar[tuple[str, ...]] = (
        "modality",
        "setting",
        "dimension",
        "descriptor",
        "form",
        "image",
        "block",
        "wording",
        "question",
        "sample",
    )
    counting: ClassVar[Counting] = Counting(by=("setting",), unit="impression", about=("descriptor",))

    def __init__(self, options: DoraI2TOptions) -> None:
        self._options = options

    def _pictures(self, earlier: Mapping[str, pl.DataFrame]) -> Iterable[tuple[str, Picture]]:
        return drawn(earlier[DrawnStage.name])

    def _asked(self, number: str, picture: Picture) -> tuple[str, int]:
        """Return the block of an image, and the place of the wording of the questions about it."""
        ids, count = list(DRAWINGS), self._options.wordings
        place = ids.index(picture.wording) if picture.wording in ids else picture.sample % count
        # Drawings of an earlier run may be in more wordings than are asked for now.
        count = count if place < count else WORDINGS
        together = in_block(place, count)
        turn = together.index(place) + picture.sample // count + (number == "plural")
        return str(block_of(place, count)), together[turn % len(together)]

    def trials(self, earlier: Mapping[str, pl.DataFrame]) -> Iterator[Trial]:
        """Yield the questions, grouped by image."""
        sampling = self._options.sampling()
        for number, picture in self._pictures(earlier):
            block, place = self._asked(number, picture)
            for setting in self._options.settings:
                cell: dict[str, Scalar] = {
                    "modality": "i2t",
                    "setting": setting,
                    "dimension": picture.dimension,
                    "descriptor": picture.descriptor,
                    "form": picture.form,
                    "image": picture.sha256,
                    "block": block,
                    "wording": picture.wording,
                    "question": question_id(setting, place),
                    "sample": picture.sample,
                }
                name = f"{setting}/{picture.dimension}/{picture.form}/{picture.sample}/{picture.sha256[:12]}"
                yield Trial(name, cell, about(picture.sha256, QUESTIONS[setting][place], sampling))


class FolderStage(ImpressionStage, LargeStage):
    """Every question about every image of a folder."""

    @cached_property
    def _read(self) -> tuple[list[Picture], tuple[str, ...]]:
        # They are read only here, so answers can be scored again without them.
        return read_pictures(str(self._options.images), self._options)

    @property
    def pictures(self) -> list[Picture]:
        """Return the images."""
        return self._read[0]

    def notes(self) -> Sequence[str]:
        """Say which images were left out or converted."""
        return self._read[1]

    def _pictures(self, earlier: Mapping[str, pl.DataFrame]) -> Iterable[tuple[str, Picture]]:
        return (("", picture) for picture in self.pictures)

    def _asked(self, number: str, picture: Picture) -> tuple[str, int]:
        """Return the wording of the questions about an image, which is a block of its own."""
        place = picture.sample % self._options.wordings
        return str(place), place

    def images(self) -> Iterator[tuple[bytes, str]]:
        """Yield the bytes and media type of every image."""
        for one in self.pictures:
            yield Path(one.path).read_bytes(), one.media

    def count(self, earlier: Mapping[str, pl.DataFrame]) -> int:
        """Count the questions."""
        return len(self.pictures) * len(self._options.settings)


class DoraI2T(Probe):
    """The probe: impressions of images, and assessments of the words by classifiers and a judge."""

    options: ClassVar[type[Options]] = DoraI2TOptions

    def stages(self, options: DoraI2TOptions) -> Sequence[Stage]:
        """Return the stages; with `images`, without the stage of drawings.

        Raises:
            UnknownNameError: there is no such setting.
            UsageError: no setting, or a duplicate.
        """
        ensure_settings(options.settings, tuple(QUESTIONS))
        ensure_settings(options.numbers, T2I_SETTINGS)
        ensure_wordings(options)
        asked = [FolderStage(options)] if options.images else [DrawnStage(options), ImpressionStage(options)]
        return [*asked, *assess(options, Associations(ImpressionStage.name))]

    def design(self, options: DoraI2TOptions) -> Design:
        """Return the declared design of the impressions, from the drawing to the question.

        Raises:
            DataError: a file of descriptors or images cannot be used.
        """
        if options.images:
            listed = list_pictures(options.images, options)
            pictures = [(one.dimension, one.descriptor, one.form, one.sample) for one in listed]
            return folder_design(pictures, options.settings, options)
        entries = asked_about("t2i", options.numbers, options)
        return impressions_design(entries, options.numbers, options.settings, options)
