"""The key: equal requests are equal everywhere, unequal ones never meet."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prejudge.core.contracts.adapter import Identity
from prejudge.core.contracts.canonical import (
    decode_request,
    decode_response,
    encode,
    encode_response,
    identity_digest,
    request_key,
)
from prejudge.core.contracts.errors import DataError
from prejudge.core.contracts.records import (
    Draw,
    Generate,
    Generation,
    Image,
    Likelihood,
    Message,
    PseudoLikelihood,
    Sampling,
    Text,
    TokenScores,
)
from prejudge.testing import raises_code

IDENTITY = Identity(adapter="fake", version="1", model="m", settings={"b": 1, "a": "x"})
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


def key(request):
    return request_key(identity_digest(IDENTITY), encode(request))


def test_key_is_pinned():
    # A change here splits every store that exists: raise KEY_VERSION, and say so in the changelog.
    request = PseudoLikelihood(text="I saw a tall woman.", given=((8, 12),))
    assert key(request).hex() == "ca0eedfef52b0ced100b5031ddbab29beb9df8d4d15235eb54c0e8a208b61692"


def test_fields_of_later_versions_are_left_out_of_the_key_until_they_are_set():
    plain = Generate(messages=(Message("user", (Text("q"),)),), sampling=Sampling(temperature=0.5, seed=3))
    text = encode(plain).decode()
    assert not any(name in text for name in ("top_k", "min_p", "json_schema", "choices"))
    assert key(plain).hex() == "0a0728ea882d044ea82f32892af0b735e135a034dfe0e7ce09951d44d8202dd7"
    named = [{"json_schema": '{"type": "object"}'}, {"choices": ("a",)}]
    others = [msgspec.structs.replace(plain, **one) for one in named]
    others += [Generate(messages=plain.messages, sampling=Sampling(temperature=0.5, seed=3, **one)) for one in SAMPLED]
    assert len({key(one) for one in (plain, *others)}) == 5


SAMPLED = ({"top_k": 5}, {"min_p": 0.1})


def test_spelling_of_a_schema_does_not_matter():
    one, other = '{"type": "object", "a": 1}', '{ "a":1,"type":"object"}'
    assert key(Generate(messages=(), json_schema=one)) == key(Generate(messages=(), json_schema=other))


def test_answers_without_a_raw_reply_are_written_as_before():
    assert encode_response(Generation(text="a")).decode() == '{"text":"a","type":"generation"}'


def test_key_is_the_same_in_another_process():
    code = (
        "from prejudge.core.contracts.canonical import *; from prejudge.core.contracts.adapter import Identity;"
        "from prejudge.core.contracts.records import Draw;"
        "i = Identity(adapter='fake', version='1', model='m', settings={'a': 'x', 'b': 1});"
        "print(request_key(identity_digest(i), encode(Draw(prompt='p', guidance=7))).hex())"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert out == key(Draw(prompt="p", guidance=7.0)).hex()


@pytest.mark.parametrize(("one", "other"), [(1, 1.0), (0.0, -0.0), (0.5, 0.50)])
def test_float_spelling_does_not_matter(one, other):
    def ask(t):
        return Generate(messages=(), sampling=Sampling(temperature=t, top_p=t))

    assert key(ask(one)) == key(ask(other))


@given(text, text)
def test_different_texts_have_different_keys(one, other):
    assert (key(PseudoLikelihood(text=one)) == key(PseudoLikelihood(text=other))) == (one == other)


def test_unicode_is_not_normalised():
    assert key(PseudoLikelihood(text="\u00e9")) != key(PseudoLikelihood(text="e\u0301"))


@given(text, st.lists(text, max_size=4))
def test_request_reads_back_as_it_was(prompt, continuations):
    request = Likelihood(
        prompt=(Message("user", (Text(prompt), Image("ab" * 32))),), continuations=tuple(continuations)
    )
    assert decode_request(encode(request)) == request


@pytest.mark.parametrize("field", ["attempt", "text", "variant", "contrast", "contrast_first", "given"])
def test_every_field_changes_the_key(field):
    other = {
        "attempt": 1,
        "text": "b",
        "variant": "within_word_l2r",
        "contrast": "c",
        "contrast_first": True,
        "given": ((0, 1),),
    }
    base = PseudoLikelihood(text="a")
    assert key(base) != key(msgspec.structs.replace(base, **{field: other[field]}))


def test_identity_changes_the_key():
    request = encode(PseudoLikelihood(text="a"))
    other = msgspec.structs.replace(IDENTITY, settings={"b": 2, "a": "x"})
    assert request_key(identity_digest(IDENTITY), request) != request_key(identity_digest(other), request)


def test_lone_surrogate_is_refused():
    with raises_code(DataError, "data.unicode"):
        encode(PseudoLikelihood(text="a\ud800"))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_value_that_is_not_finite_is_refused(value):
    with raises_code(DataError, "data.response"):
        encode_response(TokenScores(log_probability=value, count=1))


@given(text, st.floats(allow_nan=False, allow_infinity=False))
def test_response_reads_back_as_it_was(words, number):
    for response in (Generation(text=words), TokenScores(log_probability=number, count=1, values=(number,))):
        assert decode_response(encode_response(response)) == response


def test_name_of_pinned_files_is_no_part_of_the_key():
    named = [Identity(adapter="a", version="1", model=name, digest="sha256:0", pinned=True) for name in ("a", "b")]
    assert identity_digest(named[0]) == identity_digest(named[1])
    other = msgspec.structs.replace(named[0], digest="sha256:1")
    assert identity_digest(other) != identity_digest(named[0])


def test_name_of_a_model_that_is_not_pinned_is_part_of_the_key():
    """A revision that a user writes, such as `v1`, is that of one name."""
    named = [Identity(adapter="a", version="1", model=name, digest="v1") for name in ("a", "b")]
    assert identity_digest(named[0]) != identity_digest(named[1])
