"""The table of filters against replies that providers document, and against replies that no filter sent."""

from __future__ import annotations

import json

import msgspec
import pytest

from prejudge.adapters.bedrock.replies import ConverseReply
from prejudge.adapters.bedrock.replies import read_answer as read_converse
from prejudge.adapters.endpoint.errors import FilteredError, explain_reply
from prejudge.adapters.endpoint.filters import FILTERS, is_filtered
from prejudge.adapters.endpoint.scrub import Scrubber
from prejudge.adapters.endpoint.wire import Reply
from prejudge.adapters.gemini.replies import ContentReply
from prejudge.adapters.gemini.replies import read_answer as read_content
from prejudge.core.contracts.errors import AuthenticationError, PermanentError, RateLimitError

AZURE = {
    "error": {
        "message": "The response was filtered",
        "type": None,
        "param": "prompt",
        "code": "content_filter",
        "status": 400,
        "innererror": {"code": "ResponsibleAIPolicyViolation", "content_filter_result": {}},
    }
}
DOCUMENTED = {
    "OpenAI": (400, {"error": {"code": "content_policy_violation", "type": "invalid_request_error", "message": "No."}}),
    "Azure": (400, AZURE),
    "Anthropic": (
        400,
        {
            "type": "error",
            "error": {"type": "invalid_request_error", "message": "Output blocked by content filtering policy"},
        },
    ),
    "xAI": (
        403,
        {
            "code": "The caller does not have permission to execute the specified operation",
            "error": "Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO",
        },
    ),
    "DashScope": (
        400,
        {"code": "DataInspectionFailed", "message": "Input data may contain inappropriate content.", "request_id": "x"},
    ),
    "DashScope, as OpenAI": (
        400,
        {
            "error": {
                "code": "data_inspection_failed",
                "param": None,
                "message": "Input data may contain inappropriate content.",
                "type": "data_inspection_failed",
            },
            "id": "chatcmpl-1",
            "request_id": "1",
        },
    ),
    "Zhipu": (
        400,
        {
            "error": {
                "code": "1301",
                "message": "系统检测到输入或生成内容可能包含不安全或敏感内容，"
                "请您避免输入易产生敏感内容的提示语，感谢您的配合。",
            }
        },
    ),
    "Zhipu, in English": (
        400,
        {
            "error": {
                "code": "1301",
                "message": "System detected potentially unsafe or sensitive content in input or generation.",
            }
        },
    ),
    "DeepSeek": (
        400,
        {"error": {"message": "Content Exists Risk", "type": "invalid_request_error", "code": "invalid_request_error"}},
    ),
    "Together": (422, {"error": {"message": "Prompt contains NSFW content.", "type": "invalid_request_error"}}),
    "OpenRouter": (
        403,
        {
            "error": {
                "code": 403,
                "message": "Your chosen model requires moderation and your input was flagged",
                "metadata": {"reasons": ["hate"], "flagged_input": "...", "provider_name": "x", "model_slug": "x"},
            }
        },
    ),
}
OTHERS = [
    (403, {"error": {"message": "Your API key does not have permission to use the model."}}, AuthenticationError),
    (403, {"error": "The content of your account violates our terms."}, AuthenticationError),
    (400, {"error": {"message": "Invalid value for 'content': expected a string.", "code": "1214"}}, PermanentError),
    (400, {"error": {"message": "This model does not support safety settings."}}, PermanentError),
    (429, {"error": {"message": "Rate limited by the content filter.", "code": "content_filter"}}, RateLimitError),
]


def explained(status, body):
    data = json.dumps(body).encode()
    return explain_reply(Reply(status, {"content-type": "application/json"}, data), "host", "tiny", Scrubber(None))


@pytest.mark.parametrize("provider", DOCUMENTED)
def test_documented_reply_of_a_filter_is_filtered(provider):
    assert isinstance(explained(*DOCUMENTED[provider]), FilteredError)


@pytest.mark.parametrize(("status", "body", "kind"), OTHERS)
def test_reply_that_is_no_filters_is_what_its_status_says(status, body, kind):
    error = explained(status, body)
    assert type(error) is kind


@pytest.mark.parametrize("word", ["SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY"])
def test_geminis_finish_reasons_of_filters(word):
    reply = msgspec.convert({"candidates": [{"finishReason": word, "index": 0}]}, ContentReply)
    assert read_content(reply, "host", logprobs=False).filtered


def test_blocked_prompt_of_gemini_is_filtered_and_an_unknown_reason_is_not():
    def read(reason):
        reply = msgspec.convert({"promptFeedback": {"blockReason": reason}}, ContentReply)
        return read_content(reply, "host", logprobs=False)

    assert read("PROHIBITED_CONTENT").filtered and read("OTHER").filtered
    unknown = read("A_REASON_OF_NEXT_YEAR")
    assert not unknown.filtered and unknown.finish == "A_REASON_OF_NEXT_YEAR"


@pytest.mark.parametrize(
    ("word", "filtered"), [("guardrail_intervened", True), ("content_filtered", True), ("next_years_word", False)]
)
def test_stop_reasons_of_bedrock(word, filtered):
    reply = msgspec.convert({"output": {"message": {"content": [{"text": "(b)"}]}}, "stopReason": word}, ConverseReply)
    answer = read_converse(reply, "host")
    assert (answer.filtered, answer.text) == (filtered, "(b)")


def test_every_provider_of_the_table_has_a_source_and_is_tried():
    assert all(one.source.startswith("https://") and one != one._replace(source="") for one in FILTERS)
    finishes = {one.provider for one in FILTERS if one.finishes}
    assert {one.provider for one in FILTERS} <= DOCUMENTED.keys() | finishes | {"any-llm"}
    assert is_filtered("sensitive") and not is_filtered("stop") and not is_filtered("")
