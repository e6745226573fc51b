"""The one table of content filters, by provider: only what stands here makes an answer `filtered`.

A refusal in words is none of these: it is an answer, and readers judge it. A finish reason that is neither here nor
among the usual ones leaves its answer usable; a run counts and names it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple


class Filter(NamedTuple):
    """How a provider says that a filter stopped a prompt or an answer."""

    provider: str
    source: str
    """Where the provider documents it, or where its reply is on record."""
    codes: frozenset[str] = frozenset()
    """Codes or types of an error reply."""
    words: str = ""
    """Words of an error reply whose code is that of any bad request, as a regular expression."""
    finishes: frozenset[str] = frozenset()
    """Finish reasons of an answer, in lower case."""
    blocks: frozenset[str] = frozenset()
    """Reasons why a prompt was not answered, in lower case."""


def _of(words: str) -> frozenset[str]:
    return frozenset(words.split())


FLAGGED = "moderation"
"""Our word for a filter that gives none of its own."""
FILTERS = (
    Filter(
        "OpenAI",
        "https://platform.openai.com/docs/api-reference/chat/object",
        codes=_of("content_filter content_policy_violation moderation_blocked"),
        words="flagged as potentially violating",
        finishes=_of("content_filter"),
    ),
    Filter(
        "Azure",
        "https://learn.microsoft.com/azure/ai-foundry/openai/concepts/content-filter",
        codes=_of("content_filter ResponsibleAIPolicyViolation"),
        finishes=_of("content_filter"),
    ),
    Filter(
        "Anthropic",
        "https://github.com/anthropics/claude-code/issues/6195",
        words="blocked by content filtering policy",
    ),
    Filter(
        "Gemini",
        "https://ai.google.dev/api/generate-content#FinishReason",
        finishes=_of(
            "safety recitation blocklist prohibited_content spii image_safety image_prohibited_content "
            "image_recitation model_armor"
        ),
        blocks=_of("safety other blocklist prohibited_content image_safety model_armor jailbreak"),
    ),
    Filter(
        "Bedrock",
        "https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html",
        finishes=_of("guardrail_intervened content_filtered"),
    ),
    Filter("xAI", "https://docs.x.ai/docs/key-information/debugging", words="content violates usage guidelines"),
    Filter(
        "DashScope",
        # The first of the interface that is OpenAI's, the second of DashScope's own.
        "https://github.com/Samueli924/chaoxing/issues/539, https://developer.aliyun.com/ask/578425",
        codes=_of("data_inspection_failed DataInspectionFailed"),
    ),
    Filter(
        "Zhipu",
        # Code 1301, with this text; the code alone is that of other errors elsewhere.
        "https://docs.bigmodel.cn/cn/api/api-code, https://github.com/langchain4j/langchain4j/issues/1079",
        words="potentially unsafe or sensitive content|不安全或敏感内容",
        finishes=_of("sensitive"),
    ),
    Filter(
        "DeepSeek",
        "https://github.com/deepseek-ai/awesome-deepseek-integration/issues/13",
        words="content exists risk",
    ),
    Filter(
        "Together",
        # The page describes the check of images; no whole reply is documented or on record.
        "https://docs.together.ai/docs/quickstart-flux#safety-checker",
        words=r"\bnsfw\b",
    ),
    Filter(
        "any-llm", "https://pypi.org/project/any-llm-sdk/1.40.2 (any_llm.exceptions)", codes=_of("ContentFilterError")
    ),
    Filter(
        "OpenRouter",
        "https://openrouter.ai/docs/api-reference/errors#moderation-errors",
        codes=_of(FLAGGED),
        finishes=_of("content_filter content-filter"),
    ),
)
_CODES = frozenset().union(*(entry.codes for entry in FILTERS))
_WORDS = re.compile("|".join(entry.words for entry in FILTERS if entry.words), re.IGNORECASE)
FINISHES = frozenset().union(*(entry.finishes for entry in FILTERS))
"""Finish reasons of all filters, in lower case: a gateway passes on those of the provider behind it."""
BLOCKS = frozenset().union(*(entry.blocks for entry in FILTERS))
"""Reasons of all filters for a prompt without an answer, in lower case."""


def filter_word(codes: Iterable[str], message: str) -> str | None:
    """Return the word of a filter for an error reply with these codes and words; None if no filter says so."""
    if named := _CODES.intersection(codes):
        return min(named)
    return FLAGGED if _WORDS.search(message) else None


def is_filtered(finish: str) -> bool:
    """Return whether a finish reason is that of a filter, in any case."""
    return finish.lower() in FINISHES


def is_blocked(reason: str) -> bool:
    """Return whether a reason for no answer is that of a filter, in any case."""
    return reason.lower() in BLOCKS
