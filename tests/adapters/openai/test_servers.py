"""Servers that speak OpenAI's dialect with words of their own: imitations written from their documentation."""

from __future__ import annotations

from typing import Any

import pytest

from prejudge.core.contracts.adapter import Remark
from prejudge.core.contracts.errors import AuthenticationError, PermanentError, TransientError
from prejudge.core.contracts.records import Generate, Generation, Message, Sampling, Text, Usage
from prejudge.testing import Reply
from prejudge.testing.chaos.tiny import chat


def question(**sampling: Any) -> Generate:
    return Generate(messages=(Message("user", (Text("a"),)),), sampling=Sampling(temperature=1.0, **sampling))


class TestAzure:
    def test_it_wants_its_header_and_the_version_in_the_query(self, ask, server, key):
        targets = []
        server.play(Reply(body=chat("A.")), where=lambda call: targets.append(call.target) is None)
        (answer,) = ask(question(), header="api-key", api_version="2024-10-21")
        headers = server.seen[0].headers
        assert answer.text == "A." and targets == ["/v1/chat/completions?api-version=2024-10-21"]
        assert headers["api-key"] == key and "Authorization" not in headers

    def test_filters_are_read(self, ask, server):
        inner = {"code": "ResponsibleAIPolicyViolation", "content_filter_result": {"hate": {"filtered": True}}}
        error = {"error": {"message": "filtered", "code": "content_filter", "status": 400, "innererror": inner}}
        server.plan = [Reply(400, error), Reply(body=chat("", "content_filter"))]
        assert [ask(question())[0].status for _ in range(2)] == ["filtered", "filtered"]

    def test_annotations_of_an_answer_that_passed_change_nothing(self, ask, server):
        safe = {"hate": {"filtered": False, "severity": "low"}, "error": {"code": "content_filter_error"}}
        body = chat("A.") | {"prompt_filter_results": [{"prompt_index": 0, "content_filter_results": safe}]}
        body["choices"][0]["content_filter_results"] = safe
        server.plan = [Reply(body=body)]
        (answer,) = ask(question())
        assert (answer.text, answer.status) == ("A.", "ok")

    def test_answer_that_was_filtered_has_no_content(self, ask, server):
        choice = {"index": 0, "finish_reason": "content_filter", "message": {"role": "assistant"}}
        choice["content_filter_results"] = {"violence": {"filtered": True, "severity": "high"}}
        server.plan = [Reply(body={"choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 4}})]
        (answer,) = ask(question())
        assert (answer.text, answer.status, answer.usage.output_tokens) == ("", "filtered", 4)
        assert "violence" in answer.reply


class TestOpenRouter:
    def test_it_gives_reasoning_and_errors_inside_200(self, ask, server):
        behind = {"provider_name": "X", "raw": "upstream is overloaded"}
        error = {"error": {"code": 502, "message": "Provider returned error", "metadata": behind}}
        server.plan = [Reply(body=chat("A.", reasoning="hm")), Reply(body=error)]
        answer, failed = (ask(question())[0] for _ in range(2))
        assert (answer.reasoning, answer.text) == ("hm", "A.")
        assert isinstance(failed, TransientError) and "upstream is overloaded" in str(failed)

    def test_choice_that_failed_is_an_error(self, ask, server):
        failed = {"message": {"role": "assistant", "content": "Par"}, "finish_reason": "error", "index": 0}
        failed["error"] = {"code": 502, "message": "cut"}
        server.plan = [Reply(body={"choices": [failed]})]
        (error,) = ask(question())
        assert isinstance(error, TransientError)

    def test_moderation_is_a_filter_and_no_refused_key(self, ask, server):
        flagged = {"reasons": ["violence"], "flagged_input": "a...", "provider_name": "OpenAI", "model_slug": "m"}
        error = {"error": {"code": 403, "message": "Input was flagged", "metadata": flagged}}
        denied = {"error": {"code": 403, "message": "This key may not use the model"}}
        server.plan = [Reply(403, error), Reply(body=error), Reply(403, denied)]
        first, second, third = (ask(question())[0] for _ in range(3))
        assert [(one.status, one.finish_reason) for one in (first, second)] == [("filtered", "moderation")] * 2
        assert "violence" in first.reply and isinstance(third, AuthenticationError)

    @pytest.mark.parametrize(
        ("finish", "native", "status", "kept"),
        [
            ("stop", "end_turn", "ok", "stop"),
            ("content_filter", "refusal", "refused", "refusal"),
            ("stop", "SAFETY", "filtered", "SAFETY"),
            ("content_filter", "RECITATION", "filtered", "RECITATION"),
            ("length", "MAX_TOKENS", "ok", "length"),
            ("stop", None, "ok", "stop"),
        ],
    )
    def test_word_of_the_provider_decides_where_it_is_a_signal(self, ask, server, finish, native, status, kept):
        body = chat("A.", finish)
        body["choices"][0]["native_finish_reason"] = native
        server.plan = [Reply(body=body)]
        (answer,) = ask(question())
        assert (answer.status, answer.finish_reason) == (status, kept)

    def test_provider_that_answered_is_told(self, ask, server):
        heard: list[Remark] = []
        server.plan = [Reply(body=chat("A.") | {"provider": "DeepInfra"})]
        ask(question(), note=heard.append)
        assert [one.provider for one in heard] == ["DeepInfra"]


class TestLocalServers:
    @pytest.mark.parametrize("finish", ["abort", "error", "insufficient_system_resource"])
    def test_answer_that_was_broken_off_is_asked_again(self, ask, server, finish):
        server.plan = [Reply(body=chat("Par", finish))]
        (error,) = ask(question())
        assert isinstance(error, TransientError) and finish in str(error)

    def test_sglang_counts_reasoning_beside_the_others(self, ask, server):
        usage = {"prompt_tokens": 9, "completion_tokens": 7, "reasoning_tokens": 5, "prompt_tokens_details": None}
        body = chat("A.") | {"usage": usage, "sglext": {"routed_experts": None}}
        body["choices"][0] |= {"matched_stop": 151645}
        body["choices"][0]["message"]["reasoning_content"] = "hm"
        server.plan = [Reply(body=body)]
        (answer,) = ask(question())
        assert answer.usage == Usage(input_tokens=9, output_tokens=7, reasoning_tokens=5)
        assert (answer.text, answer.reasoning, answer.finish_reason) == ("A.", "hm", "stop")

    def test_error_of_sglang_has_its_message_at_the_top(self, ask, server):
        told = {"object": "error", "message": "The input is longer than the context", "type": "BadRequestError"}
        server.plan = [Reply(400, told | {"param": None, "code": 400})]
        (error,) = ask(question())
        assert isinstance(error, PermanentError) and "longer than the context" in str(error)

    def test_ollama_thinks_in_a_field_of_its_own(self, ask, server):
        server.plan = [Reply(body=chat("A.", reasoning="hm") | {"system_fingerprint": "fp_ollama"})]
        (answer,) = ask(question(), api_key_env="", effort="none")
        assert answer.reasoning == "hm" and server.seen[0].body["reasoning_effort"] == "none"

    def test_ollama_ends_an_answer_without_a_word(self, ask, server):
        body = chat("A.")
        body["choices"][0]["finish_reason"] = None
        server.plan = [Reply(body=body)]
        (answer,) = ask(question(), api_key_env="")
        assert isinstance(answer, Generation) and (answer.status, answer.finish_reason) == ("ok", "")

    def test_limit_goes_by_the_name_that_ollama_reads(self, ask, server):
        ask(question(max_tokens=5), api_key_env="")
        assert server.seen[0].body["max_tokens"] == 5 and "max_completion_tokens" not in server.seen[0].body
