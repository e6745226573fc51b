"""Whatever is asked or answered is read back from the store as it was, or refused alone and clearly."""

from __future__ import annotations

import json
from uuid import uuid4

import msgspec
import polars as pl
import pytest
from fakes import FakeModel, ask, text_of
from hypothesis import example, given, settings
from hypothesis import strategies as st
from strategies import any_text, is_sound, requests, responses, sound_text

from prejudge.core.contracts import Trial
from prejudge.core.contracts.abilities import OPERATIONS
from prejudge.core.contracts.adapter import Identity
from prejudge.core.contracts.canonical import (
    decode_request,
    decode_response,
    encode,
    encode_response,
    identity_digest,
    question_of,
    request_key,
)
from prejudge.core.contracts.errors import DataError, PermanentError
from prejudge.core.contracts.records import (
    Draw,
    Generate,
    Generation,
    Likelihood,
    Likelihoods,
    Sampling,
    TokenScores,
    TopToken,
    Usage,
)
from prejudge.core.scoring.score import score
from prejudge.core.store import Failure, NewExchange, NewTrial, get_run, read_failures, read_trials
from prejudge.core.store.checks import Checks
from prejudge.core.store.trials import question_texts
from prejudge.testing import raises_code

EVERY_STORE = True
IDENTITY = Identity(adapter="fake", version="1", model="m")


def exchange(store, request, response):
    encoded = encode(request)
    usage = response.usage
    return NewExchange(
        key=request_key(identity_digest(IDENTITY), encoded),
        model_id=store.ensure_model(IDENTITY),
        operation=OPERATIONS[type(request)],
        request=encoded,
        response=encode_response(response),
        status=response.status,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        latency=0.0,
    )


def kept(store, pairs):
    """Store pairs of request and response in one batch, and return what reads back, the latest of each request."""
    rows = [exchange(store, request, response) for request, response in pairs]
    found = store.add_exchanges(list({row.key: row for row in rows}.values()), anew={row.key: "" for row in rows})
    read = {number: (q, r) for number, q, r in store.exchanges(f.exchange_id for f in found.values())}
    return [read[found[row.key].exchange_id] for row in rows]


members = st.sampled_from([',"sample":1', '{"seed":2,', '"attempt":3', ',"sampling":{}', '\\,"seed":1', ","])


@settings(max_examples=300)
@given(requests(sound_text | st.lists(members, max_size=3).map("".join)))
@example(Generate(messages=(), sampling=Sampling(seed=3), sample=2, attempt=1))
@example(Draw(prompt="a,", seed=-4))
def test_question_of_an_encoded_request_needs_no_decoding(request):
    frame = pl.DataFrame({"request": [encode(request).decode()]}).select(question_texts(pl.col("request")))
    assert frame.item().encode() == encode(question_of(request))


@settings(max_examples=40)
@given(pairs=st.lists(st.tuples(requests(sound_text), responses(sound_text)), min_size=1, max_size=8))
def test_exchange_reads_back_as_it_was(store, pairs):
    last = {encode(request): response for request, response in pairs}
    for (request, _), (asked, said) in zip(pairs, kept(store, pairs), strict=True):
        assert asked.encode() == encode(request) and decode_request(asked) == request
        assert said.encode() == encode_response(last[encode(request)])
        assert decode_response(said) == last[encode(request)]
    assert list(Checks(store).problems()) == []


def test_large_exchange_reads_back_as_it_was(store):
    pieces = ["a", '"', "\\", "\0", "é", "\u2028", "\U0001f600", " "]
    prompt = "".join(pieces[i * 31 % 8] for i in range(1_000_000))
    continuations = tuple(f"{i} {pieces[i % 8]}" for i in range(10_000))
    scores = tuple(TokenScores(log_probability=-i / 3, count=1, values=(-i / 3,)) for i in range(10_000))
    many = Likelihood(prompt="p", continuations=continuations)
    pairs = [
        (Likelihood(prompt=prompt, continuations=("a",)), Likelihoods(scores=scores[:1])),
        (Likelihood(prompt=prompt, continuations=("b",)), Likelihoods(scores=scores[:1])),
        (many, Likelihoods(scores=scores)),
        (ask("q"), Generation(text=prompt)),
    ]
    for (request, response), (asked, said) in zip(pairs, kept(store, pairs), strict=True):
        assert decode_request(asked) == request and decode_response(said) == response
    assert list(Checks(store).problems()) == []


