"""Write the package from templates: names are filled in, in text and path."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template

import msgspec

from ..contracts.errors import UsageError
from ..contracts.png import encode_png
from ..contracts.version import VERSION

KINDS = ("probe", "adapter", "metric")
STUDY = "study"
STUDIES = ("choice", "pairs", "rating", "free", "image")
"""Kinds of studies in a folder."""
SIDE = 32
"""Pixels of the side of a picture that stands for one of the user's."""
COMMON = "common"
ENDING = ".tmpl"
"""Suffix of templates, so that no tool mistakes them for the final files."""


class Names(msgspec.Struct, frozen=True):
    """Names that are filled into a package."""

    kind: str
    name: str
    """The name as users write it: `word-choice`."""

    @property
    def package(self) -> str:
        """Return the name of the Python module."""
        return self.name.replace("-", "_")

    @property
    def class_name(self) -> str:
        """Return the name of the class."""
        return "".join(part.capitalize() for part in self.name.split("-"))

    def fill(self, text: str) -> str:
        """Return a template's text with the names filled in."""
        fields = {"kind": self.kind, "name": self.name, "package": self.package, "class_name": self.class_name}
        return Template(text).substitute(fields, version=VERSION)


def check_name(kind: str, name: str) -> Names:
    """Return the names.

    Raises:
        UsageError: the name is invalid.
    """
    names = Names(kind, name)
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise UsageError(
            f"{name!r} is not a valid name for a {kind}. Use small letters, digits and single hyphens: word-choice.",
            code="scaffold.name",
        )
    if keyword.iskeyword(names.package) or names.package in ("prejudge", "tests"):
        raise UsageError(
            f"{name!r} cannot be the name of a Python package. Choose another, such as my-{name}.", code="scaffold.name"
        )
    return names


def write_package(names: Names, folder: Path) -> list[Path]:
    """Write all files of a package, and return them in order.

    Raises:
        UsageError: the folder is not empty, or cannot be written.
    """
    return _written({path: text.encode() for path, text in rendered(names)}, folder)


def write_study(name: str, kind: str, folder: Path) -> list[Path]:
    """Write the folder of a study of a kind of `STUDIES`, and return its files in order; raises `UsageError`."""
    names = Names(STUDY, name)
    texts = {path: names.fill(text) for path, text in _walk(files(__package__).joinpath("templates", STUDY, kind))}
    contents = {path.removesuffix(ENDING): text.encode() for path, text in texts.items()}
    lines = contents.get("photos.csv", b"").decode().split()[1:]
    for number, line in enumerate(lines):
        pixel = bytes((40 + 13 * number, 90, 200 - 11 * number))
        contents[line.partition(",")[0]] = encode_png(pixel * SIDE * SIDE, SIDE, SIDE)
    return _written(contents, folder)


def _written(contents: Mapping[str, bytes], folder: Path) -> list[Path]:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(
            f"{str(folder)!r} exists already and is not empty. Name another with --folder.", code="file.exists"
        )
    written = []
    try:
        for path, content in sorted(contents.items()):
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
            written.append(place)
    except OSError as error:
        raise UsageError(
            f"cannot write {str(folder)!r}: {error.strerror or error}. Name another with --folder.",
            code="file.unwritable",
        ) from None
    return written


def rendered(names: Names) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each file."""
    templates = files(__package__).joinpath("templates")
    for part in (COMMON, names.kind):
        for path, text in _walk(templates.joinpath(part)):
            yield names.fill(_place(path)), names.fill(text)


def _place(template: str) -> str:
    """Return the path of the written file. Template names have no leading dot: packaging would leave such files out."""
    return template.removesuffix(ENDING).replace("__package__", "$package").replace("dot_", ".")


def _walk(folder: Traversable, place: str = "") -> Iterator[tuple[str, str]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _walk(entry, f"{place}{entry.name}/")
        elif entry.name.endswith(ENDING):
            yield f"{place}{entry.name}", entry.read_text("utf-8")
