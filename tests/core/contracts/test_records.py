"""What a request says of itself."""

from __future__ import annotations

import pytest

from prejudge.core.contracts.records import Generate, Message, Sampling, Text

MESSAGES = (Message("user", (Text("Who?"),)),)
RARE = {
    "top_k": {"sampling": Sampling(temperature=1.0, top_k=0)},
    "min_p": {"sampling": Sampling(temperature=1.0, min_p=0.0)},
    "json_schema": {"json_schema": '{"type": "object"}'},
    "choices": {"choices": ("yes", "no")},
}


@pytest.mark.parametrize("name", RARE)
def test_what_not_every_model_can_do_is_named_also_where_it_is_zero(name):
    assert Generate(messages=MESSAGES, **RARE[name]).beyond() == {name}


def test_plain_requests_ask_nothing_that_only_some_models_can_do():
    assert Generate(messages=MESSAGES, sampling=Sampling(temperature=1.0)).beyond() == frozenset()
    every = {"json_schema": "{}", "choices": ("a",), "sampling": Sampling(temperature=1.0, top_k=5, min_p=0.1)}
    assert Generate(messages=MESSAGES, **every).beyond() == set(RARE)


def test_equal_requests_are_equal_however_they_were_written():
    """Plain sampling that is set by hand is the default, and a schema is its content."""
    plain = Generate(messages=MESSAGES)
    assert Generate(messages=MESSAGES, sampling=Sampling()).sampling is plain.sampling
    other = Sampling(temperature=0.5)
    assert Generate(messages=MESSAGES, sampling=other).sampling is other
    one, same = (Generate(messages=MESSAGES, json_schema=text) for text in ('{"a":1,"b":2}', '{ "b": 2, "a": 1 }'))
    assert one == same and one.json_schema == '{"a":1,"b":2}'
