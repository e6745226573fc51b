"""Images of people by descriptor: drawn by a model, or from a folder with a metadata CSV."""

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

from ...core.contracts import Counting, Unreadable, harmless
from ...core.contracts.errors import DataError, UsageError
from ...core.contracts.inputs import file_bytes
from ...core.contracts.records import AnyResponse, Draw, Drawing, Request, Scalar
from ...core.design import Cell, Design, DesignedStage
from ...core.tables import Row, read_rows
from ..shared.images import METADATA, inside, probe_image, require_pillow
from .authors import asked_about
from .descriptors import T2I_SETTINGS, Entry, chosen
from .design import drawings_design
from .options import DoraOptions
from .wordings import DRAWINGS

BLANK, REPEATED = "a blank image", "an image drawn before"
CELL = ("dimension", "descriptor", "form")
SAME = 8
"""Range of levels (of 255) in a blank image: a lossy format changes a single colour slightly."""
BITS = 4
"""Maximum bytes per pixel of a blank image, besides `HEADER` bytes: larger files need not be decoded."""
HEADER = 200
_LOOKED: dict[str, bool] = {}
"""Whether an image is blank, by its sha256. Cached, because a run is read after each stage and for its report."""


class DrawingOptions(DoraOptions, frozen=True, kw_only=True):
    """Parameters of the studies that draw."""

    option_effects = harmless("numbers")

    numbers: tuple[str, ...] = T2I_SETTINGS
    """Settings of the drawings: `singular`, `plural`."""
    size: int = 512
    """Width and height in pixels. Some services accept only certain sizes: DALL-E 3 needs 1024, as in the paper."""
    steps: int | None = None
    """Denoising steps; None: the model's default."""
    guidance: float | None = None
    """Guidance scale; None: the model's default."""
    seed: int = 0
    """Seed of the drawings."""

    def __post_init__(self) -> None:
        """Refuse an invalid size or number of steps."""
        super().__post_init__()
        if self.size < 1:
            raise UsageError(f"size is {self.size}. Give width and height in pixels.", code="options.value")
        if self.steps is not None and self.steps < 1:
            raise UsageError(f"steps is {self.steps}. Give 1 or more, or omit it.", code="options.value")


class DrawingStage(DesignedStage):
    """Every descriptor in singular and plural; the samples of a prompt are adjacent."""

    name: ClassVar[str] = "drawings"
    operation: ClassVar[type[Request]] = Draw
    factors: ClassVar[tuple[str, ...]] = ("modality", "setting", *CELL, "wording", "sample")
    outcomes: ClassVar[tuple[str, ...]] = ("image",)
    counting: ClassVar[Counting] = Counting(by=("setting",), unit="image")

    def __init__(self, options: DrawingOptions) -> None:
        self._options = options

    @cached_property
    def entries(self) -> list[Entry]:
        """Return the prompts. Files are read only here, so answers can be scored again without them."""
        return asked_about("t2i", self._options.numbers, self._options)

    @cached_property
    def design(self) -> Design:
        """Return the design of the drawings."""
        return drawings_design(self.entries, self._options.numbers, self._options)

    def request(self, cell: Cell) -> Draw:
        """Return the prompt, with the seed of one image."""
        options = self._options
        prompt = DRAWINGS[cell.text("wording")].format(drawn=cell.text("entry.stem"))
        seed = self._seed(prompt, cast(int, cell["sample.number"]))
        size = options.size
        return Draw(prompt=prompt, seed=seed, width=size, height=size, steps=options.steps, guidance=options.guidance)

    def _seed(self, prompt: str, sample: int) -> int:
        # The seed depends on the prompt too: with the same noise, images of two descriptors would be too similar.
        text = "\x1f".join((str(self._options.seed), prompt, str(sample)))
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4])

    def read(self, factors: Mapping[str, Scalar], response: AnyResponse) -> Mapping[str, Scalar] | Unreadable:
        """Read the image's sha256."""
        if not isinstance(response, Drawing) or response.image is None:
            return Unreadable("no image")
        return {"image": response.image}

    def review(self, observations: pl.DataFrame, blobs: Callable[[str], bytes] | None) -> pl.DataFrame:
        """Mark blank images, and all but the first of images with the same bytes, as missing."""
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
    """An image of a person."""

    dimension: str
    descriptor: str
    form: str
    sample: int
    wording: str | None = None
    """Of the prompt it was drawn for; None: an image of a folder."""
    sha256: str
    path: str = ""
    media: str = ""


