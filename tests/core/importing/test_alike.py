"""Where two long cells differ, in a message."""

from __future__ import annotations

from prejudge.core.importing.alike import AROUND, differing

LONG = "".join(chr(97 + number % 26) for number in range(200))


def test_long_cells_are_shown_around_their_first_difference():
    other = LONG[:150] + "#" + LONG[151:]
    told = differing(LONG, other)
    shown = LONG[150 - AROUND : 150 + AROUND]
    assert f"'…{shown}…'" in told and f"'…{shown[:AROUND]}#{shown[AROUND + 1 :]}…'" in told


def test_a_cell_that_the_other_begins_with_is_shown_at_its_end():
    assert f"'…{LONG[150 - AROUND : 150]}'" in differing(LONG, LONG[:150])


def test_short_cells_are_shown_whole():
    assert differing("a", "b") == "'a', and 'b' in the data"
