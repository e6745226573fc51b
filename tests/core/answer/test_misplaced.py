"""What to change where answers stand in the reasoning field."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from prejudge.core.answer.lost import MISPLACED, Lost, misplaced_words
from prejudge.core.engine.integrity.records import IN_REASONING, Finding, Integrity


def scores(count: int) -> Any:
    integrity = Integrity(findings=(Finding(name=IN_REASONING, count=count),))
    return SimpleNamespace(manifest=SimpleNamespace(integrity={"main": integrity}))


def lost(unreadable: int) -> Lost:
    return Lost(SimpleNamespace(name="main"), 60, {"unreadable": unreadable}, "", "", 0, 0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("count", "unreadable", "words"), [(60, 60, MISPLACED), (20, 60, ""), (31, 60, MISPLACED), (60, 0, "")]
)
def test_setting_is_named_where_most_unreadable_answers_stand_there(count, unreadable, words):
    assert misplaced_words(scores(count), [lost(unreadable)]) == words
