"""What a study says of its material, which holds for that material only: source, limits and whom it is about.

A study file states them of the material that it includes, and of published files by their sha256. Of any other file it
is known that somebody gave it, and no more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

TABLES = (".csv", ".json", ".jsonl", ".toml", ".tsv")
"""Endings of the files of a folder that say what it holds; images are stored by their own digests."""
SHOWN = 12
"""Characters of a digest that a sentence shows; the manifest has it whole."""


class KnownData(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A published file, or folder of files, that a study can read."""

    sha256: str
    """Of the file; of a folder, of the lines `SHA256  NAME` of its tables in the order of their names."""
    name: str
    """What it is, such as `the 1,508 pairs of CrowS-Pairs`."""
    source: str = ""
    """Empty: the source of the study."""
    limits: tuple[str, ...] = ()
    deviations: tuple[str, ...] = ()


class Material(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is asked, as one option of the probe names it."""

    option: str = "data"
    """The option that names a file or folder; without it, the study's own material is asked, if it includes any."""
    noun: str = "data"
    """What such a file holds: `pairs`, `items`, `faces` ..."""
    adds: bool = False
    """Whether a file is asked in addition to what the study includes."""
    title: str = ""
    """Title of the study where its material is a user's, if the study's own names a population; empty: the same."""
    summary: str = ""
    """Its question, likewise."""
    limits: tuple[str, ...] = ()
    """Limits of what the study includes."""
    deviations: tuple[str, ...] = ()
    """Differences of that from the paper's."""
    known: tuple[KnownData, ...] = ()


class Described(msgspec.Struct, frozen=True):
    """The words on the material of one study with its options."""

    source: str
    limits: tuple[str, ...]
    deviations: tuple[str, ...]
    own: tuple[str, ...] = ()
    """What the material of users is: `pairs of FILE (sha256 ...)`."""
    title: str = ""
    summary: str = ""


def tables_of(path: str) -> list[Path]:
    """Return the file at a path, or the tables of the folder there; none if nothing is there."""
    place = Path(path)
    try:
        if place.is_file():
            return [place]
        return sorted(file for file in place.iterdir() if file.suffix.lower() in TABLES and file.is_file())
    except (OSError, ValueError):
        return []  # the probe, which reads it, reports what is wrong


def digest_of(path: str) -> str:
    """Return the sha256 of a file, or of the tables of a folder (see `KnownData`); empty if they cannot be read."""
    try:
        digests = {table.name: file_digest(table) for table in tables_of(path)}
    except OSError:
        return ""
    if not digests or Path(path).is_file():
        return "".join(digests.values())
    lines = "".join(f"{digest}  {name}\n" for name, digest in digests.items())
    return hashlib.sha256(lines.encode()).hexdigest()


def file_digest(path: str | Path) -> str:
    """Return the sha256 of a file."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def describe(source: str, design: str, material: Sequence[Material], paths: Mapping[str, str]) -> Described:
    """Return what is known of the material of a study.

    Args:
        source: of the study.
        design: whose design it is, such as `CrowS-Pairs (Nangia et al. 2020)`.
        material: what the study says of each option that names material.
        paths: by option, the files and folders that are not those of the study file itself.
    """
    sources, limits, deviations, of_user = [], list[str](), list[str](), list[str]()
    title = summary = ""
    included = not any(part.option in paths and not part.adds for part in material)
    for part in material:
        path = paths.get(part.option)
        if path is None or part.adds:
            limits += part.limits
            deviations += part.deviations
        if path is None:
            continue
        digest = digest_of(path)
        version = next((edition for edition in part.known if edition.sha256 == digest), None)
        if version is not None:
            sources.append(f"{version.source or source} ({version.name}, read from {Path(path).name})")
            limits += version.limits
            deviations += version.deviations
            continue
        words = f"{part.noun} of {Path(path).name}" + (f" (sha256 {digest[:SHOWN]}...)" if digest else "")
        of_user.append(words)
        sources.append(f"{words}, in the design of {design}")
        limits.append(f"It is not recorded who made the {words}, or which people they represent.")
        title, summary = title or part.title, summary or part.summary
    if included:
        sources.insert(0, source)
    return Described("; ".join(sources), tuple(limits), tuple(deviations), tuple(of_user), title, summary)


def paths_in(material: Sequence[Material], stated: Mapping[str, Any], chosen: Mapping[str, Any]) -> dict[str, str]:
    """Return the paths by option that a user chose: those that a study file states itself are the author's."""
    return {
        part.option: value
        for part in material
        if isinstance(value := chosen.get(part.option), str) and value and stated.get(part.option) != value
    }
