"""Errors, answers and settings travel between processes unchanged."""

from __future__ import annotations

import copy
import math
import pickle

import msgspec
import pytest

from prejudge.adapters.simulated.adapter import Simulated, SimulatedOptions
from prejudge.core.contracts import errors
from prejudge.core.contracts.errors import PermanentError, PluginError, PrejudgeError, RateLimitError
from prejudge.core.contracts.records import Embedding, Generation
from prejudge.core.workers.serving import Images, make
from prejudge.core.workers.wire import Model, Told, describe, hear, pack_answer, tell, unpack_answer

ARGUMENTS = {
    "UnknownNameError": ("option of subtle", "sampels", ("samples", "seed")),
    "MissingExtraError": ("the adapter hf", "hf"),
    "PluginError": ("acme", "breaks its contract."),
    "ReplayMissError": (3, 20),
}
"""Of errors whose message is made of other arguments; all others take the message."""


def tree(kind=PrejudgeError):
    return [
        kind,
        *(one for below in kind.__subclasses__() if below.__module__ == errors.__name__ for one in tree(below)),
    ]


def state(error):
    return type(error), str(error), error.code, dict(error.fields), error.__dict__


def made(kind):
    error = kind(*ARGUMENTS.get(kind.__name__, ("the text 'ä' is wrong.",)))
    error.code, error.fields = "some.code", {"name": "x", "values": (1, 2.5, None)}
    if isinstance(error, errors.ModelError):
        error.retry_after = 2.5
    return error


def travelled(error):
    return hear(msgspec.msgpack.decode(msgspec.msgpack.encode(tell(error)), type=Told))


@pytest.mark.parametrize(
    "way", [lambda e: pickle.loads(pickle.dumps(e)), copy.copy, travelled], ids="pickle copy wire".split()
)
def test_every_error_of_the_tree_travels(way):
    assert len(tree()) > 15
    for kind in tree():
        assert state(way(made(kind))) == state(made(kind)), kind


def test_a_plugins_own_error_arrives_as_the_nearest_of_the_tree():
    class Busy(RateLimitError):
        code = "acme.busy"

    found = travelled(Busy("wait", retry_after=7.0, model=object))
    assert type(found) is RateLimitError and (found.code, found.retry_after) == ("acme.busy", 7.0)
    assert (
        isinstance(travelled(PluginError("acme", "x")).fields, dict) or not travelled(PluginError("acme", "x")).fields
    )


def test_an_answer_that_cannot_be_stored_is_the_failure_that_it_is_in_one_process():
    assert unpack_answer(pack_answer(Generation(text="é"), "a")) == Generation(text="é")
    for odd, code in ((Embedding(vector=(math.nan,)), "model.response"), ("text", "model.exception")):
        found = unpack_answer(pack_answer(odd, "a"))
        assert isinstance(found, PermanentError) and found.code == code


def test_an_instance_is_made_of_its_settings():
    options = SimulatedOptions(strength=1.5, positive=("kind", "warm"), batch_items=7)
    there = make(Model("prejudge.adapters.simulated.adapter:Simulated", msgspec.msgpack.encode(options)))
    here = Simulated(options)
    assert describe(there) == describe(here) and there.limits.batch_items == 7
    assert "embed" in describe(there).abilities.operations


def test_an_image_travels_once_to_a_worker_while_there_is_room():
    asked, sizes = [], {"a": 6, "b": 5, "c": 4}

    class Driver:
        def need(self, model, service, text):
            asked.append((model, service, text))
            return text.encode() * sizes[text]

    images = Images(most=11)
    assert [images.get(one, Driver(), "m") for one in "aabab"] == [one.encode() * sizes[one] for one in "aabab"]
    assert asked == [("m", "blobs", "a"), ("m", "blobs", "b")]
    assert images.get("c", Driver(), "n") == b"cccc" and images.get("b", Driver(), "m") == b"bbbbb"
    images.get("a", Driver(), "m")
    assert [text for _, _, text in asked] == ["a", "b", "c", "a"], "the one that was not used for longest went"
