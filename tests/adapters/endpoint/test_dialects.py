"""Every dialect, on replies as its provider documents them: answers, refusals, filters, reasoning, limits, errors."""

from __future__ import annotations

import base64
import hashlib
import json

import pytest

from prejudge.core.catalogue.plugins import load_target
from prejudge.core.catalogue.trust import built_in_registry
from prejudge.core.contracts.errors import (
    AuthenticationError,
    ModelError,
    PermanentError,
    RateLimitError,
    TransientError,
)
from prejudge.core.contracts.records import Generate, Generation, Image, Message, Sampling, Text, Usage
from prejudge.core.engine.reading import as_read
from prejudge.testing import Reply
from prejudge.testing.chaos.tiny import picture

from .documented import PROVIDERS, THOUGHT, Provider, anthropic_error, google_error, told

QUESTION = Generate(messages=(Message("system", (Text("Be brief."),)), Message("user", (Text("Who?"),))))


def question(**sampling: object) -> Generate:
    return Generate(messages=QUESTION.messages, sampling=Sampling(**sampling))


@pytest.fixture(params=PROVIDERS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def provider(name: str) -> Provider:
    return PROVIDERS[name]


def test_question_arrives_whole_and_the_answer_is_read(ask, server, name, provider, key):
    server.plan = [told(provider.answer("Nobody."))]
    (answer,) = ask(name, QUESTION)
    assert (answer.text, answer.status, answer.finish_reason, answer.reply) == ("Nobody.", "ok", provider.whole, "")
    seen = server.seen[0]
    assert seen.path == provider.path and provider.texts(seen.body) == ("Be brief.", "Who?")
    assert seen.headers[provider.header].removeprefix("Bearer ") == key


def test_tokens_are_counted_alike(ask, server, name, provider):
    server.plan = [told(provider.answer("Nobody."))]
    (answer,) = ask(name, QUESTION)
    reasoning = 0 if name == "bedrock" else 6  # Converse does not tell
    assert answer.usage == Usage(input_tokens=20, output_tokens=9, reasoning_tokens=reasoning, cached_tokens=4)


def test_reasoning_is_kept_apart(ask, server, name, provider):
    server.plan = [told(provider.answer("Nobody.", thought=THOUGHT))]
    (answer,) = ask(name, QUESTION)
    assert (answer.text, answer.reasoning) == ("Nobody.", THOUGHT)


def test_truncated_answer_says_so(ask, server, name, provider):
    server.plan = [told(provider.answer("Nob", provider.cut)), told(provider.answer(None, provider.cut, THOUGHT))]
    first, second = (ask(name, QUESTION)[0] for _ in range(2))
    assert (first.text, first.finish_reason) == ("Nob", provider.cut)
    assert (second.text, second.reasoning, second.status) == ("", THOUGHT, "ok")


def test_refusal_that_is_marked_has_its_status_and_its_raw_reply(ask, server, name, provider):
    if provider.refusal is None:
        pytest.skip("this dialect marks no refusal")
    server.plan = [told(provider.refusal)]
    (answer,) = ask(name, QUESTION)
    assert (answer.status, answer.text, answer.finish_reason) == ("refused", "I will not.", "refusal")
    assert json.loads(answer.reply) == provider.refusal


def test_refusal_in_words_is_stored_as_received_and_found_when_read(ask, server, name, provider):
    server.plan = [told(provider.answer("I'm sorry, but I can't help with that."))]
    (answer,) = ask(name, QUESTION)
    assert (answer.status, as_read(answer).status) == ("ok", "refused")


def test_filter_during_the_answer_keeps_its_own_word(ask, server, name, provider):
    server.plan = [told(provider.answer(None, provider.during))]
    (answer,) = ask(name, QUESTION)
    assert answer.status == ("refused" if name == "anthropic" else "filtered")
    assert answer.finish_reason == provider.during and answer.reply


def test_filter_before_the_answer_keeps_its_own_word(ask, server, name, provider):
    server.plan = [provider.before]
    (answer,) = ask(name, QUESTION)
    assert isinstance(answer, Generation)
    assert (answer.status, answer.finish_reason) == ("filtered", provider.before_finish)
    assert json.loads(answer.reply) == json.loads(provider.before.raw)


@pytest.mark.parametrize(
    ("word", "status"),
    [
        *((word, "filtered") for word in ("RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY")),
        *((word, "ok") for word in ("OTHER", "LANGUAGE", "A_NEW_WORD")),
    ],
)
def test_every_word_of_gemini_stays_its_own(ask, server, word, status):
    server.plan = [told(PROVIDERS["gemini"].answer("Part", word))]
    (answer,) = ask("gemini", QUESTION)
    assert (answer.finish_reason, answer.status) == (word, status) and answer.reply


@pytest.mark.parametrize(
    ("keep", "kept"), [("none", (False, False)), ("unusual", (False, True)), ("all", (True, True))]
)
def test_raw_replies_are_kept_as_the_setting_says(ask, server, name, provider, keep, kept):
    server.plan = [told(provider.answer("A.")), told(provider.answer("A." + "x" * 40_000, "a-new-word"))]
    answers = [ask(name, QUESTION, keep_replies=keep)[0] for _ in range(2)]
    assert tuple(bool(answer.reply) for answer in answers) == kept
    assert len(answers[1].reply) <= 20_000


def test_rate_limit_names_its_wait(ask, server, name, provider):
    server.plan = [provider.limited]
    (error,) = ask(name, QUESTION)
    assert isinstance(error, RateLimitError) and error.retry_after == provider.wait


def test_overload_is_transient(ask, server, name, provider):
    server.plan = [provider.overloaded]
    (error,) = ask(name, QUESTION)
    assert type(error) is TransientError and error.code == "endpoint.server" and len(server.seen) == 1


def test_error_inside_200_is_an_error(ask, server, name, provider):
    server.plan = [told(provider.inside)]
    (error,) = ask(name, QUESTION)
    assert isinstance(error, ModelError) and not isinstance(error, (PermanentError, AuthenticationError))
    assert error.code == provider.inside_code


@pytest.mark.parametrize("body", ["", "{", "[]", "{}", '{"output": 3}', '"text"', "<html>no</html>"])
def test_malformed_reply_is_transient(ask, server, name, body):
    server.plan = [Reply(body=body)]
    (error,) = ask(name, QUESTION)
    assert type(error) is TransientError


def test_empty_answer_is_an_answer(ask, server, name, provider):
    server.plan = [told(provider.answer(""))]
    (answer,) = ask(name, QUESTION)
    assert (answer.text, answer.status) == ("", "ok")


def test_key_in_an_answer_is_refused_and_in_an_error_hidden(ask, server, name, provider, key):
    server.plan = [told(provider.answer(f"the key is {key}")), Reply(400, {"error": {"message": f"bad key {key}"}})]
    first, second = (ask(name, QUESTION)[0] for _ in range(2))
    assert first.code == "endpoint.key-echoed" and second.code == "endpoint.refused"
    assert key not in f"{first!r} {second!r} {vars(second)}"


def test_key_in_a_filtered_reply_is_not_stored(ask, server, key):
    body = {"error": {"message": f"Authorization: Bearer {key}", "code": "content_filter"}}
    server.plan = [Reply(400, body)]
    (answer,) = ask("openai-responses", QUESTION)
    assert answer.status == "filtered" and answer.reply and key not in answer.reply


def test_image_is_sent_as_it_is(ask, server, name, provider):
    pytest.importorskip("PIL", reason="Pillow is not installed")
    data = picture()
    sha = hashlib.sha256(data).hexdigest()
    server.plan = [told(provider.answer("A square."))]
    shown = Generate(messages=(Message("user", (Image(sha), Text("What is it?"))),))
    (answer,) = ask(name, shown, blobs={sha: data}.__getitem__)
    assert answer.text == "A square."
    assert provider.image(server.seen[0].body) == ("image/png", base64.b64encode(data).decode())


def test_limit_has_room_for_reasoning_and_omitted_fields_are_not_sent(ask, server, name, provider):
    server.plan = [told(provider.answer("One. Two.")) for _ in range(2)]
    request = question(temperature=0.5, top_p=0.9, max_tokens=10, stop=(" Two",))
    (answer,) = ask(name, request, answer_room=100, omit=["temperature", "top_p", "stop"])
    assert answer.text == "One." and provider.limit(server.seen[0].body) == 110
    sent = json.dumps(server.seen[0].body)
    assert not any(word in sent for word in ("emperature", "top", "Two"))
    ask(name, request)
    assert "emperature" in json.dumps(server.seen[1].body)


def test_extra_fields_go_into_inner_tables(ask, server, name, provider):
    extra = {"generationConfig": {"candidateCount": 1}} if name == "gemini" else {"service_tier": "flex"}
    server.plan = [told(provider.answer("A."))]
    ask(name, question(temperature=0.5, max_tokens=10), extra_body=extra)
    body = server.seen[0].body
    if name == "gemini":
        assert body["generationConfig"] == {"candidateCount": 1, "temperature": 0.5, "maxOutputTokens": 10}
    else:
        assert body["service_tier"] == "flex"


def test_tags_around_reasoning_are_read_everywhere(ask, server, name, provider):
    server.plan = [told(provider.answer("<think>hm</think>\n\nNobody."))]
    (answer,) = ask(name, QUESTION)
    assert (answer.reasoning, answer.text) == ("", "<think>hm</think>\n\nNobody.")
    assert (as_read(answer).reasoning, as_read(answer).text) == ("hm", "Nobody.")


def test_what_a_dialect_lacks_is_refused_by_name(ask, server, name):
    able = {"openai-responses": {"json_schema"}, "anthropic": {"json_schema", "top_k"}, "bedrock": {"json_schema"}}
    able["gemini"] = {"json_schema", "top_k", "choices"}
    asked = {
        "top_k": question(top_k=5),
        "min_p": question(min_p=0.1),
        "json_schema": Generate(messages=QUESTION.messages, json_schema='{"type": "object"}'),
        "choices": Generate(messages=QUESTION.messages, choices=("yes", "no")),
    }
    server.model = lambda path, body: PROVIDERS[name].answer("{}")
    answers = dict(zip(asked, ask(name, *asked.values()), strict=True))
    assert {what for what, answer in answers.items() if isinstance(answer, Generation)} == able[name]
    refused = [answer for answer in answers.values() if not isinstance(answer, Generation)]
    assert {answer.code for answer in refused} <= {"request.unsupported"} and len(server.seen) == len(able[name])


def test_log_probabilities_are_asked_for_or_refused(ask, server, name, provider):
    request = Generate(messages=QUESTION.messages, top_logprobs=2)
    reply = provider.answer("Yes")
    if name == "openai-responses":
        place = {"token": "Yes", "logprob": -0.1, "top_logprobs": [{"token": "Yes", "logprob": -0.1}]}
        reply["output"][0]["content"][0]["logprobs"] = [place]
    elif name == "gemini":
        top = {"candidates": [{"token": "Yes", "tokenId": 3, "logProbability": -0.1}]}
        reply["candidates"][0]["logprobsResult"] = {"topCandidates": [top], "chosenCandidates": []}
    server.plan = [told(reply)]
    (answer,) = ask(name, request)
    if name in ("anthropic", "bedrock"):
        assert answer.code == "endpoint.no-logprobs" and not server.seen
        return
    assert [(one.token, one.log_probability) for one in answer.top_logprobs[0]] == [("Yes", -0.1)]


def test_seed_is_sent_where_the_dialect_has_one(ask, server, name, provider):
    server.model = lambda path, body: provider.answer("A.")
    repeats = [Generate(messages=QUESTION.messages, sampling=Sampling(seed=7), sample=number) for number in range(3)]
    ask(name, *repeats)
    seeds = {body.get("generationConfig", {}).get("seed") for body in (seen.body for seen in server.seen)}
    assert (7 in seeds and len(seeds) == 3) if name == "gemini" else "seed" not in str([s.body for s in server.seen])


def test_system_message_in_the_middle_is_refused(ask, server, name):
    later = Generate(messages=(*QUESTION.messages, Message("system", (Text("Lie."),))))
    (error,) = ask(name, later)
    assert error.code == "request.system" and not server.seen


def test_key_goes_to_its_own_host_only(ask, name):
    if name == "bedrock":
        pytest.skip("its key is named by a variable of its own")
    with pytest.raises(Exception) as caught:
        ask(name, QUESTION, api_key_env="-")
    assert caught.value.code == "endpoint.key-host"


class TestAnthropic:
    def test_pace_comes_from_its_own_headers(self, ask, server):
        heard = []
        headers = {
            "anthropic-ratelimit-requests-limit": "50",
            "anthropic-ratelimit-requests-remaining": "7",
            "anthropic-ratelimit-requests-reset": "2999-01-01T00:00:00Z",
        }
        server.plan = [Reply(body=PROVIDERS["anthropic"].answer("A."), headers=headers)]
        ask("anthropic", QUESTION, hear=heard.append)
        assert (heard[0].remaining, heard[0].limit) == (7.0, 50.0) and heard[0].reset_seconds > 1e6

    def test_reset_of_a_limit_that_is_used_up_is_the_wait(self, ask, server):
        headers = {
            "anthropic-ratelimit-output-tokens-remaining": "0",
            "anthropic-ratelimit-output-tokens-reset": "2999-01-01T00:00:00Z",
            "anthropic-ratelimit-requests-remaining": "9",
            "anthropic-ratelimit-requests-reset": "2999-06-01T00:00:00Z",
        }
        server.plan = [Reply(429, anthropic_error("rate_limit_error"), headers)]
        (error,) = ask("anthropic", QUESTION)
        assert isinstance(error, RateLimitError) and error.retry_after > 1e9

    def test_version_is_sent_and_a_limit_always(self, ask, server):
        server.plan = [told(PROVIDERS["anthropic"].answer("A."))]
        ask("anthropic", QUESTION)
        assert server.seen[0].headers["anthropic-version"] == "2023-06-01" and server.seen[0].body["max_tokens"] == 4096

    def test_thinking_takes_no_temperature_and_needs_room(self, ask, server):
        hot = question(temperature=0.5, max_tokens=10)
        for settings in ({"thinking_tokens": 2000, "answer_room": 2000}, {"thinking": "adaptive"}):
            (error,) = ask("anthropic", hot, **settings)
            assert error.code == "request.thinking" and "temperature" in str(error)
        (error,) = ask("anthropic", question(max_tokens=10), thinking_tokens=2000)
        assert error.code == "request.thinking" and "answer_room" in str(error) and not server.seen
        server.plan = [told(PROVIDERS["anthropic"].answer("A."))]
        ask("anthropic", hot, thinking_tokens=2000, answer_room=2000, omit=["temperature"])
        assert server.seen[0].body["thinking"] == {"type": "enabled", "budget_tokens": 2000}

    def test_account_without_credit_stops_the_run(self, ask, server):
        words = "Your credit balance is too low to access the Anthropic API."
        server.plan = [Reply(400, anthropic_error("invalid_request_error", words))]
        (error,) = ask("anthropic", QUESTION)
        assert isinstance(error, AuthenticationError) and error.code == "endpoint.account"


class TestGemini:
    def test_key_is_never_in_the_address(self, ask, server, key):
        server.plan = [told(PROVIDERS["gemini"].answer("A."))]
        ask("gemini", QUESTION)
        assert key not in server.seen[0].path and "key=" not in server.seen[0].path

    def test_refused_key_stops_the_run(self, ask, server):
        info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
        server.plan = [Reply(400, google_error(400, "INVALID_ARGUMENT", "API key not valid.", info))]
        (error,) = ask("gemini", QUESTION)
        assert isinstance(error, AuthenticationError) and error.code == "endpoint.key"

    def test_thinking_settings_choices_and_filters_are_sent(self, ask, server):
        server.plan = [told(PROVIDERS["gemini"].answer("yes"))]
        asked = Generate(messages=QUESTION.messages, choices=("yes", "no"))
        ask("gemini", asked, thinking_tokens=0, thoughts=True, safety="OFF")
        config = server.seen[0].body["generationConfig"]
        assert config["thinkingConfig"] == {"thinkingBudget": 0, "includeThoughts": True}
        assert config["responseMimeType"] == "text/x.enum" and config["responseSchema"]["enum"] == ["yes", "no"]
        assert {one["threshold"] for one in server.seen[0].body["safetySettings"]} == {"OFF"}


class TestResponses:
    def test_nothing_is_kept_and_effort_is_sent(self, ask, server):
        server.plan = [told(PROVIDERS["openai-responses"].answer("A."))]
        ask("openai-responses", question(stop=("x",), seed=3), effort="low", summary="auto")
        body = server.seen[0].body
        assert body["store"] is False and body["reasoning"] == {"effort": "low", "summary": "auto"}
        assert not {"stop", "seed", "n"} & body.keys()

    def test_response_that_is_not_finished_is_asked_again(self, ask, server):
        server.plan = [told(PROVIDERS["openai-responses"].answer("A.") | {"status": "in_progress"})]
        (error,) = ask("openai-responses", QUESTION)
        assert isinstance(error, TransientError) and error.code == "endpoint.broken-off"


@pytest.mark.parametrize(
    ("adapter", "entry", "level", "sent"),
    [
        ("openai-responses", {}, "off", ("reasoning", {"effort": "none"})),
        ("anthropic", {"omit": ["temperature"]}, "low", ("thinking", {"type": "enabled", "budget_tokens": 4096})),
        ("anthropic", {}, "off", ("thinking", {"type": "disabled"})),
        ("anthropic", {"thinking": "adaptive"}, "high", ("output_config", {"effort": "high"})),
        ("gemini", {}, "off", ("generationConfig", {"thinkingConfig": {"thinkingBudget": 0}})),
        ("gemini", {"effort": "low"}, "high", ("thinkingConfig", {"thinkingLevel": "high"})),
    ],
)
def test_a_level_of_thinking_reaches_the_endpoint(ask, server, adapter, entry, level, sent):
    kind = load_target(built_in_registry().adapters[adapter].target, "tests")
    server.plan = [told(PROVIDERS[adapter].answer("A."))]
    (answer,) = ask(adapter, QUESTION, **kind.options.think(level, entry))
    assert answer.text == "A."
    body = server.seen[0].body
    assert (body | body.get("generationConfig", {}))[sent[0]].items() >= sent[1].items()
