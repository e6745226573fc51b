"""What a stage author sees, and that what a large or matched stage overrides is used."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator

import pytest

from prejudge.core.contracts import LargeStage, Stage, StageRules, Trial
from prejudge.core.contracts.abilities import Need
from prejudge.core.contracts.adapter import ModelAdapter
from prejudge.core.contracts.probe import count_trials, example_trials, stage_need
from prejudge.core.contracts.records import Embed

MOST = {ModelAdapter: 13, Stage: 14}
"""Members that an author sees."""


class Words(Stage):
    operation = Embed
    factors, outcomes = ("word",), ("vector",)

    def trials(self, earlier) -> Iterator[Trial]:
        return (Trial(word, {"word": word}, Embed(text=word)) for word in ("a", "b", "c"))

    def read(self, factors, response):
        return {}


class ManyWords(Words, LargeStage):
    def count(self, earlier):
        return 3_000

    def alike(self, earlier):
        (first, *_) = self.trials(earlier)
        yield first, 3_000


def members_of(kind: type) -> dict[str, str]:
    """Return the docstring of each public member in the body of a class; empty where it has none."""
    (tree,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(tree, ast.ClassDef)
    members = {}
    for node, following in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            members[node.name] = ast.get_docstring(node) or ""
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            members[node.target.id] = _text(following)
    return {name: sentence for name, sentence in members.items() if not name.startswith("_")}


def _text(node: ast.stmt | None) -> str:
    value = node.value if isinstance(node, ast.Expr) else None
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


@pytest.mark.parametrize("base", MOST)
def test_authors_see_few_members_each_with_a_sentence(base):
    sentences = members_of(base)
    assert len(sentences) <= MOST[base]
    assert all(sentences.values()), [name for name, sentence in sentences.items() if not sentence]
    assert {name for name in dir(base) if not name.startswith("_")} <= sentences.keys()


def test_trials_are_counted_one_by_one_unless_the_stage_counts_faster():
    assert count_trials(Words(), {}) == 3 and [times for _, times in example_trials(Words(), {})] == [1, 1, 1]
    assert count_trials(ManyWords(), {}) == 3_000 and [times for _, times in example_trials(ManyWords(), {})] == [3_000]


def test_need_of_a_stage_has_its_operation_and_images(monkeypatch):
    assert stage_need(Words()) == Need(operation="embed")
    monkeypatch.setattr(Words, "rules", StageRules(images=True))
    assert stage_need(Words()) == Need(operation="embed", images=True)
