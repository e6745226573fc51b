"""`llamacpp`: continuations and their likelihoods from a GGUF file, by llama.cpp in this process."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import msgspec

from ...core.contracts import Options, harmless
from ...core.contracts.abilities import CHAT, IMAGES, NO_TEMPLATE, Abilities
from ...core.contracts.adapter import Identity, Limits
from ...core.contracts.errors import MissingExtraError, ModelError, ModelLoadError
from ...core.contracts.model_files import ModelFiles, Recognised
from ...core.contracts.processors import physical_cores
from ...core.contracts.records import Generate, Generation, Likelihood, Likelihoods, Scalar
from ...core.contracts.thinking import Level
from ..shared.reasoning import thinking_settings
from ..shared.start import AUTO, Start, start_settings
from ..shared.thinking import by_template, check_arguments
from ..shared.threaded import ThreadedAdapter
from .answers import Answers, Asking
from .chat import FILE, PLAIN, check_builtin
from .gguf import GGUF, find_gguf, first_files, template_of
from .model import Engine, Setup, find_library

VERSION = "3"
Positive = Annotated[int, msgspec.Meta(ge=1)]
Q = TypeVar("Q")
A = TypeVar("A")


class LlamaCppOptions(Options, frozen=True, kw_only=True):
    """Settings of `llamacpp`."""

    option_effects = {
        "model": "file",
        **harmless(
            "n_ctx max_tokens chat_format start system_prompt answer_room chat_template_kwargs "
            "cache_dtype flash_attention n_gpu_layers threads batch_items"
        ),
    }

    model: str
    """A .gguf file; of a model in shards, the first."""
    n_ctx: Positive = 4096
    """Maximum number of tokens of prompt and answer, at most the training length; longer texts are refused."""
    max_tokens: Positive = 512
    """Longest answer in tokens if the request sets no limit."""
    chat_format: str | None = None
    """`file`: the file's own template; `plain`: none; or a format of llama.cpp by name. None: `file` if it has one."""
    start: Start = AUTO
    """What stands before the first token of a plain text. `auto`: what the tokenizer puts there; where that is nothing
    and the text has no prompt, its token for the beginning of a text, or `<|endoftext|>` if that is none or a mark of
    chats. `bos`, `eos`: always the token for the beginning or the end of a text; `none`: nothing; any other text: this
    text, in which `<|endoftext|>` and the like are tokens."""
    system_prompt: str | None = None
    """Text before every prompt; for messages, the system message, joined with their own."""
    answer_room: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Tokens added to the limit of every answer, for a model that reasons before it answers."""
    chat_template_kwargs: dict[str, Any] = {}
    """Arguments of the file's chat template, such as {enable_thinking = false}."""
    cache_dtype: Literal["float32", "float16"] = "float32"
    """Precision of cached keys and values. float16 halves their memory, and changes log-probabilities by about 1e-3."""
    flash_attention: bool = False
    """Use llama.cpp's flash attention."""
    n_gpu_layers: Annotated[int, msgspec.Meta(ge=-1)] = 0
    """Number of layers on the accelerator; -1 for all."""
    threads: Positive | None = None
    """Number of CPU threads; None takes one for each physical core."""
    batch_items: Positive = 1
    """Maximum number of requests per call; changes no answer. With 1, each answer is stored and shown as soon as it is
    there, with a latency of its own."""

    @classmethod
    def think(cls, level: Level, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        """Set the argument of the file's chat template."""
        return by_template(settings, level, template_of(str(settings.get("model"))))


class LlamaCpp(ThreadedAdapter):
    """A GGUF model. This adapter's own seeded sampler draws answers from the model's unmodified distribution."""

    options: ClassVar[type[msgspec.Struct]] = LlamaCppOptions

    def __init__(self, options: LlamaCppOptions) -> None:
        """Check the file and hash it; weights load at the first call.

        Raises:
            MissingExtraError: llama-cpp-python is not installed.
            ModelLoadError: the file is not there, no GGUF, or no causal language model.
        """
        if find_spec("llama_cpp") is None:
            raise MissingExtraError("adapter 'llamacpp'", "llamacpp")
        self._options = options
        self._source = find_gguf(options.model)
        self._format = options.chat_format or (FILE if self._source.chat_template else PLAIN)
        if self._format == FILE and not self._source.chat_template:
            raise ModelLoadError(
                f"{options.model!r} has no chat template. Use chat_format = 'plain' or a name.",
                code="model.template",
            )
        template = self._source.chat_template if self._format == FILE else None
        check_arguments(options.chat_template_kwargs, template, self._source.name)
        self.identity = Identity(
            adapter="llamacpp",
            version=VERSION,
            model=self._source.name,
            digest=self._source.digest,
            pinned=True,
            settings=_settings(options, self._source, self._format),
        )
        self._lacks = {CHAT: NO_TEMPLATE} if self._format == PLAIN else {}
        self.limits = Limits(concurrency=1, batch_items=options.batch_items)
        self._start("llamacpp")
        self._answers: Answers | None = None

    @classmethod
    def recognise(cls, files: ModelFiles) -> Sequence[Recognised]:
        """Take GGUF files, each for itself; those of a model in shards once."""
        return [
            Recognised(files.path if files.is_file else f"{files.path.rstrip('/')}/{name}", f"{name} is a GGUF file")
            for name in first_files(files.names)
        ]

    @classmethod
    def abilities(cls, options: Any) -> Abilities:
        """Return what the model can do; it reads text only. Whether it has a chat template is read from its file."""
        able = super().abilities(options).without({IMAGES: "llamacpp reads text only."})
        joined = options.chat_format == PLAIN or (options.chat_format is None and template_of(options.model) == "")
        able = able.without({CHAT: NO_TEMPLATE}) if joined else able
        return msgspec.structs.replace(able, fields=frozenset({"top_k", "min_p", "json_schema", "choices"}))

    def describe(self) -> Mapping[str, str]:
        """Return what the file says of the model."""
        return self._source.described

    async def generate_batch(self, requests: Sequence[Generate]) -> Sequence[Generation | ModelError]:
        """Continue messages, one after another.

        Raises:
            ModelLoadError: the weights cannot be loaded (first call).
        """
        return await self._each_in_turn(lambda answers, request, stop: answers.generate(request, stop), requests)

    async def likelihood_batch(self, requests: Sequence[Likelihood]) -> Sequence[Likelihoods | ModelError]:
        """Score continuations; those of one prompt share its evaluation.

        Raises:
            ModelLoadError: the weights cannot be loaded (first call).
        """
        return await self._each_in_turn(lambda answers, request, stop: answers.likelihood(request), requests)

    async def _each_in_turn(
        self, ask: Callable[[Answers, Q, threading.Event], A], requests: Sequence[Q]
    ) -> list[A | ModelError]:
        return await self._run(partial(self._work, ask), requests)

    def _work(
        self, ask: Callable[[Answers, Q, threading.Event], A], requests: Sequence[Q], stop: threading.Event
    ) -> list[A | ModelError]:
        answers = self._answers = self._answers or self._load()
        settled: list[A | ModelError] = []
        for request in requests:
            if stop.is_set():
                break
            try:
                settled.append(ask(answers, request, stop))
            except ModelError as error:
                settled.append(error)
        return settled

    def _load(self) -> Answers:
        options = self._options
        n_ctx = _room(options, self._source)
        setup = Setup(
            n_ctx=n_ctx,
            n_gpu_layers=options.n_gpu_layers,
            threads=options.threads or physical_cores(),
            flash_attention=options.flash_attention,
            full_cache=options.cache_dtype == "float32",
        )
        if self._format not in (FILE, PLAIN):
            check_builtin(find_library(), self._format)
        asking = Asking(
            chat_format=self._format,
            template=self._source.chat_template or "",
            system_prompt=options.system_prompt,
            max_tokens=options.max_tokens,
            answer_room=options.answer_room,
            arguments=options.chat_template_kwargs,
            n_ctx=n_ctx,
            name=self._source.name,
            start=options.start,
        )
        return Answers(Engine(self._source, setup), asking)

    def _free(self) -> None:
        if self._answers is not None:
            self._answers.engine.close()
            self._answers = None


def _room(options: LlamaCppOptions, source: GGUF) -> int:
    return min(options.n_ctx, source.trained_on or options.n_ctx)


def _settings(options: LlamaCppOptions, source: GGUF, chat_format: str) -> dict[str, Scalar]:
    settings: dict[str, Scalar] = {
        "cache_dtype": options.cache_dtype,
        "chat_format": chat_format,
        "flash_attention": options.flash_attention,
        "max_tokens": options.max_tokens,
        "quantisation": source.quantisation,
    }
    settings |= start_settings(options, source.bos, source.separates)
    settings |= thinking_settings(options, options.chat_template_kwargs)
    if chat_format == FILE:
        settings["chat_template"] = hashlib.sha256((source.chat_template or "").encode()).hexdigest()
    if options.system_prompt is not None:
        settings["system_prompt"] = options.system_prompt
    if source.bends_with_length:
        settings["n_ctx"] = _room(options, source)
    return settings
