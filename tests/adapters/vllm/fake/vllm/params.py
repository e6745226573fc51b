"""`SamplingParams` of vllm 0.33.0: unknown fields and values out of range are refused."""

from __future__ import annotations

from typing import Any

import msgspec

from .exceptions import VLLMValidationError


class StructuredOutputsParams(msgspec.Struct, kw_only=True):
    json: Any = None
    regex: str | None = None
    choice: list[str] | None = None
    grammar: str | None = None
    json_object: bool | None = None

    def __post_init__(self):
        if sum(getattr(self, name) is not None for name in self.__struct_fields__) != 1:
            raise VLLMValidationError("You can only use one kind of structured outputs constraint")


class SamplingParams(msgspec.Struct, omit_defaults=True, dict=True):
    n: int = 1
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: int | None = None
    stop: Any = None
    stop_token_ids: list[int] | None = None
    ignore_eos: bool = False
    max_tokens: int | None = 16
    min_tokens: int = 0
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    prompt_logprob_token_ids: list[int] | None = None
    prompt_logprob_start: int | None = None
    logprob_token_ids: list[int] | None = None
    flat_logprobs: bool = False
    detokenize: bool = True
    skip_special_tokens: bool = True
    spaces_between_special_tokens: bool = True
    include_stop_str_in_output: bool = False
    structured_outputs: Any = None
    logit_bias: dict[int, float] | None = None
    allowed_token_ids: list[int] | None = None
    bad_words: list[str] | None = None
    skip_reading_prefix_cache: bool | None = None
    thinking_token_budget: int | None = None

    def __post_init__(self):
        if not 0 <= self.temperature <= 2:
            raise VLLMValidationError(f"temperature must be in [0, 2], got {self.temperature}.")
        if 0 < self.temperature < 0.01:
            self.temperature = 0.01
        if not 0 < self.top_p <= 1:
            raise VLLMValidationError(f"top_p must be in (0, 1], got {self.top_p}.")
        if self.max_tokens is not None and self.max_tokens < 1:
            raise VLLMValidationError(f"max_tokens must be at least 1, got {self.max_tokens}.")
        if self.seed is not None and not -(2**63) <= self.seed < 2**63:
            raise OverflowError("Python integer out of bounds for int64")
        self.stop = [self.stop] if isinstance(self.stop, str) else list(self.stop or ())
        if any(not text for text in self.stop):
            raise VLLMValidationError("stop cannot contain an empty string.")
        if self.stop and not self.detokenize:
            raise VLLMValidationError("stop strings are only supported when detokenize is True.")
        self.stop_token_ids = list(dict.fromkeys(self.stop_token_ids or ()))

    def verify(self, vocabulary: int, max_logprobs: int) -> None:
        most = vocabulary if max_logprobs == -1 else max_logprobs
        if (self.logprobs or 0) > most or (self.prompt_logprobs or 0) > most:
            raise VLLMValidationError(f"Requested sample logprobs of {self.logprobs}, greater than max allowed")
        ids = self.logprob_token_ids
        if ids is not None and len(ids) > 128:
            raise VLLMValidationError(f"Requested logprob_token_ids of length {len(ids)}, greater than 128")
        if any(not 0 <= token < vocabulary for token in [*(ids or ()), *self.stop_token_ids]):
            raise VLLMValidationError("token_id(s) contain out-of-vocab token ids.")
        if ids is not None and self.logprobs is not None and self.logprobs != len(ids):
            raise VLLMValidationError("When both are set, logprobs must equal len(logprob_token_ids).")
