"""Passes grow while a meter shows room, shrink when memory runs out, and stay where a user has put them."""

from __future__ import annotations

import pytest

from prejudge.adapters.shared.budget import MOST_GROWTH, Budget


class Device:
    """A device with so much memory, of which a token takes so much; larger passes fail."""

    def __init__(self, memory, each):
        self.memory, self.each, self.used = memory, each, 0

    def start(self):
        self.used = 0
        return self.memory

    def peak(self):
        return self.used

    def run(self, tokens):
        if tokens * self.each > self.memory:
            raise RuntimeError("CUDA out of memory. Tried to allocate much")
        self.used = tokens * self.each
        return tokens


def fill(budget, device, work):
    """Do so many tokens of work in passes as large as the budget; return their sizes, failed ones negative."""
    sizes = []
    while work:
        size = min(work, budget.tokens)
        made = budget.attempt(lambda size=size: device.run(size), lambda size=size: size if size > 1 else 0)
        sizes.append(size if made else -size)
        work -= size if made else 0
    return sizes


def test_passes_grow_to_most_of_the_memory():
    device = Device(memory=10_000, each=1)
    budget = Budget("cpu", 100, meter=device)
    sizes = fill(budget, device, 60_000)
    assert min(sizes) > 0 and max(sizes) == budget.tokens == 6_400
    assert budget.growth == 64


def test_growth_has_an_end():
    device = Device(memory=10**12, each=1)
    budget = Budget("cpu", 10, meter=device)
    fill(budget, device, 10**4)
    assert budget.tokens == 10 * MOST_GROWTH


def test_small_passes_say_nothing_about_large_ones():
    device = Device(memory=10_000, each=1)
    budget = Budget("cpu", 100, meter=device)
    for _ in range(9):
        budget.attempt(lambda: device.run(9), lambda: 9)
    assert budget.tokens == 100


def test_pass_that_does_not_fit_halves_and_is_never_tried_again():
    device = Device(memory=700, each=1)
    budget = Budget("cpu", 1000, meter=device)
    sizes = fill(budget, device, 3000)
    assert sizes[0] == -1000 and min(sizes[1:]) > 0 and sum(sizes[1:]) == 3000
    assert budget.tokens == 500


def test_memory_that_others_take_is_met_by_halves_down_to_one():
    device = Device(memory=1, each=1)
    budget = Budget("cpu", 64, meter=device)
    assert fill(budget, device, 3) == [-3, 1, 1, 1] and budget.tokens == 1
    lone = Budget("cpu", 64, meter=Device(memory=0, each=1))
    assert lone.attempt(lambda: Device(0, 1).run(1), lambda: 0) is None and lone.tokens == 64


def test_what_a_user_has_fixed_does_not_grow_and_still_shrinks():
    device = Device(memory=10_000, each=1)
    budget = Budget("cpu", 100, fixed=50, meter=device)
    fill(budget, device, 1000)
    assert (budget.tokens, budget.growth) == (50, 1)
    device.memory = 30
    fill(budget, device, 100)
    assert budget.tokens == 25


def test_without_a_meter_nothing_grows():
    budget = Budget("cpu", 100)
    assert budget.attempt(lambda: "made", lambda: 100) == "made" and budget.tokens == 100


def test_other_errors_are_not_swallowed():
    def fail():
        raise RuntimeError("shapes do not fit")

    with pytest.raises(RuntimeError, match="shapes"):
        Budget("cpu", 100).attempt(fail, lambda: 9)
