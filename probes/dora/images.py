"""Images of people by descriptor: drawn by a model, or from a folder with a metadata CSV."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from ...core.pictures.checking import CheckedPicture, check_picture, conversion_notes, require_pillow
from ...core.pictures.names import WHITE, background_colour
from ...core.tables import Form, Row, parse_file, read_rows
from ..shared.images import METADATA, inside
from .authors import asked_about, list_notes
from .descriptors import T2I_SETTINGS, Entry, chosen
from .design import drawings_design
from .options import DoraOptions
from .wordings import DRAWINGS

FOLDER = Form(("file", "descriptor", "dimension"), ("form",))
BLANK, REPEATED = "a blank image", "an image drawn before"
CELL = ("dimension", "descriptor", "form")
_LOOKED: dict[tuple[str, str], CheckedPicture | None] = {}
"""Drawings by sha256 and background. Cached, because a run is read after each stage and for its report."""


class DrawingOptions(DoraOptions, frozen=True, kw_only=True):
    """Parameters of the studies that draw."""

    option_effects = harmless("numbers background")

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
    background: str = WHITE
    """Colour behind transparent pixels of pictures: red, green and blue as six hexadecimal digits."""

    def __post_init__(self) -> None:
        """Refuse an invalid size, number of steps or colour."""
        super().__post_init__()
        background_colour(self.background)
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

    def notes(self) -> Sequence[str]:
        """Say which rows of a file were left out."""
        return list_notes(self._options)

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
        """Mark blank images, and all but the first of images with the same bytes, as missing.

        A drawing that is converted for models gets the name of its conversion.
        """
        names = observations.filter(pl.col("status") == "ok")["image"].unique(maintain_order=True)
        seen = {name: _shown(name, blobs, background_colour(self._options.background)) for name in names}
        blank = [name for name, picture in seen.items() if picture is not None and picture.blank]
        renamed = {name: one.name for name, one in seen.items() if one is not None and one.name != name}
        again = ~pl.col("image").is_first_distinct()
        why = pl.when(pl.col("image").is_in(blank)).then(pl.lit(BLANK)).when(again).then(pl.lit(REPEATED))
        marked = observations.with_columns(_why=pl.when(pl.col("status") == "ok").then(why))
        missing = pl.col("_why").is_not_null()
        return marked.with_columns(
            status=pl.when(missing).then(pl.lit("unreadable")).otherwise(pl.col("status")),
            reason=pl.coalesce("_why", "reason"),
            image=pl.when(~missing).then(pl.col("image").replace(renamed)),
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


def read_pictures(folder: str, options: DrawingOptions) -> tuple[list[Picture], tuple[str, ...]]:
    """Read a folder with `metadata.csv`, or the CSV file itself; files are named relative to it.

    Columns: `file`, `descriptor`, `dimension`, and `form`, if the image was made with other words than the descriptor.

    Returns:
        The pictures, and what a reader needs to know of them, in sentences.

    Raises:
        DataError: an image is missing, unreadable, blank, or a duplicate; with `skip` such rows are left out.
        MissingExtraError: Pillow is not installed.
    """
    require_pillow("reading images")
    seen: dict[str, Row] = {}
    background = background_colour(options.background)
    place = _table_of(folder)
    checked: list[CheckedPicture] = []

    def read(row: Row) -> Picture:
        picture, shown = _with_image(_picture(row), row, background, seen)
        checked.append(shown)
        return picture

    parsed = parse_file(str(place), FOLDER, read, options)
    return _numbered(parsed.values, options), (*parsed.notes(), *conversion_notes(checked, background))


def list_pictures(folder: str, options: DoraOptions) -> list[Picture]:
    """Return the images of a folder by its `metadata.csv` alone; raises `DataError` if that cannot be used."""
    return _numbered([_picture(row) for row in read_rows(str(_table_of(folder)), FOLDER.required)], options)


def _table_of(folder: str) -> Path:
    return Path(folder) / METADATA if Path(folder).is_dir() else Path(folder)


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


def _with_image(picture: Picture, row: Row, background: str, seen: dict[str, Row]) -> tuple[Picture, CheckedPicture]:
    folder = Path(row.path).parent
    file = folder / row.filled("file").strip()
    try:
        shown = check_picture(file_bytes(inside(folder, row.filled("file"))), background)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        problem = f"{str(file)!r} cannot be read as an image ({why})."
        raise row.fault(problem, "data.images", "an image that cannot be read") from None
    if shown.blank:
        problem = f"{str(file)!r} is blank: it has only one colour. Remove the row."
        raise row.fault(problem, "data.images", "a blank image")
    if (first := seen.setdefault(shown.sha256, row)) is not row:
        problem = f"{str(file)!r} has the bytes of {first.cells['file']!r} (line {first.line}). Remove a row."
        raise row.fault(problem, "data.duplicate", "the bytes of another image")
    return msgspec.structs.replace(picture, sha256=shown.name, path=str(file), media=shown.media), shown


def _selected(pictures: list[Picture], options: DoraOptions) -> list[Picture]:
    entries = [
        Entry(setting="", dimension=one.dimension, descriptor=one.descriptor, form=one.form, stem=one.form)
        for one in pictures
    ]
    kept = {(entry.dimension, entry.descriptor) for entry in chosen(entries, options)}
    return [one for one in pictures if (one.dimension, one.descriptor) in kept]


def _shown(name: str, blobs: Callable[[str], bytes] | None, background: str) -> CheckedPicture | None:
    """Return what is known of a drawing; None if its bytes are missing or no image."""
    if blobs is None:
        return None
    require_pillow("looking for blank images")
    if (name, background) not in _LOOKED:
        try:
            data = blobs(name)
        except DataError:
            # The bytes are missing, as in a bundle without images, so nothing is cached.
            return None
        try:
            _LOOKED[name, background] = check_picture(data, background)
        except ValueError:
            # The model that is asked about an undecodable image reports the error.
            _LOOKED[name, background] = None
    return _LOOKED[name, background]
