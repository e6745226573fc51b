"""Check a study file and list all its errors."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, get_args, get_type_hints

import msgspec

from ..contracts import Options
from ..contracts.errors import PrejudgeError, UnknownNameError
from ..contracts.options import build_options, plainly
from .plugins import Plugins
from .registry import StudyEntry
from .study import Catalogue
from .studyfile import is_study_folder, load_study_file, study_at

KINDS = ("probe", "metric")


def problems_of(path: str, catalogue: Catalogue) -> list[str]:
    """Return a line per error of a study file, or of a folder; none if it can be run.

    Raises:
        DataError: the file cannot be read, or is not valid TOML.
    """
    if is_study_folder(path):
        return list(_of_folder(path, catalogue))
    _, data = load_study_file(path)
    problems = list(_of_fields(data))
    problems += _of_probe(data, catalogue)
    problems += _of_metrics(data, catalogue)
    problems += _of_roles(data, catalogue)
    if not problems:
        problems += _of_whole(path, catalogue)
    return problems


def _of_folder(path: str, catalogue: Catalogue) -> Iterator[str]:
    try:
        study_at(path, catalogue.folder_probe)
    except PrejudgeError as error:
        faults = error.fields.get("faults")
        yield from faults if isinstance(faults, list) else [str(error)]
        return
    yield from _of_whole(path, catalogue)


def _said(what: str, check: Any) -> Iterator[str]:
    """Yield the error that a check raises."""
    try:
        check()
    except PrejudgeError as error:
        yield f"{what}: {error}" if what else str(error)


def _of_fields(data: Mapping[str, Any]) -> Iterator[str]:
    hints = get_type_hints(StudyEntry)
    for name in ("probe", "metrics"):
        if name not in data:
            yield f"{name} is not set. A study needs it."
    for name, value in data.items():
        if name not in hints:
            yield str(UnknownNameError("key", name, [*hints, "name"]))
            continue
        try:
            msgspec.convert(value, hints[name])
        except msgspec.ValidationError as error:
            yield f"{name}: {plainly(error)}"


def _of_probe(data: Mapping[str, Any], catalogue: Catalogue) -> Iterator[str]:
    if isinstance(name := data.get("probe"), str):
        yield from _of_options("probe", name, data.get("options", {}), catalogue, "options")


def _of_metrics(data: Mapping[str, Any], catalogue: Catalogue) -> Iterator[str]:
    metrics = data.get("metrics")
    if isinstance(metrics, Mapping):
        if not metrics:
            yield "metrics: name at least one, such as [metrics.contrast]."
        for name, values in metrics.items():
            yield from _of_options("metric", name, values, catalogue, f"metrics.{name}")


def _of_options(kind: str, name: str, values: Any, catalogue: Catalogue, where: str) -> Iterator[str]:
    """Yield the problems of a name and of its options, one by one."""
    try:
        options = catalogue.plugins.load(kind, name).options
    except PrejudgeError as error:
        yield str(error)
        return
    if not isinstance(values, Mapping):
        yield f"{where} is {values!r}. Give a table of options."
        return
    problems = list(_of_values(name, options, values, where))
    yield from problems or _said(where, lambda: build_options(name, options, values))


def _of_values(name: str, options: type[Options], values: Mapping[str, Any], where: str) -> Iterator[str]:
    required = {field.name for field in msgspec.structs.fields(options) if field.required}
    for key, value in values.items():
        others = {other: values[other] for other in required & set(values) if other != key}
        try:
            build_options(name, options, {key: value, **others})
        except UnknownNameError as error:
            yield f"{where}: {error}"
        except PrejudgeError as error:
            # Errors that do not name this option are reported once, by the check of all options together.
            if repr(key) in str(error) or str(error).startswith(f"{key} "):
                yield f"{where}: {error}"


def _of_roles(data: Mapping[str, Any], catalogue: Catalogue) -> Iterator[str]:
    roles = data.get("roles")
    for role, model in roles.items() if isinstance(roles, Mapping) else ():
        if isinstance(model, str):
            yield from _said(f"roles.{role}", lambda model=model: catalogue.registry.model(catalogue.named(model)))


def _of_whole(path: str, catalogue: Catalogue) -> Iterator[str]:
    """Yield errors between valid parts: probe and metric that do not fit, unknown roles, published tables."""
    try:
        study = catalogue.study(path, {}, {})
        instrument = catalogue.instrument(study)
    except PrejudgeError as error:
        yield str(error)
        return
    roles = sorted({stage.role for stage in instrument.every_stage()})
    for role in study.roles:
        if role not in roles:
            yield f"roles: {UnknownNameError(f'role of probe {study.probe}', role, roles)}"


def study_schema(plugins: Plugins) -> dict[str, Any]:
    """Return the JSON schema of a study file, with the options of every available probe and metric."""
    schema, parts = msgspec.json.schema_components([StudyEntry], ref_template="#/$defs/{name}")
    study = parts.pop("StudyEntry")
    study["properties"] = {
        "name": {"type": "string", "description": "Name of the study. Default: the name of the file."},
        **study["properties"],
    }
    _describe(study, StudyEntry)
    options = {kind: _options_schemas(kind, plugins, parts) for kind in KINDS}
    study["properties"]["metrics"] = {"type": "object", "minProperties": 1, "properties": options["metric"]}
    study["properties"]["probe"]["examples"] = sorted(options["probe"])
    study["allOf"] = [
        {"if": {"properties": {"probe": {"const": name}}}, "then": {"properties": {"options": reference}}}
        for name, reference in options["probe"].items()
    ]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **study, "title": "Study", "$defs": parts}


def folder_schema(form: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON schema of the file of a folder that is a study, by the record that it is read as."""
    _, parts = msgspec.json.schema_components([form], ref_template="#/$defs/{name}")
    study = parts.pop(form.__name__)
    _describe(study, form)
    kinds = {part.__name__: part for part in _records(form)}
    for name, part in parts.items():
        _describe(part, kinds[name])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **study, "title": "Folder", "$defs": parts}


