"""What a study says of its material, which holds for that material only: source, limits and whom it is about.

A study file states them of the material that it includes, and of published files by their sha256. Of any other file it
is known that somebody gave it, and no more.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ..contracts.errors import DataError, UnknownNameError
from ..design.folder import ABOUT, About, Answers, read_about
from .questions import Question

if TYPE_CHECKING:
    from .registry import StudyEntry

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
    words: dict[str, tuple[str, ...]] = {}
    """Words in the study's sentences that only hold for this material, by the name by which a folder gives its own: as
    they stand in the sentences, and last what is said of any other data."""


class Described(msgspec.Struct, frozen=True):
    """The words on the material of one study with its options."""

    source: str
    limits: tuple[str, ...]
    deviations: tuple[str, ...]
    own: tuple[str, ...] = ()
    """What the material of users is: `pairs of FILE (sha256 ...)`."""
    title: str = ""
    summary: str = ""
    words: Mapping[str, str] = {}
    """What stands in the place of words of the study's sentences."""
    population: str = ""
    """Whom a user's material is about, by its folder; empty: it does not say."""


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
    """Return what is known of the material of a study; of a folder, what it says of itself.

    Args:
        source: of the study.
        design: whose design it is, such as `CrowS-Pairs (Nangia et al. 2020)`.
        material: what the study says of each option that names material.
        paths: by option, the files and folders that are not those of the study file itself.

    Raises:
        DataError: `about.toml` of a folder cannot be used.
    """
    words: dict[str, str] = {}
    population = ""
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
        named = f"{part.noun} of {Path(path).name}" + (f" (sha256 {digest[:SHOWN]}...)" if digest else "")
        of_user.append(named)
        about = read_about(path) or About()
        sources.append(f"{about.source and f'{about.source}: '}{named}, in the design of {design}")
        limits += (*about.limits, *_unsaid(named, about))
        title, summary = title or about.title or part.title, summary or about.summary or part.summary
        words |= _words(part, about, path)
        population = population or about.population
    if included:
        sources.insert(0, source)
    described = Described("; ".join(sources), tuple(limits), tuple(deviations), tuple(of_user), title, summary)
    return msgspec.structs.replace(described, words=words, population=population)


def _unsaid(named: str, about: About) -> list[str]:
    """Return whom data are about and in which language, and what of it is not recorded, in sentences."""
    unknown = [] if about.source else [f"who made the {named}"]
    unknown += [] if about.population else ["which people they represent"]
    sentences = [f"The {named} are about {about.population}."] if about.population else []
    sentences += [f"Their language is {about.language}."] if about.language else []
    return [*sentences, *([f"It is not recorded {', or '.join(unknown)}."] if unknown else [])]


def _words(part: Material, about: About, path: str) -> dict[str, str]:
    for name in about.words:
        if name not in part.words:
            raise UnknownNameError(f"word of {Path(path) / ABOUT}", name, part.words)
    return {
        phrase: about.words.get(name, other) for name, (*phrases, other) in part.words.items() for phrase in phrases
    }


def reworded(text: str, words: Mapping[str, str]) -> str:
    """Return a sentence of a study with the words of other data; what began with a capital letter does so again."""
    if not words:
        return text
    listed = sorted(words, key=len, reverse=True)
    lower = {phrase.lower(): words[phrase] for phrase in listed}
    pattern = rf"(?<![\w-])(?:{'|'.join(map(re.escape, listed))})(?![\w-])"

    def other(match: re.Match[str]) -> str:
        word, written = lower[match[0].lower()], match[0]
        return word[:1].upper() + word[1:] if written[:1].isupper() else word

    return re.sub(pattern, other, text, flags=re.I)


def wordings_of(entry: StudyEntry, chosen: Mapping[str, Any], worded: frozenset[str]) -> dict[str, Any]:
    """Return the options that folders of data set: their wordings.

    Args:
        entry: the study.
        chosen: options that were set.
        worded: names of the options that are texts of the material.

    Raises:
        DataError: `about.toml` of a folder cannot be used.
        UnknownNameError: it sets an option that is no text of the material.
    """
    material = entry.material or (Material(),)
    options: dict[str, Any] = {}
    for path in paths_in(material, entry.options, chosen).values():
        about = read_about(path)
        for name, value in () if about is None else about.wordings.items():
            if name not in worded:
                raise UnknownNameError(f"wording of {Path(path) / ABOUT}", name, worded)
            options[name] = value
    return options


def words_on(entry: StudyEntry, name: str, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return the words of a study on the data that it reads, as fields of `Study`.

    Raises:
        DataError: `about.toml` of a folder cannot be used.
    """
    material = entry.material or (Material(),)
    paths = paths_in(material, entry.options, chosen)
    data = describe(entry.source, entry.design or entry.title or name, material, paths)

    def in_words(*texts: str) -> tuple[str, ...]:
        return tuple(reworded(text, data.words) for text in texts)

    return {
        "title": data.title or in_words(entry.title or name)[0],
        "summary": data.summary or in_words(entry.summary)[0],
        "source": data.source,
        "limits": (*in_words(*entry.limits), *data.limits),
        "deviations": (*in_words(*entry.deviations), *data.deviations),
        "own_data": data.own,
        "words": dict(data.words),
        "population": data.population,
        "questions": answered(entry.questions, paths.values(), data.words),
    }


def answered(questions: Sequence[Question], paths: Iterable[str], words: Mapping[str, str]) -> tuple[Question, ...]:
    """Return the questions of a study in the words of its data.

    Raises:
        DataError: a folder has words on a measure that answers no question of the study.
    """
    answers = {}
    measures = dict.fromkeys(question.measure for question in questions)
    for path in paths:
        about = read_about(path)
        for answer in () if about is None else about.questions:
            if answer.measure not in measures:
                raise DataError(
                    f"{Path(path) / ABOUT}: no question of the study is answered by {answer.measure!r}. "
                    f"There are: {', '.join(measures)}.",
                    code="data.about",
                )
            answers[answer.measure] = answer
    return tuple(_in_words(question, answers.get(question.measure), words) for question in questions)


def _in_words(question: Question, answer: Answers | None, words: Mapping[str, str]) -> Question:
    fields = ("asks", "above", "below")
    texts = {name: reworded(getattr(question, name), words) for name in fields}
    if answer is not None:
        texts = {name: getattr(answer, name) for name in fields}
    return msgspec.structs.replace(question, **texts)


def paths_in(material: Sequence[Material], stated: Mapping[str, Any], chosen: Mapping[str, Any]) -> dict[str, str]:
    """Return the paths by option that a user chose: those that a study file states itself are the author's."""
    return {
        part.option: value
        for part in material
        if isinstance(value := chosen.get(part.option), str) and value and stated.get(part.option) != value
    }
