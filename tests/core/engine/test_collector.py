"""A run exempts the program from garbage collection, and gives it back."""

from __future__ import annotations

import gc

import pytest

from prejudge.core.engine.runs import spared


@pytest.fixture(autouse=True)
def nothing_exempt():
    """The tests exempt what was imported, too."""
    gc.unfreeze()
    yield
    gc.freeze()


def test_program_is_exempt_and_given_back():
    with spared():
        assert gc.get_freeze_count() > 0
    assert gc.get_freeze_count() == 0


def test_program_is_given_back_after_an_error():
    with pytest.raises(ValueError), spared():
        raise ValueError
    assert gc.get_freeze_count() == 0


def test_objects_that_a_host_has_exempted_stay_exempt():
    gc.freeze()
    with spared():
        pass
    assert gc.get_freeze_count() > 0
