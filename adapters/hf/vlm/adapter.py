"""`hf-vlm`: answers and likelihoods of Transformers vision-language models; an image is encoded once."""

from __future__ import annotations

import hashlib
import math
import threading
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, NamedTuple

import msgspec

from ....core.contracts import harmless
from ....core.contracts.abilities import Abilities
from ....core.contracts.errors import ModelError
from ....core.contracts.model_files import ModelFiles, Recognised
from ....core.contracts.records import Generate, Generation, Likelihood, Likelihoods, Scalar, TokenScores, Usage
from ....core.contracts.thinking import Level
from ....core.reading.reasoning import is_opened
from ...shared.images import require_pillow
from ...shared.reasoning import thinking_settings
from ...shared.sampling import HONOURED
from ...shared.start import AUTO, Start
from ...shared.thinking import by_template, check_arguments
from ...shared.torch import require_torch
from ..base import HFAdapter, HFOptions, Naming, Positive, not_finite, open_source, too_large
from ..checkpoint import folder_template, is_plain
from ..files import CONFIG
from ..load import Kind
from ..loading import compile_model
from ..start import recorded_start
from ..text import Encoder
from .answers import Wish
from .engine import ONE, Engine
from .groups import Asked, Held, Work, by_image
from .model import MORE, PROCESSORS, Loaded, find_template, load_vlm
from .prompt import Scored, encode, plan_answer, plan_scores, render
from .shareable import try_sharing

NAMING = Naming("hf-vlm", "3")
EXTRA = "vlm"
_OTHER = ("ForMaskedLM", "ForCausalLM", "ForSequenceClassification", "ForTokenClassification", "ForImageClassification")
KIND = Kind("vision-language model", "AutoModelForImageTextToText", lambda kind: not kind.endswith(_OTHER))


