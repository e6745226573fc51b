"""A group is named among the missing answers only where many of it are missing, and more than elsewhere."""

from __future__ import annotations

import pytest

from prejudge.core.answer.lost import Lost, missing_words


class Choices:
    """A stage that has a name."""

    name = "choices"


def lost(missing, answers, of_level, asked):
    return Lost(Choices(), answers, {"refused": missing} if missing else {}, "order", "second", of_level, asked)


@pytest.mark.parametrize(
    ("missing", "answers", "of_level", "asked", "named"),
    [
        (40, 400, 40, 100, True),
        # As often as elsewhere.
        (160, 400, 40, 100, False),
        # Below a fifth of the group.
        (19, 400, 19, 100, False),
        # Four answers may be chance, unless a fifth of all is missing.
        (4, 400, 4, 4, False),
        (4, 20, 4, 4, True),
        # No factor has levels enough.
        (40, 400, 0, 0, False),
    ],
)
def test_group_that_is_named(missing, answers, of_level, asked, named):
    words = missing_words([lost(missing, answers, of_level, asked)])
    assert words.startswith(f"{missing} of {answers} answers")
    assert ("of order second" in words) is named


def test_nothing_missing():
    assert missing_words([lost(0, 4, 0, 0)]) == "nothing; all 4 answers could be used."
    assert missing_words([lost(0, 1, 0, 0)]) == "nothing; the one answer could be used."
