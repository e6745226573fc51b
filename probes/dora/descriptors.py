"""Descriptors of people for the studies `dora-*`, in the form of each setting."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files

import msgspec

from ...core.contracts.errors import UnknownNameError, UsageError
from ...core.design.folder import parse_data
from ...core.tables import Form, Parsed, Repeats, Row, TableOptions
from .options import DoraOptions, Modality

REQUIRED = ("dimension", "singular", "plural")
T2T_SETTINGS = ("singular", "plural", "adjective", "noun", "verb")
"""Source: the paper, section 2.1 and Figure 8."""
T2I_SETTINGS = ("singular", "plural")
"""Source: the paper, section 2.2 and Figure 9."""
OWN_BLANKS = ("noun", "verb")
"""Settings with another blank, so that one stem makes two prompts."""
EITHER = "a/an"
_A_ANYWAY = re.compile(r"(?:eu|ewe|one\b|one-|once|uk|uga|uru|ute|use|usu|u\.|uni(?!n|m|d))", re.I)
"""Words that begin with a vowel letter but not a vowel sound. Source: pronunciations in Merriam-Webster."""
_AN_ANYWAY = re.compile(r"(?:hour|honest|hono|heir|hiv|lgbt)", re.I)


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A descriptor in one setting."""

    setting: str
    dimension: str
    descriptor: str
    """The singular form, the same in all settings."""
    form: str
    """The form of the descriptor in the prompt."""
    stem: str
    """The sentence up to the blank, `An alcoholic person is`; for images the object, `an alcoholic person`."""
    later: int = 0
    """The same as `first` for paraphrases, which two entries with different sentences may share."""
    first: int = 0
    """Number of the first sample: if a prompt is listed twice, the second entry has further samples."""


class Listed(msgspec.Struct, frozen=True):
    """A descriptor of a list."""

    dimension: str
    singular: str
    plural: str


def with_article(words: str) -> str:
    """Return the words with `a` or `an`."""
    vowel = words[:1].lower() in tuple("aeiou") and not _A_ANYWAY.match(words)
    return f"{'an' if vowel or _AN_ANYWAY.match(words) else 'a'} {words}"


def article_of(letter: str) -> str:
    """Return the article before a word of which only the first letter is known; Figure 8 has `an a_____`."""
    return "an" if letter in tuple("aeiou") else "a"


def read_list(path: str | None, options: TableOptions | None = None) -> Parsed[Listed]:
    """Return the descriptors of a file or folder with the columns dimension, singular and plural; None: the project's.

    Raises:
        DataError: the file cannot be used, or a descriptor occurs twice in one dimension.
    """
    shipped = str(files(__package__).joinpath("data/descriptors.csv"))
    repeats = Repeats(REQUIRED)

    def listed_of(row: Row) -> Listed:
        dimension, singular, plural = (" ".join(row.filled(name).split()) for name in REQUIRED)
        repeats.check(row, (dimension, singular.casefold()), f"{singular!r} of dimension {dimension!r}")
        return Listed(dimension, singular, plural)

    return parse_data(path or shipped, Form(REQUIRED), listed_of, options)


def stem_of(setting: str, listed: Listed) -> str:
    """Return the sentence up to the blank (the paper, Figure 8); for nouns without the last article."""
    if setting == "plural":
        return f"{_upper(listed.plural)} are"
    subject = with_article(listed.singular) if setting == "singular" else f"this {listed.singular}"
    return f"{_upper(subject)} is"


def drawn_of(setting: str, listed: Listed, options: DoraOptions) -> str:
    """Return the object of the drawing (the paper, Figure 9)."""
    if setting == "plural":
        return listed.plural
    return f"{EITHER} {listed.singular}" if options.articles == "listed" else with_article(listed.singular)


def entries_of(
    listed: Sequence[Listed], modality: Modality, settings: Iterable[str], options: DoraOptions
) -> Iterator[Entry]:
    """Yield each descriptor in each setting."""
    for setting in settings:
        for one in listed:
            stem = stem_of(setting, one) if modality == "t2t" else drawn_of(setting, one, options)
            yield Entry(
                setting=setting,
                dimension=one.dimension,
                descriptor=one.singular,
                form=one.plural if setting == "plural" else one.singular,
                stem=stem,
            )


def chosen(entries: Iterable[Entry], options: DoraOptions) -> list[Entry]:
    """Return the entries that the options choose, with samples numbered so that none is used twice.

    Raises:
        UnknownNameError: there is no such dimension.
    """
    found = list(entries)
    known = dict.fromkeys(entry.dimension for entry in found)
    for name in options.dimensions:
        if name not in known:
            raise UnknownNameError("dimension", name, known)
    wanted = options.dimensions or tuple(known)
    kept = _first([entry for entry in found if entry.dimension in wanted], options.per_dimension)
    times: Counter[tuple[str, ...]] = Counter()
    numbered = []
    for entry in kept:
        prompt = (entry.setting if entry.setting in OWN_BLANKS else "", entry.stem.casefold())
        later = ("later", entry.setting, entry.form.casefold())
        first = {"first": times[prompt] * options.samples, "later": times[later] * options.samples}
        numbered.append(msgspec.structs.replace(entry, **first))
        times.update((prompt, later))
    return numbered


def _first(entries: list[Entry], most: int | None) -> list[Entry]:
    if most is None:
        return entries
    seen: dict[tuple[str, str], dict[str, None]] = {}
    kept = []
    for entry in entries:
        names = seen.setdefault((entry.setting, entry.dimension), {})
        if entry.descriptor in names or len(names) < most:
            names[entry.descriptor] = None
            kept.append(entry)
    return kept


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def ensure_settings(settings: Sequence[str], known: Sequence[str]) -> None:
    """Refuse unknown or duplicate settings; raises `UnknownNameError` or `UsageError`."""
    for name in settings:
        if name not in known:
            raise UnknownNameError("setting", name, known)
    if not settings or len(set(settings)) < len(settings):
        raise UsageError(
            f"settings are {', '.join(settings) or 'none'}. Give one or more, each once.", code="options.duplicate"
        )