class HFVLMOptions(HFOptions, frozen=True, kw_only=True):
    """Settings of `hf-vlm`. The token budget counts questions, without their image."""

    option_effects = harmless("start answer_room chat_template_kwargs")

    batch_items: Positive = 512
    """Maximum number of requests per call; those about one image share it. On CUDA it grows with the passes."""
    start: Start = AUTO
    """What stands before a plain text: `auto`, what the tokenizer puts there; `bos`, `eos`, `none`; or a text. Messages
    have it from the chat template."""
    answer_room: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Tokens added to the limit of every answer, for a model that reasons before it answers."""
    chat_template_kwargs: dict[str, Any] = {}
    """Arguments of the model's chat template, such as {enable_thinking = false}."""

    @classmethod
    def think(cls, level: Level, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        """Set the argument of the model's chat template."""
        return by_template(settings, level, folder_template(str(settings.get("model"))))


class _Model(NamedTuple):
    loaded: Loaded
    engine: Engine


class HFVLM(HFAdapter[_Model]):
    """A vision-language model of Transformers (LLaVA 1.5, Liu et al. 2024, and others of its kind)."""

    options: ClassVar[type[msgspec.Struct]] = HFVLMOptions
    kind: ClassVar[Kind | None] = KIND
    _options: HFVLMOptions

    def __init__(self, options: HFVLMOptions) -> None:
        """Check the model's files and pin them; weights load at the first call.

        Raises:
            MissingExtraError: torch, Transformers or Pillow is not installed.
            ModelLoadError: the model is not there, incomplete, of another kind, or without a chat template.
        """
        require_torch("adapter 'hf-vlm'", EXTRA)
        require_pillow("adapter 'hf-vlm'", EXTRA)
        self._source = open_source(options, KIND, MORE)
        self._template = find_template(self._source)
        check_arguments(options.chat_template_kwargs, self._template, self._source.name)
        settings: dict[str, Scalar] = {
            "chat_template": hashlib.sha256(self._template.encode()).hexdigest(),
            **recorded_start(options, self._source),
            **thinking_settings(options, options.chat_template_kwargs),
        }
        self._open(NAMING, options, self._source, settings)

    @classmethod
    def recognise(cls, files: ModelFiles) -> Sequence[Recognised]:
        """Take folders of a model with a head for words, a part that sees, and a processor of images."""
        sees = "vision_config" in files.settings(CONFIG) and not {*files.names}.isdisjoint(PROCESSORS)
        return super().recognise(files) if sees and not any(map(is_plain, files.architectures)) else ()

    @classmethod
    def unsuitable(cls, files: ModelFiles, options: HFVLMOptions) -> str:
        """Return why a folder is no vision-language model: its configuration, or nothing that prepares images."""
        if why := super().unsuitable(files, options):
            return why
        if {*files.names}.isdisjoint(PROCESSORS):
            return f"{options.model!r} has no processor of images ({', '.join(PROCESSORS)}), so it sees none."
        return ""

    @classmethod
    def abilities(cls, options: Any) -> Abilities:
        """Return what the model can do."""
        return msgspec.structs.replace(super().abilities(options), fields=HONOURED)

    async def generate_batch(self, requests: Sequence[Generate]) -> Sequence[Generation | ModelError]:
        """Answer messages, images among them; a request that cannot be answered has its error in its place.

        Raises:
            ModelLoadError: the weights cannot be loaded (first call).
        """
        return await self._run(self._generate, requests)

    async def likelihood_batch(self, requests: Sequence[Likelihood]) -> Sequence[Likelihoods | ModelError]:
        """Score continuations; messages are followed by the model's own start of an answer.

        Raises:
            ModelLoadError: the weights cannot be loaded (first call).
        """
        return await self._run(self._likelihood, requests)

    def _generate(self, requests: Sequence[Generate], stop: threading.Event) -> list[Generation | ModelError]:
        loaded, engine = self._ready()
        errors: dict[int, ModelError] = {}

        def plan(number: int, held: Held) -> list[Work[Wish]]:
            request = requests[number]
            text = render(loaded, request.messages)
            prompt = held.prompts.get(text) or encode(loaded, text, held.pictures)
            held.prompts[text] = prompt
            wish = plan_answer(loaded, request, prompt, held.names)._replace(opened=is_opened(text))
            return [Work(number, Asked(held.names, prompt), wish)]

        groups = by_image([request.messages for request in requests], self.services.blobs, plan, errors)
        written = engine.generate(groups, stop)

        def generation(number: int) -> Generation | ModelError:
            if number in errors:
                return errors[number]
            if (answer := written[number]) is None:
                return too_large(ONE)
            return answer.finish(loaded.encoder)

        return [generation(number) for number in range(len(requests))]

    def _likelihood(self, requests: Sequence[Likelihood], stop: threading.Event) -> list[Likelihoods | ModelError]:
        loaded, engine = self._ready()
        scores: list[list[TokenScores]] = [[] for _ in requests]
        overlaps = [0] * len(requests)
        errors: dict[int, ModelError] = {}

        def plan(number: int, held: Held) -> list[Work[Scored]]:
            request = requests[number]
            text = render(loaded, request.prompt)
            planned = plan_scores(
                loaded, text, request.continuations, held.pictures, plain=isinstance(request.prompt, str)
            )
            return [Work(number, Asked(held.names, whole), scored) for whole, scored in planned]

        for works in by_image([request.prompt for request in requests], self.services.blobs, plan, errors):
            try:
                values = engine.score([work.asked for work in works], [work.how.start for work in works], stop)
            except ModelError as error:
                errors.update(dict.fromkeys((work.request for work in works), error))
                continue
            for work, row in zip(works, values, strict=True):
                scores[work.request].append(_token_scores(work.asked, row))
                overlaps[work.request] = work.how.overlap
        pairs = enumerate(zip(scores, overlaps, strict=True))
        return [errors.get(number) or self._likelihoods(rows, overlap) for number, (rows, overlap) in pairs]

    def _likelihoods(self, rows: Sequence[TokenScores], overlap: int) -> Likelihoods | ModelError:
        if not all(math.isfinite(row.log_probability) for row in rows):
            return not_finite("log-probabilities that are", self.identity.model, self._loading.dtype)
        usage = Usage(input_tokens=sum(row.usage.input_tokens for row in rows))
        return Likelihoods(scores=tuple(rows), overlap=overlap, usage=usage)

    def _growth(self) -> int:
        return 1 if self._engine is None else self._engine.engine.budget.growth

    def _load(self) -> _Model:
        options = self._options
        loaded = load_vlm(self._source, self._template, self._loading)._replace(
            answer_room=options.answer_room, arguments=options.chat_template_kwargs
        )
        if options.start != AUTO:
            loaded = loaded._replace(plain_encoder=Encoder(loaded.processor.tokenizer, start=options.start))
        engine = Engine(loaded, try_sharing(loaded, self._source.name), options.token_budget)
        compile_model(loaded.model, self._loading)
        return _Model(loaded, engine)


def _token_scores(asked: Asked, values: Sequence[float]) -> TokenScores:
    usage = Usage(input_tokens=len(asked.prompt.ids))
    return TokenScores(log_probability=math.fsum(values), count=len(values), values=tuple(values), usage=usage)