def drawn(observations: pl.DataFrame) -> Iterator[tuple[str, Picture]]:
    """Yield setting and picture of each drawing; missing ones are left out."""
    if not observations.is_empty():
        for row in observations.filter(pl.col("status") == "ok").iter_rows(named=True):
            told = {name: row[name] for name in (*CELL, "sample")}
            yield row["setting"], Picture(**told, wording=row.get("wording"), sha256=row["image"])


def read_pictures(folder: str, options: DoraOptions) -> list[Picture]:
    """Read a folder with `metadata.csv`, or the CSV file itself; files are named relative to it.

    Columns: `file`, `descriptor`, `dimension`, and `form`, if the image was made with other words than the descriptor.

    Raises:
        DataError: an image is missing, unreadable, blank, or a duplicate.
        MissingExtraError: Pillow is not installed.
    """
    require_pillow("reading images")
    seen: dict[str, Row] = {}
    place, rows = _metadata(folder)
    return _numbered([_with_image(_picture(row), row, place, seen) for row in rows], options)


def list_pictures(folder: str, options: DoraOptions) -> list[Picture]:
    """Return the images of a folder by its `metadata.csv` alone; raises `DataError` if that cannot be used."""
    return _numbered([_picture(row) for row in _metadata(folder)[1]], options)


def _metadata(folder: str) -> tuple[Path, Iterator[Row]]:
    table = Path(folder) / METADATA if Path(folder).is_dir() else Path(folder)
    return table.parent, iter(read_rows(str(table), ("file", "descriptor", "dimension")))


def _numbered(pictures: list[Picture], options: DoraOptions) -> list[Picture]:
    times: Counter[tuple[str, str]] = Counter()
    numbered = []
    for picture in pictures:
        one = (picture.dimension, picture.descriptor)
        numbered.append(msgspec.structs.replace(picture, sample=times[one]))
        times[one] += 1
    return _selected(numbered, options)


def _picture(row: Row) -> Picture:
    descriptor = " ".join(row.filled("descriptor").split())
    return Picture(
        dimension=row.filled("dimension").strip(),
        descriptor=descriptor,
        form=row.optional("form") or descriptor,
        sample=0,
        sha256="",
    )


def _with_image(picture: Picture, row: Row, folder: Path, seen: dict[str, Row]) -> Picture:
    file = folder / row.filled("file").strip()
    try:
        data = file_bytes(inside(folder, row.filled("file")))
        media, _ = probe_image(data)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise row.fault(f"{str(file)!r} cannot be read as an image ({why}).", "data.images") from None
    if is_blank(data):
        raise row.fault(f"{str(file)!r} is blank: it has only one colour. Remove the row.", "data.images")
    name = hashlib.sha256(data).hexdigest()
    if (first := seen.setdefault(name, row)) is not row:
        raise row.fault(
            f"{str(file)!r} has the bytes of {first.cells['file']!r} (line {first.line}). Remove a row.",
            "data.duplicate",
        )
    return msgspec.structs.replace(picture, sha256=name, path=str(file), media=media)


def _selected(pictures: list[Picture], options: DoraOptions) -> list[Picture]:
    entries = [
        Entry(setting="", dimension=one.dimension, descriptor=one.descriptor, form=one.form, stem=one.form)
        for one in pictures
    ]
    kept = {(entry.dimension, entry.descriptor) for entry in chosen(entries, options)}
    return [one for one in pictures if (one.dimension, one.descriptor) in kept]


def is_blank(data: bytes) -> bool:
    """Return whether an image has only one colour, up to the changes of a lossy format.

    Raises:
        ValueError: the bytes are not a complete image.
    """
    from PIL import Image

    # For malformed files, decoders raise many kinds of exceptions.
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
            # The bytes are missing, as in a bundle without images, so nothing is cached.
            return False
        try:
            _LOOKED[name] = is_blank(data)
        except ValueError:
            # The model that is asked about an undecodable image reports the error.
            _LOOKED[name] = False
    return _LOOKED[name]
