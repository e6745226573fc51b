"""A stand-in for vLLM with the calls, names and strictness of vllm 0.33.0; its numbers come from Transformers.

As in vLLM, outputs come in another order than requests, and answers depend on the batch unless VLLM_BATCH_INVARIANT is
set, and on earlier requests where prefixes are cached.
"""

from .engine import LLM
from .params import SamplingParams

__all__ = ["LLM", "SamplingParams"]
__version__ = "0.33.0"