def _records(hint: Any) -> Iterator[type[msgspec.Struct]]:
    """Yield the records that a type holds."""
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        yield hint
        for field in get_type_hints(hint).values():
            yield from _records(field)
    for part in get_args(hint):
        yield from _records(part)


def _options_schemas(kind: str, plugins: Plugins, parts: dict[str, Any]) -> dict[str, Any]:
    """Return a reference to the schema of each plugin's options, and add the schemas to `parts`."""
    schemas = {}
    for name in sorted(plugins.offers[kind]):
        options = plugins.load(kind, name).options
        _, components = msgspec.json.schema_components([options], ref_template="#/$defs/{name}")
        _describe(components[options.__name__], options)
        # Class names may be equal in two plugins; names of one kind are unique.
        title = f"{kind} {name}"
        parts[title] = components.pop(options.__name__)
        parts.update(components)
        schemas[name] = {"$ref": f"#/$defs/{title}"}
    return schemas


def _describe(schema: dict[str, Any], kind: type) -> None:
    schema.pop("title", None)
    for name, text in field_docs(kind).items():
        if name in schema.get("properties", {}):
            schema["properties"][name] = {**schema["properties"][name], "description": text}


def field_docs(kind: type) -> dict[str, str]:
    """Return the docstrings below the fields of a record, inherited fields included."""
    docs: dict[str, str] = {}
    for part in reversed(kind.__mro__):
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(part)))
        except (OSError, TypeError):
            continue
        docs |= _documented(tree.body[0])
    return docs


def _documented(node: ast.stmt) -> dict[str, str]:
    body = node.body if isinstance(node, ast.ClassDef) else []
    return {
        field.target.id: inspect.cleandoc(text.value.value)
        for field, text in zip(body, body[1:], strict=False)
        if isinstance(field, ast.AnnAssign)
        and not ast.unparse(field.annotation).startswith("ClassVar")
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }
