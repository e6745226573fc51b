"""What the code of a plugin says that its numbers depend on.

Comments, docstrings and layout do not count, nor what a measure or figure is called, nor the methods of
`Presentation` that only say, draw or pick examples, with whatever is used by them alone. Which definition is used is
judged by its name, wherever that stands: of two with one name, both count.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path

from ..contracts.presentation import Presentation

CALLED = frozenset({"label", "meaning", "direction"})
"""Arguments of a measure that are words."""
HEADLINE = "headline"
PRESENTED = frozenset({name for name in vars(Presentation) if not name.startswith("_")}) - {HEADLINE}
"""Methods on which no number depends, and no choice of numbers."""
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def said_by(files: Iterable[Path], entry: Path) -> dict[Path, str]:
    """Return the digest of what each file says that the classes of the file `entry` use; of those that say any."""
    parts = {path: _parts_of(path) for path in files}
    used = _used(parts, entry)
    return {
        path: _digest([part for part in own if part.names is None or part.names & used]) for path, own in parts.items()
    }


@cache
def tree(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_bytes())


@cache
def said(path: Path) -> str:
    """Return the digest of all that a file says."""
    return _sha256(_told(tree(path)))


@cache
def _parts_of(path: Path) -> tuple[_Part, ...]:
    return tuple(part for node in tree(path).body for part in _parts(node))


class _Part:
    """A statement of a module, or a method that only presents."""

    def __init__(self, node: ast.AST, names: Iterable[str] | None, without: frozenset[ast.AST] = frozenset()) -> None:
        self.node, self.without = node, without
        self.names = None if names is None else frozenset(names)
        """What it defines; None: it counts whatever is used."""

    @cached_property
    def mentions(self) -> frozenset[str]:
        """The names that stand in it."""
        return frozenset(self._mentions())

    @cached_property
    def told(self) -> object:
        """What it says, without layout."""
        return _told(self.node, self.without)

    def _mentions(self) -> Iterator[str]:
        ahead = [self.node]
        while ahead:
            node = ahead.pop()
            if node in self.without or (isinstance(node, ast.Expr) and _is_words(node)):
                continue
            match node:
                case ast.Name(id=name) | ast.Attribute(attr=name):
                    yield name
                case ast.alias(name=name):
                    yield from name.split(".")
                case ast.Constant(value=str(name)) if name.isidentifier():
                    yield name
            ahead += ast.iter_child_nodes(node)


def _parts(node: ast.stmt) -> Iterator[_Part]:
    match node:
        case ast.ClassDef(name=name, body=body):
            shown = frozenset(n for n in body if isinstance(n, ast.FunctionDef) and n.name in PRESENTED)
            yield _Part(node, [name], shown)
            yield from (_Part(one, [one.name]) for one in shown if isinstance(one, ast.FunctionDef))
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield _Part(node, [name])
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            for alias in aliases:
                one = type(node)(**{**vars(node), "names": [alias]})
                yield _Part(one, [alias.asname or alias.name.partition(".")[0]])
        case ast.Assign(targets=targets) if all(isinstance(one, ast.Name) for one in targets):
            yield _Part(node, [one.id for one in targets if isinstance(one, ast.Name)])
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield _Part(node, [name])
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return
        case ast.Expr() if _is_words(node):
            return
        case _:
            yield _Part(node, None)


def _used(parts: Mapping[Path, Sequence[_Part]], entry: Path) -> set[str]:
    """Return the names that the classes of a file use, and what these use."""
    every = [part for own in parts.values() for part in own]
    by_name: dict[str, list[_Part]] = {}
    for part in every:
        for name in part.names or ():
            by_name.setdefault(name, []).append(part)
    ahead = [part for part in every if part.names is None]
    classes = [part for part in parts[entry] if isinstance(part.node, ast.ClassDef)]
    used = {name for part in classes or every for name in part.names or ()}
    ahead += [part for name in used for part in by_name[name]]
    while ahead:
        for name in ahead.pop().mentions:
            if name not in used and name in by_name:
                used.add(name)
                ahead += by_name[name]
    return used


def _digest(parts: Sequence[_Part]) -> str:
    return _sha256([part.told for part in parts])


def _sha256(told: object) -> str:
    return hashlib.sha256(repr(told).encode(errors="surrogatepass")).hexdigest()


def _told(node: object, without: frozenset[ast.AST] = frozenset()) -> object:
    if isinstance(node, ast.AST):
        # What is empty is left out: a later Python has more fields.
        own = ((name, value) for name, value in vars(node).items() if name in node._fields and name != "kind")
        if isinstance(node, ast.Call):
            own = ((name, [k for k in value if not _names(k)] if name == "keywords" else value) for name, value in own)
        told = sorted((name, _told(value, without)) for name, value in own if value not in (None, []))
        return type(node).__name__, *told
    if isinstance(node, list):
        return [_told(one, without) for one in node if one not in without and not _is_words(one)]
    return node


def _names(keyword: ast.keyword) -> bool:
    """Return whether an argument is a text that says what a measure is called or means."""
    text = isinstance(keyword.value, ast.JoinedStr | ast.Constant) and not _is_number(keyword.value)
    return keyword.arg in CALLED and text


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not isinstance(node.value, str)


def _is_words(node: object) -> bool:
    """Return whether a statement is a text alone: the docstring of a module, class, function or field."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
