"""Write the package from templates: names are filled in, in text and path."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template

import msgspec

from ..contracts.errors import UsageError
from ..contracts.version import VERSION

KINDS = ("probe", "adapter", "metric")
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
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(
            f"{str(folder)!r} exists already and is not empty. Name another with --folder.", code="file.exists"
        )
    written = []
    try:
        for path, text in sorted(rendered(names)):
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
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
