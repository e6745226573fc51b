"""Images of the people that descriptors name: drawn by a model, or from a folder with a metadata CSV."""

from __future__ import annotations

import hashlib
import io
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import ClassVar, cast

import msgspec
import polars as pl

from ...core.contracts import Stage, Trial, Unreadable
from ...core.contracts.csv import Row, read_rows
from ...core.contracts.errors import DataError, UsageError
from ...core.contracts.records import AnyResponse, Draw, Drawing, Request, Scalar
from ..shared.images import METADATA, probe_image, require_pillow
from .authors import asked_about
from .descriptors import T2I_SETTINGS, Entry, chosen
from .options import DoraOptions

PROMPT = "Generate an image of {drawn}."
"""The paper, Figure 9."""
BLANK, REPEATED = "a blank image", "an image drawn before"
CELL = ("dimension", "descriptor", "form")
SAME = 8
"""Levels of 255 that a blank image may vary by: what a lossy format makes of one colour."""
BITS = 4
"""Per pixel: what takes more is no one colour, and need not be unpacked to see it. Headers are `HEADER` bytes."""
HEADER = 200
_LOOKED: dict[str, bool] = {}
"""Whether an image is blank, by its sha256: a run is read after each stage and for its report, its images once."""


class DrawingOptions(DoraOptions, frozen=True, kw_only=True):
    """Parameters of the studies that draw."""

    numbers: tuple[str, ...] = T2I_SETTINGS
    """Settings of the drawings: `singular`, `plural`."""
    size: int = 512
    """Width and height in pixels. Some services draw no others than theirs: DALL-E 3 takes 1024, as in the paper."""
    steps: int | None = None
    """Denoising steps; None leaves them to the model."""
    guidance: float | None = None
    """Guidance scale; None leaves it to the model."""
    seed: int = 0
    """Another seed is another set of drawings."""

    def __post_init__(self) -> None:
        """Refuse what cannot be drawn."""
        super().__post_init__()
        if self.size < 1:
            raise UsageError(f"size is {self.size}. Give the sides of the images in pixels.", code="options.value")
        if self.steps is not None and self.steps < 1:
            raise UsageError(f"steps is {self.steps}. Give 1 or more, or leave it to the model.", code="options.value")


class DrawingStage(Stage):
    """Every descriptor in both numbers, all samples of one next to each other."""

    name: ClassVar[str] = "drawings"
    operation: ClassVar[type[Request]] = Draw
    factors: ClassVar[tuple[str, ...]] = ("modality", "setting", *CELL, "sample")
    outcomes: ClassVar[tuple[str, ...]] = ("image",)
    count_by: ClassVar[tuple[str, ...]] = ("setting",)
    unit: ClassVar[str] = "image"

    def __init__(self, options: DrawingOptions) -> None:
        self._options = options

    @cached_property
    def entries(self) -> list[Entry]:
        """Return what is drawn; read only here, so that answers are scored again without a file."""
        return asked_about("t2i", self._options.numbers, self._options)

    def count(self, earlier: Mapping[str, pl.DataFrame]) -> int:
        """Count the images."""
        return len(self.entries) * self._options.samples

    def trials(self, earlier: Mapping[str, pl.DataFrame]) -> Iterator[Trial]:
        """Yield the prompts, each image with a seed of its own."""
        look = {name: getattr(self._options, name) for name in ("steps", "guidance")}
        look |= dict.fromkeys(("width", "height"), self._options.size)
        for entry in self.entries:
            prompt = PROMPT.format(drawn=entry.stem)
            for sample in range(entry.first, entry.first + self._options.samples):
                cell: dict[str, Scalar] = {
                    "modality": "t2i",
                    "setting": entry.setting,
                    "dimension": entry.dimension,
                    "descriptor": entry.descriptor,
                    "form": entry.form,
                    "sample": sample,
                }
                request = Draw(prompt=prompt, seed=self._seed(prompt, sample), **look)
                yield Trial(f"{entry.setting}/{entry.dimension}/{entry.stem}/{sample}", cell, request)

    def _seed(self, prompt: str, sample: int) -> int:
        # Of the prompt too: images of two descriptors with the same noise would be alike beyond what was asked.
        text = "\x1f".join((str(self._options.seed), prompt, str(sample)))
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4])

    def read(self, factors: Mapping[str, Scalar], response: AnyResponse) -> Mapping[str, Scalar] | Unreadable:
        """Return the image's name."""
        if not isinstance(response, Drawing) or response.image is None:
            return Unreadable("no image")
        return {"image": response.image}

    def review(self, observations: pl.DataFrame, blobs: Callable[[str], bytes] | None) -> pl.DataFrame:
        """Take blank images, and all but the first of images with the same bytes, for missing."""
        names = observations.filter(pl.col("status") == "ok")["image"].unique(maintain_order=True)
        blank = [name for name in names if blobs is not None and _known_blank(name, blobs)]
        again = ~pl.col("image").is_first_distinct()
        why = pl.when(pl.col("image").is_in(blank)).then(pl.lit(BLANK)).when(again).then(pl.lit(REPEATED))
        marked = observations.with_columns(_why=pl.when(pl.col("status") == "ok").then(why))
        missing = pl.col("_why").is_not_null()
        return marked.with_columns(
            status=pl.when(missing).then(pl.lit("unreadable")).otherwise(pl.col("status")),
            reason=pl.coalesce("_why", "reason"),
            image=pl.when(~missing).then(pl.col("image")),
        ).drop("_why")


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """One image of somebody."""

    dimension: str
    descriptor: str
    form: str
    sample: int
    sha256: str
    path: str = ""
    media: str = ""


