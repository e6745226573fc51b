"""Keys under fuzz: equal requests have equal keys in every process, unequal ones never."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import unicodedata

import msgspec
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from strategies import any_text, is_sound, kinds_of_request, requests, sound_float, sound_text

from prejudge.core.contracts.adapter import Identity
from prejudge.core.contracts.canonical import decode_request, encode, identity_digest, request_key
from prejudge.core.contracts.errors import DataError
from prejudge.core.contracts.records import AnyRequest, Draw, Generate, Likelihood, PseudoLikelihood, Sampling
from prejudge.testing import raises_code

MODEL = identity_digest(Identity(adapter="fake", version="1", model="m"))
any_float = st.floats()


def key(request):
    return request_key(MODEL, encode(request))


def made_again(request):
    """Return a request that equals another and shares no object with it."""
    fields = json.loads(json.dumps(msgspec.to_builtins(request)))
    return msgspec.convert(fields, AnyRequest, strict=False)


@given(requests(sound_text))
@example(Draw(prompt="a", width=512, height=512))
@example(Generate(messages=(), sampling=Sampling()))
def test_equal_requests_have_equal_keys(request):
    again = made_again(request)
    assert again == request and key(again) == key(request)
    assert key(decode_request(encode(request))) == key(request)


@given(requests(sound_text), requests(sound_text))
def test_keys_are_equal_only_if_requests_are(one, other):
    assert (key(one) == key(other)) == (type(one) is type(other) and one == other)


@given(st.sampled_from(kinds_of_request(sound_text)).flatmap(lambda kind: st.tuples(kind, kind)), st.data())
def test_every_field_counts(pair, data):
    request, other = pair
    name = data.draw(st.sampled_from(request.__struct_fields__))
    changed = msgspec.structs.replace(request, **{name: getattr(other, name)})
    assert (key(changed) == key(request)) == (changed == request)


@given(requests(any_text, any_float))
def test_request_reads_back_or_is_refused(request):
    try:
        encoded = encode(request)
    except DataError as error:
        assert error.code in ("data.unicode", "data.not-finite")
    else:
        assert decode_request(encoded) == request


@given(any_text)
def test_only_lone_surrogates_are_refused(text):
    try:
        encode(PseudoLikelihood(text=text))
        refused = False
    except DataError:
        refused = True
    assert refused != is_sound(text)


@given(sound_text)
@example("e\u0301")
@example("\u212b")
def test_normal_forms_are_different_texts(text):
    forms = {unicodedata.normalize(form, text) for form in ("NFC", "NFD", "NFKC", "NFKD")} | {text}
    assert len({key(PseudoLikelihood(text=form)) for form in forms}) == len(forms)


@given(st.lists(sound_text, min_size=2, max_size=4), st.randoms(use_true_random=False))
def test_order_of_continuations_counts(texts, chance):
    shuffled = chance.sample(texts, len(texts))
    assume(shuffled != texts)
    assert key(Likelihood(prompt="", continuations=tuple(texts))) != key(
        Likelihood(prompt="", continuations=tuple(shuffled))
    )


@given(st.lists(sound_text, min_size=2, max_size=3), st.data())
def test_boundaries_between_texts_count(texts, data):
    joined = "".join(texts)
    cut = data.draw(st.integers(0, len(joined)))
    other = (joined[:cut], joined[cut:])
    assume(other != tuple(texts))
    assert key(Likelihood(prompt="", continuations=other)) != key(Likelihood(prompt="", continuations=tuple(texts)))


@given(sound_float)
def test_spelling_of_a_float_does_not_count(number):
    spellings = {repr(number), f"{number:.17e}", f"{number:.17E}".replace("E+", "E"), json.dumps(number)}
    written = '{"type":"generate","messages":[],"sampling":{"temperature":%s}}'
    assert len({key(decode_request(written % spelling)) for spelling in spellings}) == 1


def test_spellings_of_one_do_not_count():
    written = '{"messages":[],"sampling":{"temperature":%s},"type":"generate"}'
    assert len({key(decode_request(written % one)) for one in ("1", "1.0", "1e0", "1.00", "10e-1", "0.1E1")}) == 1
    assert len({key(decode_request(written % nought)) for nought in ("0", "-0", "0.0", "-0.0", "0e9")}) == 1


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_number_that_is_not_finite_has_no_key(number):
    with raises_code(DataError, "data.not-finite", "sampling.temperature", "JSON"):
        encode(Generate(messages=(), sampling=Sampling(temperature=number)))
    with raises_code(DataError, "data.not-finite", "settings.x"):
        identity_digest(Identity(adapter="a", version="1", model="m", settings={"x": number, "y": None}))


@given(st.dictionaries(sound_text, st.none() | st.booleans() | st.integers() | sound_float | sound_text, max_size=6))
def test_order_of_settings_does_not_count(settings):
    turned = dict(reversed(settings.items()))
    one, other = (Identity(adapter="a", version="1", model="m", settings=s) for s in (settings, turned))
    assert identity_digest(one) == identity_digest(other)


def test_keys_are_the_same_in_every_process():
    chance = random.Random(9)
    letters = ["a", '"', "\\", "\0", "é", "e\u0301", "\u2028", "\U0001f600", "<", "\x7f"]
    texts = ["".join(chance.choices(letters, k=chance.randint(0, 9))) for _ in range(200)]
    many = [Likelihood(prompt=text, continuations=tuple(texts[:3])) for text in texts]
    many += [Draw(prompt=text, guidance=chance.random() * 10, seed=chance.getrandbits(40)) for text in texts]
    code = (
        "import sys, json; from prejudge.core.contracts.canonical import *\n"
        "from prejudge.core.contracts.adapter import Identity\n"
        "model = identity_digest(Identity(adapter='fake', version='1', model='m'))\n"
        "print([request_key(model, encode(decode_request(line))).hex() for line in sys.stdin.buffer])"
    )
    lines = b"\n".join(json.dumps(msgspec.to_builtins(request)).encode() for request in many)
    wanted = str([key(request).hex() for request in many])
    for seed in ("0", "1", "4711"):
        environment = os.environ | {"PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", code], input=lines, capture_output=True, env=environment, check=True
        )
        assert done.stdout.decode().strip() == wanted, seed
