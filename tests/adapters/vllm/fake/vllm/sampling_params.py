"""Where vllm 0.33.0 has these classes."""

from .params import SamplingParams, StructuredOutputsParams

__all__ = ["SamplingParams", "StructuredOutputsParams"]