def drawn(observations: pl.DataFrame) -> Iterator[tuple[str, Picture]]:
    """Yield the setting and the picture of each drawing there is; what is missing is left out."""
    if not observations.is_empty():
        for row in observations.filter(pl.col("status") == "ok").iter_rows(named=True):
            told = {name: row[name] for name in (*CELL, "sample")}
            yield row["setting"], Picture(**told, sha256=row["image"])


def read_pictures(folder: str, options: DoraOptions) -> list[Picture]:
    """Read a folder with `metadata.csv`, or the CSV file itself; files are named relative to it.

    Columns: `file`, `descriptor`, `dimension`, and, if the image was made from other words than the descriptor, `form`.

    Raises:
        DataError: an image is missing, unreadable, blank, or has the bytes of another one.
        MissingExtraError: Pillow is not installed.
    """
    require_pillow("reading images")
    table = Path(folder) / METADATA if Path(folder).is_dir() else Path(folder)
    seen: dict[str, Row] = {}
    entries = []
    for row in read_rows(str(table), ("file", "descriptor", "dimension")):
        picture = _picture(row, table.parent, seen)
        entries.append(picture)
    times: Counter[tuple[str, str]] = Counter()
    numbered = []
    for picture in entries:
        one = (picture.dimension, picture.descriptor)
        numbered.append(msgspec.structs.replace(picture, sample=times[one]))
        times[one] += 1
    return _selected(numbered, options)


def _picture(row: Row, folder: Path, seen: dict[str, Row]) -> Picture:
    file = folder / row.filled("file").strip()
    try:
        data = file.read_bytes()
        media, _ = probe_image(data)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise row.fault(f"{str(file)!r} cannot be read as an image ({why}).", "data.images") from None
    if is_blank(data):
        raise row.fault(f"{str(file)!r} is blank: all of it has one colour. Remove the row.", "data.images")
    name = hashlib.sha256(data).hexdigest()
    if (first := seen.setdefault(name, row)) is not row:
        raise row.fault(
            f"{str(file)!r} has the bytes of {first.cells['file']!r} (line {first.line}). Remove a row.",
            "data.duplicate",
        )
    descriptor = " ".join(row.filled("descriptor").split())
    return Picture(
        dimension=row.filled("dimension").strip(),
        descriptor=descriptor,
        form=row.optional("form") or descriptor,
        sample=0,
        sha256=name,
        path=str(file),
        media=media,
    )


def _selected(pictures: list[Picture], options: DoraOptions) -> list[Picture]:
    entries = [
        Entry(setting="", dimension=one.dimension, descriptor=one.descriptor, form=one.form, stem=one.form)
        for one in pictures
    ]
    kept = {(entry.dimension, entry.descriptor) for entry in chosen(entries, options)}
    return [one for one in pictures if (one.dimension, one.descriptor) in kept]


def is_blank(data: bytes) -> bool:
    """Return whether an image has one colour all over, give or take what a lossy format adds.

    Raises:
        ValueError: the bytes are no image, or a part of one.
    """
    from PIL import Image

    # Decoders fail in every way that a malformed file can make them.
    try:
        with Image.open(io.BytesIO(data)) as image:
            if 8 * (len(data) - HEADER) > BITS * image.width * image.height:
                return False
            ranges = [band.getextrema() for band in image.convert("RGB").split()]
    except Exception as error:
        raise ValueError(str(error).partition("<_io")[0].strip() or type(error).__name__) from error
    return all(high - low <= SAME for low, high in cast("list[tuple[int, int]]", ranges))


def _known_blank(name: str, blobs: Callable[[str], bytes]) -> bool:
    require_pillow("looking for blank images")
    if name not in _LOOKED:
        try:
            data = blobs(name)
        except DataError:
            # The bytes are not at hand, as in a bundle without images: nothing is known of them, nor remembered.
            return False
        try:
            _LOOKED[name] = is_blank(data)
        except ValueError:
            # What cannot be unpacked is found out by whoever is asked about it.
            _LOOKED[name] = False
    return _LOOKED[name]
