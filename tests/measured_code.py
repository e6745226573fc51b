"""Sizes and names of the package's code, as the budgets of `budgets.toml` count them."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TOPS = ("adapters", "core", "metrics", "probes", "testing", "tools")
MOST_LINES_OF_A_FILE, MOST_LINES_OF_A_FUNCTION, MOST_PARAMETERS = 400, 60, 5
VAGUE = frozenset(
    "alike apart found given held here kept known made one own rest said there told whole".split(),
)
"""Names of local variables that do not say what the thing is."""
Functions = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def modules() -> dict[str, str]:
    """Return the text of each module of the package by its path."""
    paths = sorted(path for top in TOPS for path in (ROOT / top).rglob("*.py"))
    return {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in paths}


def room_of(path: str) -> str:
    """Return the room of a module: a folder of `core`, or the top folder."""
    top, *inside = path.split("/")
    return f"core/{inside[0]}" if top == "core" and len(inside) > 1 else top


def lines_of_rooms() -> dict[str, int]:
    """Return the lines of Python by room."""
    counts: Counter[str] = Counter()
    for path, text in modules().items():
        counts[room_of(path)] += text.count("\n")
    return dict(sorted(counts.items()))


def vague_names_of_rooms() -> dict[str, int]:
    """Return by room how many vague names are local variables of a function, each counted once per function."""
    counts: Counter[str] = Counter({room: 0 for room in lines_of_rooms()})
    for path, _, function in functions():
        assigned = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and _is_stored(node)}
        counts[room_of(path)] += len(assigned & VAGUE)
    return dict(sorted(counts.items()))


def functions_of_rooms() -> dict[str, int]:
    """Return the number of functions by room."""
    return dict(sorted(Counter(room_of(path) for path, _, _ in functions()).items()))


def long_files() -> dict[str, int]:
    """Return the lines of each module that is too long."""
    sizes = {path: text.count("\n") for path, text in modules().items()}
    return {path: size for path, size in sizes.items() if size > MOST_LINES_OF_A_FILE}


def long_functions() -> dict[str, int]:
    """Return the lines of each function that is too long, by `module::function`, its docstring not counted."""
    sizes = {f"{path}::{name}": _body_lines(function) for path, name, function in functions()}
    return {name: size for name, size in sizes.items() if size > MOST_LINES_OF_A_FUNCTION}


def many_parameters() -> dict[str, int]:
    """Return the number of parameters of each function that has too many, `self` and `cls` not counted."""
    counts = {f"{path}::{name}": _parameters(function) for path, name, function in functions()}
    return {name: count for name, count in counts.items() if count > MOST_PARAMETERS}


@cache
def functions() -> tuple[tuple[str, str, Functions], ...]:
    """Return every function with the path of its module and its qualified name."""
    return tuple((path, name, node) for path, text in modules().items() for name, node in _within(ast.parse(text), ""))


def _within(tree: ast.AST, prefix: str) -> Iterator[tuple[str, Functions]]:
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
            continue  # an expression holds no function that has a name
        named = isinstance(node, Functions | ast.ClassDef)
        name = f"{prefix}{node.name}" if named else prefix  # type: ignore[attr-defined]
        if isinstance(node, Functions):
            yield name, node
        yield from _within(node, f"{name}." if named else prefix)


def _is_stored(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


def _body_lines(function: Functions) -> int:
    """Return the lines of a function without its docstring: documentation is no complexity."""
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    first = function.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        lines -= (first.end_lineno or first.lineno) - first.lineno + 1
    return lines


def _parameters(function: Functions) -> int:
    arguments = function.args
    every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    return sum(argument.arg not in ("self", "cls") for argument in every)
