"""Settings of `vllm`: those of a user, what of them identifies a model, and the arguments of the engine they make."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

import msgspec

from ...core.contracts import OptionEffect, Options, harmless
from ...core.contracts.records import Scalar
from ...core.contracts.thinking import Level
from ..hf.causal.prompt import Chat
from ..hf.checkpoint import folder_template
from ..hf.code import code_effects
from ..hf.files import Source
from ..hf.loading import own_method
from ..hf.start import recorded_start
from ..shared.reasoning import thinking_settings
from ..shared.start import AUTO, Start
from ..shared.thinking import by_template
from ..shared.torch import DType

OWN_ARGUMENTS = frozenset(
    {
        *("model", "tokenizer", "revision", "dtype", "quantization", "trust_remote_code", "load_format"),
        *("tensor_parallel_size", "gpu_memory_utilization", "max_model_len", "enable_prefix_caching"),
        *("generation_config", "logprobs_mode", "max_logprobs", "limit_mm_per_prompt", "seed"),
    }
)
"""Arguments of the engine that follow from other settings."""
PLAIN_ARGUMENTS = frozenset(
    {
        *("enforce_eager", "max_num_seqs", "max_num_batched_tokens", "swap_space", "cpu_offload_gb", "block_size"),
        *("kv_cache_dtype", "enable_chunked_prefill", "disable_custom_all_reduce", "max_seq_len_to_capture"),
        *("pipeline_parallel_size", "disable_log_stats", "async_scheduling"),
    }
)
"""Arguments of the engine that are numbers, switches or names of its own."""
Positive = Annotated[int, msgspec.Meta(ge=1)]


class VLLMOptions(Options, frozen=True, kw_only=True):
    """Settings of `vllm`."""

    option_effects = {
        "model": "file",
        "engine": "code",
        "trust_remote_code": "code",
        "allow_pickle": "code",
        **harmless(
            "revision dtype quantization batch_invariant prefix_caching tensor_parallel gpu_memory max_context "
            "max_images chat start system_prompt max_new_tokens answer_room chat_template_kwargs batch_items"
        ),
    }

    model: str
    """A directory, or a name on the Hugging Face hub."""
    revision: str | None = None
    """Branch, tag or commit of a hub name; None takes the main branch. The resolved commit is recorded."""
    dtype: DType | Literal["auto"] = "auto"
    """Precision of weights and activations: `float32`, `bfloat16`, `float16`; `auto` takes that of the checkpoint's
    configuration."""
    quantization: str | None = None
    """Quantise the weights when they load, by vLLM's name of a method, such as `fp8` or `bitsandbytes`."""
    batch_invariant: bool = True
    """vLLM's batch-invariant mode: an answer does not depend on the other requests. Slower; needs a recent GPU."""
    prefix_caching: bool = False
    """Keep keys and values of common beginnings, such as an image. Answers then depend on what was asked before, so
    likelihoods are refused."""
    tensor_parallel: Positive = 1
    """Number of GPUs that share each layer."""
    gpu_memory: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.9
    """Share of the GPU's memory that vLLM may take."""
    max_context: Positive | None = None
    """Longest prompt with its answer, in tokens; None takes the model's own limit."""
    max_images: Positive = 4
    """Most images of a request to a vision-language model."""
    engine: dict[str, Any] = {}
    """Further arguments of vLLM's `LLM`, such as {enforce_eager = true}."""
    chat: Chat = "auto"
    """How messages become text. `auto`: by the model's chat template, if it has one; `template`: always by it; `plain`:
    joined by blank lines."""
    start: Start = AUTO
    """What stands before the first token of a plain text. `auto`: what the tokenizer puts there; where that is nothing
    and the text has no prompt, its token for the beginning of a text, or `<|endoftext|>` if that is none or a mark of
    chats. `bos`, `eos`: always the token for the beginning or the end of a text; `none`: nothing; any other text: this
    text, in which `<|endoftext|>` and the like are tokens."""
    system_prompt: str | None = None
    """Text before every prompt: as system message, or in front of a plain text."""
    max_new_tokens: Positive = 256
    """Maximum number of tokens of an answer if the request sets no limit."""
    answer_room: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Tokens added to the limit of every answer, for a model that reasons before it answers."""
    chat_template_kwargs: dict[str, Any] = {}
    """Arguments of the model's chat template, such as {enable_thinking = false}."""
    batch_items: Positive = 2048
    """Maximum number of requests per call; changes no answer."""
    trust_remote_code: bool = False
    """Allow Python code that comes with the model to run."""
    allow_pickle: bool = False
    """Read pickled weights if there are no safetensors; a pickle can run code when read."""

    def list_effects(self) -> Iterable[OptionEffect]:
        """Return what these values do: arguments of the engine can name classes, files and addresses."""
        yield OptionEffect("file", "model", self.model)
        if strange := sorted(self.engine.keys() - PLAIN_ARGUMENTS):
            yield OptionEffect("code", "engine", ", ".join(strange))
        yield from code_effects(self.model, trusted=self.trust_remote_code, pickled=self.allow_pickle)

    @classmethod
    def think(cls, level: Level, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        """Set the argument of the model's chat template."""
        return by_template(settings, level, folder_template(str(settings.get("model"))))


def identity_settings(options: VLLMOptions, dtype: DType, source: Source) -> dict[str, Scalar]:
    """Return the part of the settings that belongs to the identity; what is not set is left out."""
    settings: dict[str, Scalar] = {
        "dtype": dtype,
        "trust_remote_code": options.trust_remote_code,
        "batch_invariant": options.batch_invariant,
        "max_new_tokens": options.max_new_tokens,
        **recorded_start(options, source),
        **thinking_settings(options, options.chat_template_kwargs),
    }
    if options.quantization is not None:
        settings["quantization"] = options.quantization
    elif own := own_method(source.config):
        settings["quantization"] = f"checkpoint:{own}"
    if options.prefix_caching:
        settings["prefix_caching"] = True
    if options.tensor_parallel > 1:
        settings["tensor_parallel"] = options.tensor_parallel
    if options.max_context is not None:
        settings["max_context"] = options.max_context
    if options.engine:
        settings["engine"] = msgspec.json.encode(options.engine, order="sorted").decode()
    return settings


def engine_arguments(options: VLLMOptions, dtype: DType, *, sees: bool) -> dict[str, Any]:
    """Return the arguments of vLLM's `LLM`; `sees` is whether the model takes images."""
    arguments: dict[str, Any] = {
        "dtype": dtype,
        "quantization": options.quantization,
        "trust_remote_code": options.trust_remote_code,
        "tensor_parallel_size": options.tensor_parallel,
        "gpu_memory_utilization": options.gpu_memory,
        "enable_prefix_caching": options.prefix_caching,
        # Its defaults from the model's generation_config.json are given with every request instead.
        "generation_config": "vllm",
        "logprobs_mode": "raw_logprobs",
        "max_logprobs": -1,
        "load_format": "auto" if options.allow_pickle else "safetensors",
        "seed": 0,
        **options.engine,
    }
    if options.max_context is not None:
        arguments["max_model_len"] = options.max_context
    if sees:
        arguments["limit_mm_per_prompt"] = {"image": options.max_images}
    return arguments
