"""Tokens of reasoning and of the cache are paid for once, in every dialect, however an endpoint counts them."""

from __future__ import annotations

import pytest

from prejudge.adapters.anthropic import replies as anthropic
from prejudge.adapters.bedrock import replies as bedrock
from prejudge.adapters.gemini import replies as gemini
from prejudge.adapters.openai import replies as openai
from prejudge.core.catalogue.prices import Prices

PRICES = Prices(input=1e6, output=100e6, cached_input=0.1e6)
READ, CACHED, THOUGHT, SAID = 20, 80, 300, 7
COST = READ * 1.0 + CACHED * 0.1 + (THOUGHT + SAID) * 100.0
"""Of 100 tokens read, 80 of them cached, and 307 written, 300 of them thoughts."""
TOLD = {
    "openai": (
        openai.usage_of,
        {
            "prompt_tokens": READ + CACHED,
            "completion_tokens": THOUGHT + SAID,
            "prompt_tokens_details": {"cached_tokens": CACHED},
            "completion_tokens_details": {"reasoning_tokens": THOUGHT},
        },
    ),
    "openai-responses": (
        openai.usage_of,
        {
            "input_tokens": READ + CACHED,
            "output_tokens": THOUGHT + SAID,
            "input_tokens_details": {"cached_tokens": CACHED},
            "output_tokens_details": {"reasoning_tokens": THOUGHT},
        },
    ),
    "anthropic": (
        anthropic.usage_of,
        {
            "input_tokens": READ - 5,
            "cache_creation_input_tokens": 5,
            "cache_read_input_tokens": CACHED,
            "output_tokens": THOUGHT + SAID,
            "output_tokens_details": {"thinking_tokens": THOUGHT},
        },
    ),
    "gemini": (
        gemini.usage_of,
        {
            "promptTokenCount": READ + CACHED,
            "cachedContentTokenCount": CACHED,
            "candidatesTokenCount": SAID,
            "thoughtsTokenCount": THOUGHT,
        },
    ),
    "bedrock": (
        bedrock.usage_of,
        {"inputTokens": READ, "cacheReadInputTokens": CACHED, "outputTokens": THOUGHT + SAID},
    ),
}
"""The counts of one answer as each vendor documents them."""


@pytest.mark.parametrize("dialect", TOLD)
def test_every_token_is_paid_for_once(dialect):
    read, told = TOLD[dialect]
    used = read(told)
    assert PRICES.cost(used.input_tokens, used.output_tokens, 0, 0, used.cached_tokens) == pytest.approx(COST)
    assert used.reasoning_tokens <= used.output_tokens and used.cached_tokens <= used.input_tokens
    assert used.reasoning_tokens == (0 if dialect == "bedrock" else THOUGHT)
