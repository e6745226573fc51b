"""`hf-encoder`: vectors of texts from any sentence-transformers model, local or from the hub."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from typing import ClassVar, NamedTuple

import msgspec
import numpy as np

from ....core.contracts import OptionEffect, harmless
from ....core.contracts.errors import MissingExtraError, ModelError, PermanentError
from ....core.contracts.model_files import ModelFiles, Recognised
from ....core.contracts.records import Embed, Embedding, Scalar, Usage
from ...shared.torch import require_torch
from ..base import HFAdapter, HFOptions, Naming, not_finite, too_large
from ..classifier.passes import Row
from ..loading import compile_model
from .allowed import MODULES
from .files import find_encoder, strange_in
from .model import Encoder, EncoderScorer, check_prompt, count_tokens, load_encoder

NAMING = Naming("hf-encoder", "1")
EXTRA = "encoder"


class HFEncoderOptions(HFOptions, frozen=True, kw_only=True):
    """Settings of `hf-encoder`; its directories are those saved by sentence-transformers."""

    option_effects = harmless("normalize prompt_name truncate")

    normalize: bool = False
    """Scale every vector to length 1."""
    prompt_name: str | None = None
    """Name of the model's prompt to put before every text; None takes the model's default, if it has one."""
    truncate: bool = False
    """Cut texts that are too long at their end instead of refusing them."""

    def list_effects(self) -> Iterable[OptionEffect]:
        """Return what these values do, and what the modules of a model on this machine would."""
        yield from super().list_effects()
        for named in strange_in(self.model) if not self.trust_remote_code else ():
            says = f"imports the class {named}, which {MODULES} of {self.model!r} names"
            yield OptionEffect("code", "model", self.model, says, "trust_remote_code is not set")


class _Engine(NamedTuple):
    encoder: Encoder
    scorer: EncoderScorer


class HFEncoder(HFAdapter[_Engine]):
    """A sentence encoder of sentence-transformers: one vector per text, as the model's own modules pool it."""

    options: ClassVar[type[msgspec.Struct]] = HFEncoderOptions
    _options: HFEncoderOptions

    def __init__(self, options: HFEncoderOptions) -> None:
        """Check the model's files and pin them; weights load at the first call.

        Raises:
            MissingExtraError: sentence-transformers is not installed.
            ModelLoadError: the model is not there, incomplete, or of another kind.
        """
        require_torch("adapter 'hf-encoder'", EXTRA)
        if find_spec("sentence_transformers") is None:
            raise MissingExtraError("adapter 'hf-encoder'", EXTRA)
        self._source = find_encoder(
            options.model,
            options.revision,
            allow_pickle=options.allow_pickle,
            trust_remote_code=options.trust_remote_code,
        )
        if self._source.prompts is not None:
            check_prompt(options.prompt_name, self._source.prompts, self._source.name)
        self._open(NAMING, options, self._source, _settings(options))

    @classmethod
    def recognise(cls, files: ModelFiles) -> Sequence[Recognised]:
        """Take folders of sentence-transformers."""
        return [Recognised(files.path, f"it has a {MODULES}")] if MODULES in files.names else []

    @classmethod
    def unsuitable(cls, files: ModelFiles, options: HFEncoderOptions) -> str:
        """Return why a folder is no sentence encoder."""
        if MODULES in files.names:
            return ""
        return (
            f"{options.model!r} has no {MODULES}, so it is not a sentence-transformers model. Give one that was saved "
            "by SentenceTransformer.save, which also says how its tokens are pooled."
        )

    async def embed_batch(self, requests: Sequence[Embed]) -> Sequence[Embedding | ModelError]:
        """Embed texts; one that cannot be embedded has a `PermanentError` in its place.

        Raises:
            ModelLoadError: the model cannot be loaded (first call).
        """
        return await self._run(self._embed, [request.text for request in requests])

    def _embed(self, texts: Sequence[str], stop: threading.Event) -> list[Embedding | ModelError]:
        encoder, scorer = self._ready()
        lengths = count_tokens(encoder, texts)
        answers = [self._refusal(encoder, None if lengths is None else lengths[row]) for row in range(len(texts))]
        fitting = [row for row, refusal in enumerate(answers) if refusal is None]
        known = None if lengths is None else [lengths[row] for row in fitting]
        vectors = dict(zip(fitting, scorer.embed([texts[row] for row in fitting], known, stop), strict=True))
        return [
            refusal or self._answer(vectors[row], None if lengths is None else lengths[row], encoder)
            for row, refusal in enumerate(answers)
        ]

    def _refusal(self, encoder: Encoder, length: int | None) -> ModelError | None:
        if length == 0:
            return PermanentError(
                f"{self.identity.model!r} makes no tokens from this text, so it cannot be embedded.",
                code="request.empty",
            )
        most = encoder.max_tokens
        if length is not None and most is not None and length > most and not self._options.truncate:
            return PermanentError(
                f"the text (with its prompt) has {length} tokens, {self.identity.model!r} takes at most {most}. "
                "Shorten it, or set truncate = true to cut off its end.",
                code="request.too-long",
            )
        return None

    def _answer(self, vector: Row | None, length: int | None, encoder: Encoder) -> Embedding | ModelError:
        if vector is None:
            return too_large("this text")
        if not np.isfinite(vector).all():
            return not_finite("a vector that is", self.identity.model, self._loading.dtype)
        if self._options.normalize:
            norm = float(np.linalg.norm(vector))
            if norm == 0:
                return PermanentError(
                    "the vector of this text is zero, so it cannot be scaled to length 1.", code="request.zero-vector"
                )
            vector = vector / norm
        used = min(length or 0, encoder.max_tokens or length or 0)
        return Embedding(vector=tuple(vector.tolist()), usage=Usage(input_tokens=used))

    def _growth(self) -> int:
        return 1 if self._engine is None else self._engine.scorer.passes.budget.growth

    def _load(self) -> _Engine:
        options = self._options
        encoder = load_encoder(self._source, self._loading, options.prompt_name)
        compile_model(getattr(encoder.model[0], "auto_model", encoder.model), self._loading)
        return _Engine(encoder, EncoderScorer(encoder, options.token_budget))


def _settings(options: HFEncoderOptions) -> dict[str, Scalar]:
    return {
        "normalize": options.normalize,
        **({} if options.prompt_name is None else {"prompt_name": options.prompt_name}),
        **({"truncate": True} if options.truncate else {}),
    }
