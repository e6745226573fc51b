"""`dora-i2t`: what a model says of an image of somebody, asked for more than it shows (BiasDora, Raj et al. 2024).

Four questions about each image that a model drew, or about those of a folder; no association is listed beforehand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from ...core.contracts import Options, Probe, Stage, Trial
from ...core.contracts.records import Scalar
from .assessment import assess
from .associations import Associations
from .descriptors import T2I_SETTINGS, ensure_settings
from .image_questions import SUBJECTIVE, TextStage, about
from .images import DrawingOptions, DrawingStage, Picture, drawn, read_pictures

if TYPE_CHECKING:
    import polars as pl


class DoraI2TOptions(DrawingOptions, frozen=True, kw_only=True):
    """Parameters of `dora-i2t`."""

    images: str | None = None
    """A folder with `metadata.csv` (columns `file`, `descriptor`, `dimension`), or that file; None has them drawn."""
    settings: tuple[str, ...] = tuple(SUBJECTIVE)
    """`subjective`, `implicit`, `lexical`, `stereotypical`."""


class DrawnStage(DrawingStage):
    """The drawings of `dora-t2i`, request for request: what was drawn there is not drawn again."""

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
        "sample",
    )
    unit: ClassVar[str] = "impression"

    def __init__(self, options: DoraI2TOptions) -> None:
        self._options = options

    def _pictures(self, earlier: Mapping[str, pl.DataFrame]) -> Iterable[Picture]:
        return (picture for _, picture in drawn(earlier[DrawnStage.name]))

    def trials(self, earlier: Mapping[str, pl.DataFrame]) -> Iterator[Trial]:
        """Yield the questions, all about one image together."""
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
                    "sample": one.sample,
                }
                name = f"{setting}/{one.dimension}/{one.form}/{one.sample}/{one.sha256[:12]}"
                yield Trial(name, told, about(one.sha256, SUBJECTIVE[setting], sampling))


class FolderStage(ImpressionStage):
    """Every question about every image of a folder."""

    @cached_property
    def pictures(self) -> list[Picture]:
        """Return the images; read only here, so that answers are scored again without them."""
        return read_pictures(str(self._options.images), self._options)

    def _pictures(self, earlier: Mapping[str, pl.DataFrame]) -> Iterable[Picture]:
        return self.pictures

    def images(self) -> Iterator[tuple[bytes, str]]:
        """Yield the bytes and the media type of every image that is asked about."""
        for one in self.pictures:
            yield Path(one.path).read_bytes(), one.media

    def count(self, earlier: Mapping[str, pl.DataFrame]) -> int:
        """Count the questions."""
        return len(self.pictures) * len(self._options.settings)


class DoraI2T(Probe):
    """The instrument: impressions of images, and what classifiers and a judge say of the words."""

    options: ClassVar[type[Options]] = DoraI2TOptions

    def stages(self, options: DoraI2TOptions) -> Sequence[Stage]:
        """Return the stages; with `images` nothing is drawn.

        Raises:
            UnknownNameError: there is no such setting.
            UsageError: no setting, or one twice.
        """
        ensure_settings(options.settings, tuple(SUBJECTIVE))
        ensure_settings(options.numbers, T2I_SETTINGS)
        asked = [FolderStage(options)] if options.images else [DrawnStage(options), ImpressionStage(options)]
        return [*asked, *assess(options, Associations(ImpressionStage.name))]
