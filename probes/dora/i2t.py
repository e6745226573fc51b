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
from .assessment import assess
from .associations import Associations
from .descriptors import T2I_SETTINGS, ensure_settings
from .image_questions import TextStage, about
from .images import DrawingOptions, DrawingStage, Picture, drawn, read_pictures
from .wordings import SUBJECTIVE, ensure_wordings

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
    settings: tuple[str, ...] = tuple(SUBJECTIVE)
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
        "wording",
        "sample",
    )
    counting: ClassVar[Counting] = Counting(by=("setting",), unit="impression")

    def __init__(self, options: DoraI2TOptions) -> None:
        self._options = options

    def _pictures(self, earlier: Mapping[str, pl.DataFrame]) -> Iterable[Picture]:
        return (picture for _, picture in drawn(earlier[DrawnStage.name]))

    def trials(self, earlier: Mapping[str, pl.DataFrame]) -> Iterator[Trial]:
        """Yield the questions, grouped by image."""
        sampling = self._options.sampling()
        for one in self._pictures(earlier):
            for setting in self._options.settings:
                told: dict[str, Scalar] = {
                    "modality": "i2t",
                    "setting": setting,
                    "dimension": one.dimension,
                    "descriptor": one.descriptor,
                    "form": one.form,
                    "image": one.sha256,
                    "wording": one.wording,
                    "sample": one.sample,
                }
                name = f"{setting}/{one.dimension}/{one.form}/{one.sample}/{one.sha256[:12]}"
                yield Trial(name, told, about(one.sha256, SUBJECTIVE[setting][one.wording], sampling))


class FolderStage(ImpressionStage, LargeStage):
    """Every question about every image of a folder."""

    @cached_property
    def pictures(self) -> list[Picture]:
        """Return the images. They are read only here, so answers can be scored again without them."""
        return read_pictures(str(self._options.images), self._options)

    def _pictures(self, earlier: Mapping[str, pl.DataFrame]) -> Iterable[Picture]:
        return self.pictures

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
        ensure_settings(options.settings, tuple(SUBJECTIVE))
        ensure_settings(options.numbers, T2I_SETTINGS)
        ensure_wordings(options)
        asked = [FolderStage(options)] if options.images else [DrawnStage(options), ImpressionStage(options)]
        return [*asked, *assess(options, Associations(ImpressionStage.name))]
