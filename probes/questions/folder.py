"""A study in a folder: `study.toml` and tables become options of the probe, or every error of the folder is listed."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_type_hints

import msgspec

from ...core.contracts.errors import DataError, PrejudgeError, UnknownNameError, UsageError
from ...core.contracts.estimates import COLUMNS
from ...core.contracts.inputs import file_bytes, load_toml
from ...core.contracts.options import build_options, short
from ...core.contracts.records import Scalar
from ...core.pictures.checking import check_picture, require_pillow
from ...core.tables import read_table
from ..shared.images import inside
from .checks import answer_faults, level_faults, slot_faults
from .declared import AnswerDeclared, DesignForm, FactorForm, FolderForm, QuestionForm, QuestionsOptions
from .design import TEXT, design_of, names_of
from .measures import metrics_of, multiverse_of, questions_of, unknown_measures

STUDY = "study.toml"
MOST_BYTES = 16 << 20
"""Bytes of all tables of a folder together, and of each image."""
MOST_PROMPTS = 1_000_000
DIGEST = "image_name"
"""Column of the name of an image in requests."""
RESERVED = frozenset(
    {*COLUMNS, "outcome", "label", "status", "reason", "key", "trial", "stage", "answer", "order", "sample", "options"}
) | {"id", TEXT, "turn", DIGEST, "name"} - {"name"}
PROBE = "questions"
T = TypeVar("T", bound=msgspec.Struct)


class Fault(NamedTuple):
    """An error of a folder."""

    where: str
    """File and line, or file and key."""
    problem: str
    """What is wrong, the value, and what would be accepted."""
    code: str = "folder.value"

    def __str__(self) -> str:
        """Return it as a line."""
        return f"{self.where}: {self.problem}"


class Folder:
    """The content of a folder, and what is wrong with it."""

    def __init__(self, path: str) -> None:
        """Read `study.toml`.

        Raises:
            DataError: there is none, or it is no TOML.
        """
        self.path, self.faults = Path(path), list[Fault]()
        self.files: dict[str, str] = {}
        self.tables: dict[str, str] = {}
        self._bytes = 0
        self.text = self._file(STUDY).decode("utf-8", "replace")
        self.refuse()
        self.data = load_toml(self.text, str(self.path / STUDY))

    def refuse(self) -> None:
        """Raise all errors so far, if there are any.

        Raises:
            DataError: with the code of the first, and each as a field.
        """
        if self.faults:
            lines = [str(fault) for fault in self.faults]
            listed = " ".join(f"({number}) {line}" for number, line in enumerate(lines, 1))
            message = f"{self.path} has {len(lines)} errors: {listed}" if len(lines) > 1 else f"{self.path}: {lines[0]}"
            raise DataError(message, code=self.faults[0].code, faults=lines)

    def at(self, *keys: str) -> str:
        """Return file and line of a key of `study.toml`, as far as it can be seen, and the key."""
        lines, start = self.text.splitlines(), 0
        for key in keys:
            pattern = re.compile(rf"(?:^|[\[.{{,])\s*[\"']?{re.escape(key)}[\"']?\s*(?:[\]=.])")
            start = next((at for at in range(start, len(lines)) if pattern.search(lines[at])), start)
        return f"{STUDY}, line {start + 1}, {'.'.join(keys)}"

    def fault(self, where: str, problem: str, code: str = "folder.value") -> None:
        """Add an error."""
        self.faults.append(Fault(where, problem, code))

    def convert(self, value: Any, kind: type[T], *keys: str) -> T | None:
        """Return a value as a record; None where it is none, which is an error."""
        if not isinstance(value, Mapping):
            self.fault(self.at(*keys), f"it is {short(value)}. Give a table.")
            return None
        fields = get_type_hints(kind)
        for name in [name for name in value if name not in fields]:
            self.fault(self.at(*keys, name), str(UnknownNameError("key", name, fields)), "folder.key")
        try:
            accepted = {name: part for name, part in value.items() if name in fields}
            return build_options(".".join(keys) or STUDY, kind, accepted, strict=True, noun="key")
        except UsageError as error:
            self.fault(self.at(*keys), str(error))
        return None

    def _file(self, name: str) -> bytes:
        """Return the content of a file of the folder, empty where it cannot be read, which is an error."""
        where = self.path / name
        try:
            if Path(name).name != name or name.startswith("."):
                raise ValueError("it is no plain name of a file beside study.toml")
            if where.is_symlink():
                raise ValueError("it is a link, which may lead out of the folder; put the file itself there")
            content = file_bytes(where, MOST_BYTES - self._bytes)
        except FileNotFoundError:
            self.fault(str(where), "there is no such file. Write it, or mend its name.", "folder.missing")
            return b""
        except (OSError, ValueError) as error:
            self.fault(f"{STUDY}, file {short(name)}", f"{getattr(error, 'strerror', None) or error}.", "folder.file")
            return b""
        self._bytes += len(content)
        self.files[name] = hashlib.sha256(content).hexdigest()
        return content

    def levels(self, factor: str, form: FactorForm) -> FactorForm:
        """Return a factor with the levels of its file in place of the name of that."""
        if form.file and form.levels:
            self.fault(self.at("factors", factor), "it has levels and a file. Give one of them.")
        if not form.file or form.levels:
            return form
        rows: list[dict[str, Scalar]] = []
        self.tables[factor] = form.file
        if not self._file(form.file):
            return form
        try:
            table = read_table(str(self.path / form.file))
        except DataError as error:
            self.fault(form.file, str(error), error.code)
            return form
        text = next((name for name in (TEXT, factor) if name in table.columns), table.columns[0])
        for row in table.rows:
            if not row.cells[text].strip():
                self.fault(f"{form.file}, {row.unit} {row.line}", f"the column {text!r} is empty. Fill it in.")
            attributes = {name: cell.strip() or None for name, cell in row.cells.items() if name != text}
            rows.append({TEXT: row.cells[text].strip(), **attributes})
        numeric = [
            name for name in table.columns if name not in (text, *names_of(form.within)) and _numeric(rows, name)
        ]
        rows = [row | {name: _number(row[name]) for name in numeric} for row in rows]
        return msgspec.structs.replace(form, levels=tuple(rows), file="")

    def pictures(self, column: str, forms: dict[str, FactorForm]) -> dict[str, FactorForm]:
        """Return the factors with the name in requests of each image of a column."""
        names = {name: name if name == column else column.rpartition(".")[2] for name in forms}
        owner = next((n for n, form in forms.items() if n == column or _has(form, names[n])), None)
        if owner is None:
            self.fault(
                self.at("design", "image"), f"{column!r} is no factor and no column. There are: {', '.join(forms)}."
            )
            return forms
        require_pillow("a study with images")
        rows: list[dict[str, Scalar]] = []
        for level in forms[owner].levels:
            row: dict[str, Scalar] = dict(level) if isinstance(level, dict) else {TEXT: str(level)}
            name = str(row.get(TEXT if owner == column else names[owner]))
            rows.append(row | {DIGEST: self._picture(name)})
        return forms | {owner: msgspec.structs.replace(forms[owner], levels=tuple(rows))}

    def _picture(self, name: str) -> str:
        try:
            path = inside(self.path, name)
            if any(
                part.is_symlink()
                for part in (path, *path.parents)
                if part.is_relative_to(self.path) and part != self.path
            ):
                raise ValueError("it is a link, which may lead out of the folder; put the image itself there")
            return check_picture(file_bytes(path, MOST_BYTES)).name
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            self.fault(f"image {short(name)}", f"{why}.", "folder.file")
            return ""


def folder_study(path: str) -> dict[str, Any]:
    """Return the study of a folder, as the fields of a study file.

    Raises:
        DataError: the folder cannot be used; with every error.
    """
    folder = Folder(path)
    data = folder.data
    design, answer = _parts(folder)
    plain_fields = {name: value for name, value in data.items() if name not in ("design", "answer", "questions")}
    stated = folder.convert(
        {"design": {"text": "", "factors": {}}, "answer": {"form": "length"}, **plain_fields}, FolderForm
    )
    questions = [
        question
        for entry in data.get("questions", ())
        if (question := folder.convert(entry, QuestionForm, "questions")) is not None
    ]
    if design is None or answer is None or stated is None:
        folder.refuse()
        raise DataError(f"{path} cannot be used.", code="folder.value")  # what is None was an error
    _check(folder, design, answer)
    measures, asked = questions_of(questions, stated.measures, design)
    for problem in unknown_measures(measures, asked):
        folder.fault(folder.at("questions"), problem, "study.question")
    folder.refuse()
    chosen = msgspec.to_builtins({"design": design, "answer": answer, "files": folder.files}) | stated.options
    if design.image:
        chosen["folder"] = str(folder.path.resolve())
    try:
        options = build_options(path, QuestionsOptions, chosen)
        declared = design_of(options)
        cells = (*declared.named("by", "context"), *(n for n in declared.named("group") if n in declared.unit_factors))
        if not declared.size:
            folder.fault(
                folder.at("design"), "no prompt is left: no levels go together. Look at `within` and `without`."
            )
    except PrejudgeError as error:
        folder.fault(folder.at("design"), str(error), error.code)
    folder.refuse()
    texts = {name: getattr(stated, name) for name in ("title", "summary", "source")}
    return texts | {
        "probe": PROBE,
        "options": chosen,
        "metrics": metrics_of(measures, options),
        "questions": asked,
        "limits": list(stated.limits),
        "roles": stated.roles,
        "multiverse": multiverse_of(measures, asked, options),
        "limit": {"unit": list(declared.unit_factors), "cells": list(cells)},
    }


def _parts(folder: Folder) -> tuple[DesignForm | None, AnswerDeclared | None]:
    """Return design and answer; each factor is read alone, so that an error in one hides none in another."""
    for name in ("title", "design", "answer"):
        if name not in folder.data:
            folder.fault(STUDY, f"{name} is not set. A study needs it.", "folder.key")
    stated = folder.data.get("design", {})
    entries = stated.get("factors", {}) if isinstance(stated, dict) else {}
    forms: dict[str, FactorForm] = {}
    for name, entry in entries.items() if isinstance(entries, dict) else ():
        form = folder.convert(entry, FactorForm, "design", "factors", name)
        if form is not None:
            forms[name] = folder.levels(name, form)
    plain = {**stated, "factors": {}} if isinstance(stated, dict) else stated
    design = folder.convert(plain, DesignForm, "design") if "design" in folder.data else None
    answer = folder.convert(folder.data["answer"], AnswerDeclared, "answer") if "answer" in folder.data else None
    if design is None:
        return None, answer
    if design.image:
        forms = folder.pictures(design.image, forms)
    return msgspec.structs.replace(design, factors=forms), answer


def _check(folder: Folder, design: DesignForm, answer: AnswerDeclared) -> None:
    """Add what is wrong with levels, slots and the form of the answer."""
    for name in design.factors:
        if name in RESERVED or not re.fullmatch(r"[^\W\d]\w*(?:[ -]\w+)*", name):
            folder.fault(folder.at("factors", name), f"{name!r} cannot name a factor. Take another name of letters.")
    for name, problem, code in (*level_faults(design), *slot_faults(design, answer), *answer_faults(answer)):
        keys = name.split("/")
        file = folder.tables.get(keys[-1], "") if keys[0] == "factors" else ""
        folder.fault(folder.at(*keys) + (f", {file}" if file else ""), problem, code)
    size = math.prod(max(len(form.levels), 1) for form in design.factors.values() if not form.within)
    if size > MOST_PROMPTS:
        folder.fault(
            folder.at("design", "factors"),
            f"the factors give {size:,} prompts; at most {MOST_PROMPTS:,} are asked. Give fewer levels.",
            "folder.size",
        )


def _has(form: FactorForm, column: str) -> bool:
    return any(isinstance(level, dict) and column in level for level in form.levels)


def _numeric(rows: Iterable[Mapping[str, Scalar]], column: str) -> bool:
    cells = [row[column] for row in rows if row[column] is not None]
    return bool(cells) and all(re.fullmatch(r"-?\d+(?:\.\d+)?", str(cell)) for cell in cells)


def _number(cell: Scalar) -> Scalar:
    return None if cell is None else float(str(cell)) if "." in str(cell) else int(str(cell))


def media_of(data: bytes) -> str:
    """Return the media type of an image."""
    return check_picture(data).media
