"""Every error of the package says its code, and docs/errors.md explains each code."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from prejudge.core.contracts import errors

from ...package_parts import PARTS, ROOT

CODE = re.compile(r"[a-z]+(-[a-z]+)*\.[a-z]+(-[a-z]+)*")
ROW = re.compile(r"^\| `([a-z.*-]+)` \| (.*?) \| (.*?) \|$", re.MULTILINE)
CLASSES = {name: kind for name, kind in vars(errors).items() if name.endswith("Error")}
DERIVED = {"UnknownNameError", "MissingExtraError", "ReplayMissError", "BudgetError", "FilteredError", "PendingError"}
"""Classes with one meaning, whose code is their own."""


@cache
def nodes() -> list[tuple[str, ast.AST]]:
    """Return the parts of the package's modules that may hold a code, with the path of each."""
    paths = [path for folder in PARTS for path in sorted((ROOT / folder).rglob("*.py"))]
    kinds = (ast.Call, ast.keyword, ast.Assign, ast.Constant)
    return [
        (path.relative_to(ROOT).as_posix(), node)
        for path in paths
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, kinds)
    ]


def called(node: ast.Call) -> str:
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def texts(node: ast.AST) -> set[str]:
    """Return the texts of an expression, not those inside an f-string."""
    parts = (node.body, node.orelse) if isinstance(node, ast.IfExp) else (node,)
    return {part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)}


@cache
def stated() -> dict[str, str]:
    """Each code that the package states, and one place of it."""
    found: dict[str, str] = {}
    for path, node in nodes():
        places: list[ast.AST] = []
        if isinstance(node, ast.keyword) and node.arg == "code":
            places = [node.value]
        elif isinstance(node, ast.Call) and called(node) == "fault":
            places = [node.args[-1]]
        elif isinstance(node, ast.Assign) and any(getattr(target, "id", "") == "code" for target in node.targets):
            places = [node.value]
        codes = {text for place in places for text in texts(place) if "." in text and " " not in text}
        found |= dict.fromkeys(codes, f"{path}:{getattr(node, 'lineno', '')}")
    return found


def documented() -> dict[str, tuple[str, str]]:
    rows = ROW.findall((ROOT / "docs/errors.md").read_text(encoding="utf-8"))
    assert len(rows) == len({code for code, *_ in rows})
    return {code: (meaning, mend) for code, meaning, mend in rows}


def test_every_error_says_its_code() -> None:
    without = [
        f"{path}:{node.lineno}"
        for path, node in nodes()
        if isinstance(node, ast.Call) and called(node) in CLASSES.keys() - DERIVED
        # pytest has a class of one of these names.
        if ast.unparse(node.func) != "pytest.UsageError"
        if not any(keyword.arg == "code" for keyword in node.keywords)
    ]
    assert without == []


def test_every_code_is_well_formed() -> None:
    assert {code: place for code, place in stated().items() if not CODE.fullmatch(code)} == {}
    assert len(stated()) > 150


def test_every_code_is_documented() -> None:
    assert {code: place for code, place in stated().items() if code not in documented()} == {}


def test_every_documented_code_is_used() -> None:
    words = {text for _, node in nodes() for text in texts(node)}
    own = {CLASSES[name].code for name in DERIVED & CLASSES.keys()}
    assert [code for code in documented() if code not in words | own | {"unknown-*"}] == []


def test_every_code_has_meaning_and_mend() -> None:
    assert [code for code, row in documented().items() if not all(row)] == []


@pytest.mark.parametrize("kind", CLASSES.values(), ids=CLASSES)
def test_code_of_a_class_is_in_the_page(kind: type[errors.PrejudgeError]) -> None:
    page = (ROOT / "docs/errors.md").read_text(encoding="utf-8")
    abstract = kind in (errors.PrejudgeError, errors.UnknownNameError)
    assert abstract or f"`{kind.code}`" in page
