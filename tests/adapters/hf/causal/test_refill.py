"""Answers that join a batch in its midst are those they would be alone, whatever leaves and when memory runs out."""

from __future__ import annotations

import random

import pytest

from prejudge.adapters.hf.causal.decoder import Decoder, Task
from prejudge.adapters.hf.causal.model import Head, load_causal
from prejudge.adapters.hf.files import find_source
from prejudge.adapters.hf.loading import Loading
from prejudge.adapters.shared.budget import Budget
from prejudge.adapters.shared.sampling import Choice

from ...shared.test_budget import Device

FAMILIES = {"llama": {}, "gpt2": {"n_positions": 160}, "opt": {"word_embed_proj_dim": 64, "ffn_dim": 96}}


@pytest.fixture(scope="module")
def loaded(make_causal):
    on_cpu = Loading(device="cpu")
    made = {name: load_causal(find_source(str(make_causal(name, **more))), on_cpu) for name, more in FAMILIES.items()}
    return made.__getitem__


def tasks(count=40):
    draw = random.Random(5)
    return [
        Task(
            tuple(draw.choices(range(9, 90), k=draw.randint(1, 14))),
            Choice(number, draw.choice((0.0, 1.0, 2.0))),
            draw.choice((1, 2, 3, 5, 30)),
            top=draw.choice((0, 2)),
        )
        for number in range(count)
    ]


def watch(monkeypatch, most_rows=None):
    """Note the rows of each pass; pretend that more do not fit into memory."""
    rows, run = [], Head.run

    def noted(self, ids, *arguments, **more):
        if most_rows is not None and ids.shape[0] > most_rows:
            raise RuntimeError("CUDA out of memory")
        rows.append(ids.shape[0])
        return run(self, ids, *arguments, **more)

    monkeypatch.setattr(Head, "run", noted)
    return rows


@pytest.mark.parametrize("family", FAMILIES)
def test_answers_are_those_of_tasks_alone(family, loaded):
    head, asked = loaded(family).head, tasks()
    decoder = Decoder(head, frozenset({2}), 200)
    assert decoder.refills
    for task, written in zip(asked, decoder.write(asked), strict=True):
        (alone,) = Decoder(head, frozenset({2})).write([task])
        assert (written.ids, written.reason) == (alone.ids, alone.reason)
        for mine, theirs in zip(written.tops, alone.tops, strict=True):
            assert [value for _, value in mine] == pytest.approx([value for _, value in theirs], abs=1e-4)


def test_free_places_are_taken_by_the_next(loaded, monkeypatch):
    head, asked = loaded("llama").head, tasks()
    fast, slow = Decoder(head, frozenset(), 200), Decoder(head, frozenset(), 200)
    slow.refills = False
    rows = watch(monkeypatch)
    told = [written.ids for written in fast.write(asked)]
    with_refill = len(rows)
    assert told == [written.ids for written in slow.write(asked)]
    assert with_refill < 0.9 * (len(rows) - with_refill)


def test_finished_answers_survive_a_lack_of_memory(loaded, monkeypatch):
    head, asked = loaded("llama").head, tasks()
    expected = [written.ids for written in Decoder(head, frozenset({2})).write(asked)]
    decoder = Decoder(head, frozenset({2}), 400)
    rows = watch(monkeypatch, most_rows=5)
    assert [written.ids for written in decoder.write(asked)] == expected
    assert max(rows) <= 5 and decoder.budget.tokens < 400


def test_task_that_never_fits_is_lost_alone(loaded, monkeypatch):
    head = loaded("llama").head
    run = Head.run
    decoder = Decoder(head, frozenset())

    def small(self, ids, *arguments, **more):
        if ids.shape[1] > 20:
            raise RuntimeError("CUDA out of memory")
        return run(self, ids, *arguments, **more)

    monkeypatch.setattr(Head, "run", small)
    long = Task(tuple(range(9, 39)), Choice(1, 0.0), 3)
    found = decoder.write([long, *tasks(6)])
    assert found[0] is None and all(written is not None and written.reason for written in found[1:])


def test_batches_grow_by_the_meter_and_answers_stay(loaded, monkeypatch):
    head, asked = loaded("llama").head, tasks(120)
    expected = [written.ids for written in Decoder(head, frozenset({2})).write(asked)]
    decoder = Decoder(head, frozenset({2}))
    decoder.budget = Budget("cpu", 60, meter=Device(memory=10**6, each=0))
    parts = [asked[first : first + 30] for first in range(0, 120, 30)]
    assert [written.ids for part in parts for written in decoder.write(part)] == expected
    assert decoder.budget.growth > 1


def test_model_with_a_window_is_not_refilled(make_causal):
    folder = make_causal("mistral", sliding_window=8, num_key_value_heads=2)
    decoder = Decoder(load_causal(find_source(str(folder)), Loading(device="cpu")).head, frozenset())
    assert not decoder.refills
