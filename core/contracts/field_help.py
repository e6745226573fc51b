"""What `help` says of a class: its docstring, then the meaning of each field, which stands below it in the source."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import NamedTuple, TypeVar

T = TypeVar("T")
HEADING = "Attributes:"


class Field(NamedTuple):
    """A field of a class as it is written."""

    name: str
    annotation: str
    default: str | None
    """None: it has none."""
    meaning: str
    """The docstring below it; empty: it has none."""


def describe(thing: T) -> T:
    """Let `help` of a class, or of the classes of a module, say what their fields mean; return the same thing.

    `help` shows the docstring of a class and not the texts below its fields, so they are added to the docstring.
    """
    classes: list[type] = [thing] if inspect.isclass(thing) else []
    if isinstance(thing, ModuleType):
        classes = [kind for kind in vars(thing).values() if inspect.isclass(kind) and kind.__module__ == thing.__name__]
    for kind in classes:
        if kind.__module__.startswith("prejudge.") and HEADING not in (kind.__doc__ or ""):
            kind.__doc__ = described(kind)
    return thing


def described(kind: type) -> str:
    """Return the docstring of a class with its fields, those of its bases first."""
    bases = [base for base in reversed(kind.__mro__) if base.__module__.startswith("prejudge.")]
    fields = {field.name: field for base in bases for field in fields_in(base)}
    lines = [f"    {field.name}: {' '.join(_words(field))}" for field in fields.values()]
    return "\n".join([inspect.cleandoc(kind.__doc__ or ""), *(["", HEADING, *lines] if lines else [])])


def fields_in(kind: type) -> Iterator[Field]:
    """Yield the annotated public names of a class as they are written in its own source, not in that of its bases."""
    body = _classes_of(kind.__module__).get(kind.__qualname__, [])
    for node, following in zip(body, [*body[1:], ast.Pass()], strict=False):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id[0] != "_":
            default = None if node.value is None else ast.unparse(node.value)
            yield Field(node.target.id, ast.unparse(node.annotation), default, docstring_in(following))


def docstring_in(node: ast.stmt) -> str:
    """Return the text that a statement is; empty for any other statement."""
    value = node.value if isinstance(node, ast.Expr) else None
    return inspect.cleandoc(value.value) if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


@cache
def _classes_of(module: str) -> dict[str, list[ast.stmt]]:
    """Return the body of each class of a module; empty where its source is not installed."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (KeyError, OSError, TypeError):
        return {}
    return {node.name: node.body for node in tree.body if isinstance(node, ast.ClassDef)}


def _words(field: Field) -> Iterator[str]:
    default = "" if field.default is None else f", by default {field.default}"
    yield f"({field.annotation}{default})"
    yield from field.meaning.split()
