"""Construct files: one construct, and the measures of several studies that speak to it.

A construct such as "skin tone and desirability" is no study: it says which row of which study, asked in which way,
measures it, in which direction, and on which scale that row is. It is a TOML file that a plugin brings
(`prejudge_constructs`) or that anybody writes and names by its path.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from ..contracts.errors import DataError, UnknownNameError
from ..contracts.inputs import file_bytes
from ..contracts.options import plainly
from ..contracts.plugin import StudyFile
from ..contracts.records import Scalar
from .registry import check_keys, locate, parse_toml

ENDING = ".toml"
Scale = Literal["difference", "share", "d", "dz", "sign"]
"""What a row is, and so how it is brought to the common scale; `core/lab/converge/scale.py` has the conversions."""


class Method(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way to measure a construct: a study, how it is asked, and the row that speaks to the construct."""

    study: str
    measure: str
    """The declared measure, such as `favouritism`."""
    scale: Scale
    """`difference`: of two shares or probabilities, neutral 0; `share`: neutral one half; `d`: the row's standardised
    difference of two groups; `dz`: that of matched units, by their own standard deviation; `sign`: no scale that can be
    compared, so that only direction and p are used."""
    title: str = ""
    metric: str = ""
    """The metric that has the measure; empty: whichever does."""
    group: dict[str, Scalar] = {}
    """Levels that name the row."""
    sign: Literal[1, -1] = 1
    """-1: greater values of the measure are less of the construct."""
    options: dict[str, Any] = {}
    """Options that make the study this method: how it is asked, and of whom."""
    size: dict[str, Any] = {}
    """Options that say how much is asked: a run of another size is a run of this method, too."""
    material: str = ""
    """Methods of one material ask the same questions, and count as one source of evidence; empty: the study's probe."""
    shares: tuple[str, ...] = ()
    """What it has in common with methods of other materials, such as their attribute words."""
    population: str = ""
    """What the row's interval generalises to."""

    @property
    def wanted(self) -> dict[str, Any]:
        """Return all options of its study."""
        return {**self.size, **self.options}


class Construct(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A construct and the methods that measure it."""

    name: str
    title: str
    direction: str
    """What values above 0 mean on the common scale."""
    methods: dict[str, Method]
    """By name; methods of one name in two constructs are the same method of two traits."""
    summary: str = ""
    limits: tuple[str, ...] = ()


def is_construct_file(name: str) -> bool:
    """Return whether this is the name of a file, not of a registered construct."""
    return name.endswith(ENDING)


def read_construct(place: StudyFile) -> tuple[str, Construct]:
    """Return the construct of a file with its name, by default that of the file.

    Raises:
        DataError: the file cannot be read, or a value has the wrong type.
        UnknownNameError: an unknown key.
    """
    file = Path(locate(place, None)) if isinstance(place, str) else place
    path = str(place)
    try:
        text = (file_bytes(file) if isinstance(file, Path) else file.read_bytes()).decode()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise DataError(f"cannot read the construct file {path!r}: {why}.", code="file.unreadable") from None
    data = {"name": Path(file.name).stem, **parse_toml(text, path)}
    try:
        construct = msgspec.convert(data, Construct)
    except msgspec.ValidationError as error:
        check_keys(data, Construct, path)
        raise DataError(f"{path}: {plainly(error)}", code="construct.value") from None
    if len(construct.methods) < 2:
        raise DataError(
            f"{path} has {len(construct.methods)} method. Evidence converges from two methods or more: add a table "
            "[methods.NAME].",
            code="construct.value",
        )
    folder = Path(str(file)).resolve().parent
    methods = {
        name: msgspec.structs.replace(method, options={k: locate(v, folder) for k, v in method.options.items()})
        for name, method in construct.methods.items()
    }
    return construct.name, msgspec.structs.replace(construct, methods=methods)


def find_construct(name: str, known: Mapping[str, Construct]) -> Construct:
    """Return a construct by its name, or that of a construct file (`my-construct.toml`).

    Raises:
        UnknownNameError: there is none.
        DataError: the file cannot be used.
    """
    if is_construct_file(name):
        return read_construct(name)[1]
    if name not in known:
        raise UnknownNameError("construct", name, known, "A construct of your own is a file: ./my-construct.toml")
    return known[name]
