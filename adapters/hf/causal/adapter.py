"""`hf-causal`: answers and likelihoods of any Transformers causal language model, local or from the hub."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, NamedTuple

import msgspec
import numpy as np

from ....core.contracts import harmless
from ....core.contracts.abilities import CHAT, IMAGES, NO_TEMPLATE, Abilities
from ....core.contracts.errors import ModelError, PermanentError
from ....core.contracts.records import (
    Generate,
    Generation,
    Likelihood,
    Likelihoods,
    Prompt,
    TokenScores,
    TopToken,
    Usage,
)
from ....core.contracts.thinking import Level
from ....core.reading.reasoning import find_stop, is_opened
from ...shared.reasoning import thinking_settings
from ...shared.sampling import HONOURED, Defaults, answer_length, choose
from ...shared.start import AUTO, Start
from ...shared.thinking import by_template, check_arguments
from ...shared.torch import require_torch
from ..base import HFAdapter, HFOptions, Naming, Positive, check_known, check_size, not_finite, open_source, too_large
from ..checkpoint import folder_template
from ..generation import SETTINGS, end_tokens, read_settings, sampling_defaults
from ..load import Kind
from ..loading import compile_model
from ..start import recorded_start
from ..text import Encoder, Row
from .decoder import Decoder, Task, Written
from .model import CAUSAL, Loaded, load_causal
from .prompt import Chat, Rendered, choose_style
from .scorer import CausalScorer, Values

NAMING = Naming("hf-causal", "3")
_MORE = (SETTINGS, "chat_template*")


class HFCausalOptions(HFOptions, frozen=True, kw_only=True):
    """Settings of `hf-causal`."""

    option_effects = harmless("system_prompt max_new_tokens chat start answer_room chat_template_kwargs")

    system_prompt: str | None = None
    """Text before every prompt: as system message, or in front of a plain text."""
    max_new_tokens: Positive = 256
    """Maximum number of tokens of an answer if the request sets no limit."""
    chat: Chat = "auto"
    """How messages become text. `auto`: by the model's chat template, if it has one; `template`: always by it; `plain`:
    joined by blank lines."""
    start: Start = AUTO
    """What stands before the first token of a plain text. `auto`: what the tokenizer puts there; where that is nothing
    and the text has no prompt, its token for the beginning of a text, or `<|endoftext|>` if that is none or a mark of
    chats. `bos`, `eos`: always the token for the beginning or the end of a text; `none`: nothing; any other text: this
    text, in which `<|endoftext|>` and the like are tokens."""
    answer_room: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Tokens added to the limit of every answer, for a model that reasons before it answers."""
    chat_template_kwargs: dict[str, Any] = {}
    """Arguments of the model's chat template, such as {enable_thinking = false}."""

    @classmethod
    def think(cls, level: Level, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        """Set the argument of the model's chat template."""
        return by_template(settings, level, folder_template(str(settings.get("model"))))


class _Engine(NamedTuple):
    loaded: Loaded
    encoder: Encoder
    scorer: CausalScorer
    decoder: Decoder
    defaults: Defaults


class HFCausal(HFAdapter[_Engine]):
    """A causal language model of Transformers."""

    options: ClassVar[type[msgspec.Struct]] = HFCausalOptions
    kind: ClassVar[Kind | None] = CAUSAL
    _options: HFCausalOptions

    def __init__(self, options: HFCausalOptions) -> None:
        """Check the model's files and pin them; weights load at the first call.

        Raises:
            MissingExtraError: torch or Transformers is not installed.
            ModelLoadError: the model is not there, incomplete, of another kind, or lacks the chat template asked for.
        """
        require_torch("adapter 'hf-causal'")
        self._source = open_source(options, CAUSAL, _MORE)
        self._style = choose_style(options.chat, options.system_prompt, self._source, options.chat_template_kwargs)
        check_arguments(options.chat_template_kwargs, self._style.template, self._source.name)
        self._lacks = {} if self._style.template is not None else {CHAT: NO_TEMPLATE}
        settings = {
            "max_new_tokens": options.max_new_tokens,
            **self._style.settings(),
            **recorded_start(options, self._source),
            **thinking_settings(options, options.chat_template_kwargs),
        }
        self._open(NAMING, options, self._source, settings)

    @classmethod
    def abilities(cls, options: Any) -> Abilities:
        """Return what the model can do; it reads text only. A folder shows whether it has a chat template."""
        lacks = {IMAGES: "hf-causal reads text only; hf-vlm reads images."}
        if options.chat == "plain" or folder_template(options.model) == "":
            lacks[CHAT] = NO_TEMPLATE
        able = super().abilities(options).without(lacks)
        return msgspec.structs.replace(able, fields=HONOURED)

    async def generate_batch(self, requests: Sequence[Generate]) -> Sequence[Generation | ModelError]:
        """Continue messages; a request that cannot be answered has a `PermanentError` in its place.

        Raises:
            ModelLoadError: the weights cannot be loaded (first call).
        """
        return await self._run(self._generate, requests)

    async def likelihood_batch(self, requests: Sequence[Likelihood]) -> Sequence[Likelihoods | ModelError]:
        """Score continuations; a request that cannot be scored has a `PermanentError` in its place.

        Raises:
            ModelLoadError: the weights cannot be loaded (first call).
        """
        return await self._run(self._score, requests)

    def _score(self, requests: Sequence[Likelihood], stop: threading.Event) -> list[Likelihoods | ModelError]:
        engine = self._ready()
        plans = [self._plan_rows(request, engine) for request in requests]
        rows = [plan for plan in plans if not isinstance(plan, ModelError)]
        values = iter(engine.scorer.score(rows, stop) if rows else ())
        return [plan if isinstance(plan, ModelError) else self._likelihoods(plan, next(values)) for plan in plans]

    def _generate(self, requests: Sequence[Generate], stop: threading.Event) -> list[Generation | ModelError]:
        engine = self._ready()
        plans = [self._plan_task(request, engine) for request in requests]
        tasks = [plan for plan in plans if isinstance(plan, Task)]
        written = iter(engine.decoder.write(tasks, stop) if tasks else ())
        pairs = zip(requests, plans, strict=True)
        return [
            plan if isinstance(plan, ModelError) else self._generation(request, plan, next(written))
            for request, plan in pairs
        ]

    def _plan_rows(self, request: Likelihood, engine: _Engine) -> list[Row] | ModelError:
        try:
            prompt = self._render(request.prompt, engine)
            rows = engine.encoder.rows(prompt.text, request.continuations, prompt.special)
            for row in rows:
                self._check_size(row.ids, 0, engine.loaded)
            return rows
        except ModelError as error:
            return error

    def _plan_task(self, request: Generate, engine: _Engine) -> Task | ModelError:
        stops = request.sampling.stop
        try:
            most = answer_length(request, self._options.max_new_tokens, None, self._options.answer_room)
            prompt = self._render(request.messages, engine)
            ids = engine.encoder.encode([prompt.text], prompt.special)[0]
            self._check_size(ids, 1, engine.loaded)
            choice = choose(request, engine.defaults, ids)
        except ModelError as error:
            return error
        if engine.loaded.max_tokens is not None:
            most = min(most, engine.loaded.max_tokens - len(ids))
        opened = is_opened(prompt.text)
        ended = self._stopper(stops, ids, engine, opened) if stops else None
        return Task(tuple(ids), choice, most, ended, max(0, request.top_logprobs), opened)

    def _render(self, prompt: Prompt, engine: _Engine) -> Rendered:
        return self._style.render(prompt, engine.loaded.tokenizer)

    def _stopper(
        self, stops: Sequence[str], ids: Sequence[int], engine: _Engine, opened: bool
    ) -> Callable[[list[int]], bool]:
        return lambda answer: find_stop(engine.encoder.text(ids, answer), tuple(stops), opened=opened) is not None

    def _check_size(self, ids: Sequence[int], room: int, loaded: Loaded) -> None:
        check_size(ids, room, loaded.max_tokens, self.identity.model)
        check_known(ids, loaded.vocabulary, self.identity.model)

    def _likelihoods(self, rows: Sequence[Row], values: Sequence[Values] | None) -> Likelihoods | ModelError:
        if values is None:
            return too_large(f"a text of {max(len(row.ids) for row in rows)} tokens")
        if not all(np.isfinite(part).all() for part in values):
            return self._not_finite()
        split = rows[0].split
        return Likelihoods(
            scores=tuple(
                TokenScores(log_probability=math.fsum(part), count=len(part), values=tuple(part.tolist()))
                for part in values
            ),
            overlap=rows[0].overlap,
            usage=Usage(input_tokens=split + sum(len(row.ids) - split for row in rows)),
        )

    def _generation(self, request: Generate, task: Task, written: Written | None) -> Generation | ModelError:
        if written is None:
            return too_large(f"a text of {len(task.ids) + task.most} tokens")
        if written.broken or self._engine is None:
            return self._not_finite()
        encoder = self._engine.encoder
        text = encoder.text(task.ids, written.ids)
        end = find_stop(text, request.sampling.stop, opened=task.opened)
        return Generation(
            text=text[:end],
            opened=task.opened,
            finish_reason=written.reason,
            top_logprobs=tuple(tuple(TopToken(encoder.token(i), p) for i, p in tops) for tops in written.tops),
            usage=Usage(input_tokens=len(task.ids), output_tokens=len(written.ids)),
        )

    def _not_finite(self) -> PermanentError:
        return not_finite("log-probabilities that are", self.identity.model, self._loading.dtype)

    def _growth(self) -> int:
        return 1 if self._engine is None else max(self._engine.scorer.budget.growth, self._engine.decoder.budget.growth)

    def _load(self) -> _Engine:
        options = self._options
        loaded = load_causal(self._source, self._loading)
        scorer = CausalScorer(loaded.head, options.token_budget)
        ends = end_tokens(loaded.head.model, loaded.tokenizer)
        decoder = Decoder(loaded.head, ends, options.token_budget, caches=scorer.shares)
        compile_model(loaded.head.model, self._loading)
        encoder = Encoder(loaded.tokenizer, start=options.start)
        return _Engine(loaded, encoder, scorer, decoder, sampling_defaults(read_settings(self._source)))
