"""`vllm`: answers and likelihoods by vLLM's offline engine, for text and vision-language models on GPUs."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib.util import find_spec
from typing import Any, ClassVar, NamedTuple, TypeVar

import msgspec

from ...core.contracts.abilities import CHAT, IMAGES, NO_TEMPLATE, OPERATIONS, Abilities
from ...core.contracts.adapter import Identity, Limits
from ...core.contracts.errors import MissingExtraError, ModelError, ModelLoadError
from ...core.contracts.records import Generate, Generation, Likelihood, Likelihoods
from ...core.reading.reasoning import is_opened
from ..hf.base import check_known, check_size, not_finite
from ..hf.causal.prompt import choose_style
from ..hf.checkpoint import local_files, unlike
from ..hf.files import CONFIG, fetch, find_source
from ..hf.generation import named_ends, read_settings, sampling_defaults
from ..hf.load import check_kind, load_tokenizer
from ..hf.loading import resolve_dtype
from ..hf.text import Encoder
from ..hf.vlm.model import MORE
from ..shared.images import open_image
from ..shared.sampling import HONOURED, Defaults, answer_length, choose
from ..shared.thinking import check_arguments
from ..shared.threaded import ThreadedAdapter
from . import answers, likelihood
from .engine import Asked, Engine
from .kind import GENERATIVE, IMAGE_KEYS, image_marker
from .options import OWN_ARGUMENTS, VLLMOptions, engine_arguments, identity_settings
from .prompt import Picturing, images_of

VERSION = "1"
FIELDS = frozenset({*HONOURED, "json_schema", "choices"})
P = TypeVar("P")


class _Model(NamedTuple):
    engine: Engine
    tokenizer: Any
    encoder: Encoder
    prompts: Picturing
    defaults: Defaults
    ends: frozenset[int]


class VLLM(ThreadedAdapter):
    """A model behind vLLM's offline engine (Kwon et al. 2023)."""

    options: ClassVar[type[msgspec.Struct]] = VLLMOptions

    def __init__(self, options: VLLMOptions) -> None:
        """Check the model's files and pin them; the engine starts at the first call.

        Raises:
            MissingExtraError: vLLM is not installed.
            ModelLoadError: the model is not there, incomplete, of another kind, or an argument has its own setting.
        """
        if find_spec("vllm") is None:
            raise MissingExtraError("adapter 'vllm'", "vllm")
        if taken := sorted(OWN_ARGUMENTS & set(options.engine)):
            raise ModelLoadError(
                f"engine sets {taken[0]}, which follows from the adapter's own settings. Remove it.",
                code="model.option",
            )
        self._options = options
        self._model: _Model | None = None
        self._source = find_source(
            options.model,
            options.revision,
            allow_pickle=options.allow_pickle,
            trust_remote_code=options.trust_remote_code,
            more=MORE,
        )
        check_kind(GENERATIVE, self._source.config, self._source.name, trust_remote_code=options.trust_remote_code)
        self._style = choose_style(options.chat, options.system_prompt, self._source, options.chat_template_kwargs)
        check_arguments(options.chat_template_kwargs, self._style.template, self._source.name)
        self._lacks = {} if self._style.template is not None else {CHAT: NO_TEMPLATE}
        named = options.dtype
        self._dtype = resolve_dtype(self._source.config, self._source.name) if named == "auto" else named
        self.identity = Identity(
            adapter="vllm",
            version=VERSION,
            model=self._source.name,
            digest=self._source.digest,
            pinned=True,
            settings={**self._style.settings(), **identity_settings(options, self._dtype, self._source)},
        )
        self.limits = Limits(concurrency=1, batch_items=options.batch_items)
        self._start("vllm")

    @classmethod
    def abilities(cls, options: VLLMOptions) -> Abilities:
        """Return what the model can do, by its files: nothing if it is of another kind, and no images without a token.

        Likelihoods are missing where prefixes are cached: they would depend on earlier requests.
        """
        able = msgspec.structs.replace(super().abilities(options), fields=FIELDS)
        if options.prefix_caching:
            why = "Likelihoods depend on earlier requests with prefix_caching. Set it to false."
            able = able.without({OPERATIONS[Likelihood]: why})
        if (files := local_files(options.model)) is None:
            return able
        if why := unlike(files, GENERATIVE, trusted=options.trust_remote_code):
            return able.without(dict.fromkeys(able.operations, why))
        if all(files.settings(CONFIG).get(key) is None for key in IMAGE_KEYS):
            return able.without({IMAGES: f"{options.model!r} reads text only: its {CONFIG} names no token of images."})
        return able

    async def generate_batch(self, requests: Sequence[Generate]) -> Sequence[Generation | ModelError]:
        """Continue messages, images among them; a request that cannot be answered has its error in its place.

        Raises:
            ModelLoadError: the engine cannot be started (first call).
            ModelError: it died or ran out of memory.
        """
        return await self._run(self._generate, requests)

    async def likelihood_batch(self, requests: Sequence[Likelihood]) -> Sequence[Likelihoods | ModelError]:
        """Score continuations; a request that cannot be scored has its error in its place.

        Raises:
            ModelLoadError: the engine cannot be started (first call).
            ModelError: it died or ran out of memory.
        """
        return await self._run(self._likelihood, requests)

    def _generate(self, requests: Sequence[Generate], stop: threading.Event) -> list[Generation | ModelError]:
        model, look = self._ready(), self._looker()
        plans = [_attempt(partial(self._plan_answer, request, model, look)) for request in requests]
        told = self._ask(model, [plan if isinstance(plan, ModelError) else [plan.asked] for plan in plans], stop)
        again = {
            place: plan.without_stops()
            for place, (plan, outputs) in enumerate(zip(plans, told, strict=True))
            if not isinstance(plan, ModelError)
            and not isinstance(outputs, ModelError)
            and answers.stopped_in_reasoning(plan, outputs[0], model.encoder)
        }
        for place, outputs in zip(
            again, self._ask(model, [[plan.asked] for plan in again.values()], stop), strict=True
        ):
            told[place] = outputs
        return [
            outputs if isinstance(outputs, ModelError) else _attempt(partial(self._read_answer, plan, outputs, model))
            for plan, outputs in zip(plans, told, strict=True)
        ]

    def _likelihood(self, requests: Sequence[Likelihood], stop: threading.Event) -> list[Likelihoods | ModelError]:
        model, look = self._ready(), self._looker()
        plans = [_attempt(partial(self._plan_scores, request, model, look)) for request in requests]
        told = self._ask(model, [plan if isinstance(plan, ModelError) else plan.asked for plan in plans], stop)
        return [
            outputs if isinstance(outputs, ModelError) else _attempt(partial(self._read_scores, plan, outputs))
            for plan, outputs in zip(plans, told, strict=True)
        ]

    def _ask(
        self, model: _Model, asked: Sequence[Sequence[Asked] | ModelError], stop: threading.Event
    ) -> list[list[Any] | ModelError]:
        """Return vLLM's outputs per group of requests, or the error of one of them."""
        flat = [one for group in asked if not isinstance(group, ModelError) for one in group]
        try:
            outputs = iter(model.engine.run(flat, stop) if flat else ())
        finally:
            if not model.engine.alive:
                self._free()
        found: list[list[Any] | ModelError] = []
        for group in asked:
            if isinstance(group, ModelError):
                found.append(group)
                continue
            told = [next(outputs) for _ in group]
            found.append(next((output for output in told if isinstance(output, ModelError)), told))
        return found

    def _plan_answer(self, request: Generate, model: _Model, look: Callable[[str], Any]) -> answers.Plan:
        options = self._options
        most = answer_length(request, options.max_new_tokens, None, options.answer_room)
        prompt = model.prompts.render(request.messages, model.tokenizer)
        ids = model.encoder.encode([prompt.text], prompt.special)[0]
        names = images_of(request.messages)
        self._check_size(ids, 1, model)
        choice = choose(request, model.defaults, ids, names)
        opened = is_opened(prompt.text)
        reasons = opened or bool(options.answer_room)
        stops = request.sampling.stop
        most = min(most, model.engine.max_tokens - len(ids))
        params = answers.parameters(request, choice, most, model.ends, stops=bool(stops) and not reasons)
        asked = Asked(ids, params, [look(name) for name in names])
        return answers.Plan(asked, stops, opened, max(0, request.top_logprobs))

    def _read_answer(self, plan: answers.Plan | ModelError, outputs: list[Any], model: _Model) -> Generation:
        assert isinstance(plan, answers.Plan)
        return answers.read(plan, outputs[0], model.encoder)

    def _plan_scores(self, request: Likelihood, model: _Model, look: Callable[[str], Any]) -> likelihood.Plan:
        prompt = model.prompts.render(request.prompt, model.tokenizer)
        rows = model.encoder.rows(prompt.text, request.continuations, prompt.special)
        for row in rows:
            self._check_size(row.ids, 0, model)
        return likelihood.plan(rows, [look(name) for name in images_of(request.prompt)])

    def _read_scores(self, plan: likelihood.Plan | ModelError, outputs: list[Any]) -> Likelihoods:
        assert isinstance(plan, likelihood.Plan)
        found = likelihood.read(plan, outputs)
        if not all(math.isfinite(value) for score in found.scores for value in score.values or ()):
            raise not_finite("log-probabilities that are", self.identity.model, self._dtype)
        return found

    def _looker(self) -> Callable[[str], Any]:
        """Return what opens an image by its sha256, each once per call."""
        return cache(lambda name: open_image(name, self.services.blobs))

    def _check_size(self, ids: Sequence[int], room: int, model: _Model) -> None:
        check_size(ids, room, model.engine.max_tokens, self.identity.model)
        check_known(ids, model.engine.vocabulary, self.identity.model)

    def _ready(self) -> _Model:
        """Return the model, starting its engine at the first call. Runs in the thread."""
        if self._model is None:
            options, source = self._options, self._source
            folder = fetch(source)
            tokenizer = load_tokenizer(folder, source)
            marker = image_marker(source.config, tokenizer)
            arguments = engine_arguments(options, self._dtype, sees=marker is not None)
            engine = Engine(folder, arguments, invariant=options.batch_invariant)
            settings = read_settings(source)
            self._model = _Model(
                engine,
                tokenizer,
                Encoder(tokenizer, start=options.start),
                Picturing(self._style, marker, tokenizer.bos_token, options.max_images),
                sampling_defaults(settings),
                named_ends(settings, source.config, tokenizer),
            )
        return self._model

    def _free(self) -> None:
        model, self._model = self._model, None
        if model is not None:
            model.engine.close()


def _attempt(call: Callable[[], P]) -> P | ModelError:
    try:
        return call()
    except ModelError as error:
        return error