@given(responses(any_text, st.floats(), st.integers()))
@example(Generation(text="\ud800"))
@example(Generation(text="a", usage=Usage(input_tokens=2**70)))
def test_response_is_stored_exactly_or_refused(response):
    try:
        encoded = encode_response(response)
    except DataError as error:
        assert error.code == "data.response" and len(str(error)) < 1000
    else:
        assert decode_response(encoded) == response
        assert max(response.usage.input_tokens, response.usage.output_tokens) < 2**31


@settings(max_examples=30)
@given(messages=st.lists(any_text, min_size=1, max_size=5))
@example(messages=["a\0b\ud800c"])
def test_message_of_a_failure_is_kept(store, messages):
    run = store.begin_run(uuid4().hex, "s", b"{}")
    store.add_failures(run, [Failure(bytes([i]) * 32, "permanent", text) for i, text in enumerate(messages)])
    failures = read_failures(store, run)
    for i, text in enumerate(messages):
        if is_sound(text) and "\0" not in text:
            assert failures[bytes([i]) * 32] == text


NAN, INFINITE = float("nan"), float("inf")
ANSWERS = {
    "q 0": Generation(text="\0 and \x01"),
    "q 1": Generation(text="\ud800 alone"),
    "q 2": Generation(text="x" * 1_000_000),
    "q 3": Generation(text="a", top_logprobs=((TopToken("a", NAN),),)),
    "q 4": Generation(text="a", top_logprobs=((TopToken("a", -INFINITE),),)),
    "q 5": Generation(text="e\u0301 \u00e9 \u2028 \ufeff"),
    "q 6": Generation(text="a", usage=Usage(output_tokens=2**40)),
    "q 7": PermanentError("the server said \0 \udcff \u2028"),
    "q 8": Generation(text="'; DROP TABLE exchange; -- %s %(key)s {0}"),
    "q 9": Generation(text="a", top_logprobs=((TopToken("\0", -0.0),),)),
}
BAD = {"q 1": "lone surrogate", "q 3": "is nan", "q 4": "is -inf", "q 6": "tokens", "q 7": "the server said"}


@pytest.mark.parametrize("batch", [1, 4])
def test_bad_answer_fails_alone(run_study, catalogue, store, batch):
    FakeModel.script = lambda request, seen: ANSWERS[text_of(request)]
    catalogue.registry.models["fake"].settings["batch"] = batch
    name, model = run_study(n=10)
    assert sorted(model.asked) == sorted(ANSWERS)
    run = get_run(store, name)
    trials, failures = read_trials(store, run.id, "count"), read_failures(store, run.id)
    for i, (question, answer) in enumerate(ANSWERS.items()):
        trial = trials.row(i, named=True)
        if question in BAD:
            assert trial["status"] is None and BAD[question] in failures[trial["key"]]
        else:
            assert trial["status"] == "ok" and decode_response(trial["response"]) == answer
    statuses = score(catalogue, store, name).last["status"].to_list()
    assert statuses == ["failed" if question in BAD else "ok" for question in ANSWERS]


@pytest.mark.parametrize(
    ("change", "code", "named"),
    [
        (lambda trial: msgspec.structs.replace(trial, request=ask("\udc80")), "data.unicode", ""),
        (
            lambda trial: msgspec.structs.replace(trial, factors={"number": NAN, "parity": "odd"}),
            "data.not-finite",
            "number",
        ),
        (lambda trial: msgspec.structs.replace(trial, id="t\ud800"), "store.value", ""),
    ],
)
def test_bad_trial_stops_the_run_with_one_clear_error(run_study, store, monkeypatch, change, code, named):
    made = FakeModelTrials(change)
    monkeypatch.setattr("fakes.CountStage.trials", made.trials)
    with raises_code(DataError, code, named):
        run_study(n=3)
    assert json.loads(get_run(store, "latest").manifest)["run"] and get_run(store, "latest").state == "failed"


class FakeModelTrials:
    """Three trials, the second of them changed."""

    def __init__(self, change):
        self._change = change

    def trials(self, earlier):
        for i in range(3):
            trial = Trial(f"t{i}", {"number": i, "parity": "odd"}, ask(f"q {i}"))
            yield self._change(trial) if i == 1 else trial


@settings(max_examples=25)
@given(factors=st.lists(st.dictionaries(st.sampled_from("abc"), st.none() | sound_text | st.booleans()), max_size=5))
def test_factors_read_back_as_they_were(store, factors):
    run = store.begin_run(uuid4().hex, "s", b"{}")
    store.add_trials([NewTrial(run, "s", i, "t", encode(c).decode(), b"k", None) for i, c in enumerate(factors)])
    read = read_trials(store, run, "s")["factors"].to_list()
    assert [json.loads(text) for text in read] == factors
