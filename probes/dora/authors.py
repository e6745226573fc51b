"""The prompt lists of the authors of BiasDora, in a folder, read unchanged with their errors.

`t2t_setting1.csv` to `t2t_setting5.csv` (`bias_type`, `template`), `t2i_setting1.csv` and `t2i_setting2.csv`
(`template_singular` or `template_plural`, `target`, `bias_type`, `target_singular` or `target_plural`), and
`bias_target_mapping.json`, the targets by dimension. They are at github.com/chahatraj/BiasDora, without a licence.

Some templates have errors of a script (`This` instead of every `A`, as in `Thisgnostic`) or lack their verb. The
paper's models were asked these, so they are asked unchanged; only the descriptor that they count for is corrected.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import msgspec

from ...core.contracts.errors import DataError
from ...core.contracts.inputs import file_bytes
from ...core.design.folder import read_about
from ...core.tables import Row, read_rows
from .descriptors import EITHER, Entry, chosen, entries_of, read_list, with_article
from .options import DoraOptions, Modality

DIMENSIONS = (
    "age",
    "disability",
    "gender",
    "nationality",
    "physical appearance",
    "race/color",
    "religion",
    "sexual orientation",
    "socioeconomic status",
)
T2T_FILES = dict(zip(("singular", "plural", "adjective", "noun", "verb"), range(1, 6), strict=True))
T2I_FILES = {"singular": 1, "plural": 2}
MAPPING = "bias_target_mapping.json"
_END = re.compile(r"(?:\s+(?:is|are))?(?:\s+(?:a/an|an|a))?$")
_ARTICLE = re.compile(r"^(?:a/an|an?|the|this|these)\s+", re.I)
_DRAWN = re.compile(r"\ba/an$")
_WRITTEN = {"race-color": "race/color", "race color": "race/color", "socioeconomic": "socioeconomic status"}


def asked_about(modality: Modality, settings: Sequence[str], options: DoraOptions) -> list[Entry]:
    """Return the descriptors in each setting: from the project's list, a file, or the authors' folder.

    Raises:
        DataError: a file cannot be used.
        UnknownNameError: there is no such dimension.
    """
    if options.data is None or not Path(options.data).is_dir() or read_about(options.data) is not None:
        return chosen(entries_of(read_list(options.data, options).values, modality, settings, options), options)
    lists = Published(options.data)
    return chosen(lists.t2t(settings) if modality == "t2t" else lists.t2i(settings, options), options)


def list_notes(options: DoraOptions) -> tuple[str, ...]:
    """Return what a reader needs to know of a file of descriptors, in sentences; raises `DataError`."""
    if options.data is None or Path(options.data).is_dir():
        return ()
    return read_list(options.data, options).notes()


class Published:
    """The authors' folder."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def t2t(self, settings: Iterable[str]) -> Iterator[Entry]:
        """Yield every template of text completion. Raises `DataError` if a file cannot be used."""
        for setting in settings:
            for row in read_rows(self._path(f"t2t_setting{T2T_FILES[setting]}.csv"), ("bias_type", "template")):
                template = " ".join(row.filled("template").split())
                form = _ARTICLE.sub("", _END.sub("", template))
                yield Entry(
                    setting=setting,
                    dimension=(dimension := _dimension(row)),
                    descriptor=self._known(dimension, form),
                    form=form,
                    stem=template.removesuffix(EITHER).strip() if setting == "noun" else template,
                )

    def t2i(self, settings: Iterable[str], options: DoraOptions) -> Iterator[Entry]:
        """Yield every description of an image to draw. Raises `DataError` if a file cannot be used."""
        singulars = {key: form for key, form, _ in self._drawn("singular")}
        for setting in settings:
            for key, form, row in self._drawn(setting):
                fitting = with_article(form) if options.articles == "fitting" else f"{EITHER} {form}"
                yield Entry(
                    setting=setting,
                    dimension=key[0],
                    descriptor=self._known(key[0], singulars.get(key, form)),
                    form=form,
                    stem=fitting if _DRAWN.search(row.cells[f"template_{setting}"].strip()) else form,
                )

    def _drawn(self, setting: str) -> Iterator[tuple[tuple[str, str], str, Row]]:
        columns = (f"template_{setting}", "target", "bias_type", f"target_{setting}")
        for row in read_rows(self._path(f"t2i_setting{T2I_FILES[setting]}.csv"), columns):
            form = " ".join(row.filled(f"target_{setting}").split())
            yield (_dimension(row), row.filled("target").strip()), form, row

    def _path(self, name: str) -> str:
        return str(self._folder / name)

    @cached_property
    def _targets(self) -> Mapping[str, Mapping[str, str]]:
        """Return, by dimension, the listed target of each of its forms: singular or plural, with or without `the`."""
        path = self._folder / MAPPING
        try:
            listed = msgspec.json.decode(file_bytes(path).removeprefix(b"\xef\xbb\xbf"), type=dict[str, list[str]])
        except FileNotFoundError:
            raise DataError(
                f"no such file: {str(path)!r}. The folder must have all lists of the authors.", code="file.missing"
            ) from None
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise DataError(
                f"{str(path)!r} is not a mapping of dimensions to lists of targets: {error}.", code="data.syntax"
            ) from None
        found: dict[str, dict[str, str]] = {}
        for name, targets in listed.items():
            ways = found.setdefault(_WRITTEN.get(name, name.replace("-", " ")), {})
            for target in (_ARTICLE.sub("", " ".join(target.split())) for target in targets):
                for way in (*_plurals(target), _spoiled(target)):
                    ways.setdefault(way.casefold(), target)
            # A target's own spelling takes precedence over a form derived from another target.
            ways |= {(own := _ARTICLE.sub("", " ".join(t.split()))).casefold(): own for t in targets}
        return found

    def _known(self, dimension: str, form: str) -> str:
        """Return the target of a form, the same in all settings; the form itself if there is none."""
        ways = self._targets.get(dimension, {})
        return ways.get(_ARTICLE.sub("", form).casefold(), form)


def _dimension(row: Row) -> str:
    name = row.filled("bias_type").strip()
    name = _WRITTEN.get(name, name.replace("-", " "))
    if name not in DIMENSIONS:
        raise row.fault(
            f"unknown bias_type {row.cells['bias_type']!r}. Known: {', '.join(DIMENSIONS)}.", "data.unknown-value"
        )
    return name


def _spoiled(target: str) -> str:
    """Return a target with the script's error: `This` for its first letter."""
    return f"This{target[1:]}" if target[:1] in ("A", "a") else target


def _plurals(target: str) -> Iterator[str]:
    """Yield possible plural forms of a target; not all of them are words."""
    low = target.casefold()
    if low.endswith("person"):
        yield f"{target[:-6]}people"
    if low.endswith("man"):
        yield f"{target[:-2]}en"
    if low.endswith("child"):
        yield f"{target}ren"
    if re.search(r"[^aeiou]y$", low):
        yield f"{target[:-1]}ies"
    if low.endswith("fe"):
        yield f"{target[:-2]}ves"
    yield f"{target}es" if low.endswith(("s", "x", "ch", "sh")) else f"{target}s"
