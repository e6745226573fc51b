"""`hf-encoder`: vectors of texts from any sentence-transformers model, local or from the hub."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Annotated, ClassVar

import msgspec
import numpy as np

from ..core.adapter import Identity, Limits
from ..core.contracts import Options
from ..core.errors import MissingExtraError, ModelError, PermanentError
from ..core.records import Embed, Embedding, Usage
from ._classifier_passes import Row
from ._encoder_files import EncoderSource, find_encoder
from ._encoder_model import Encoder, EncoderScorer, check_prompt, count_tokens, load_encoder
from ._threaded import ThreadedAdapter
from ._torch import DType, release_memory, require_torch

VERSION = "1"
EXTRA = "encoder"
Positive = Annotated[int, msgspec.Meta(ge=1)]


class HFEncoderOptions(Options, frozen=True, kw_only=True):
    """Settings of `hf-encoder`."""

    model: str
    """A directory saved by sentence-transformers, or a name on the Hugging Face hub."""
    revision: str | None = None
    """Branch, tag or commit of a hub name; None takes its main branch. The commit it stands for is recorded."""
    normalize: bool = False
    """Scale every vector to length 1."""
    prompt_name: str | None = None
    """Which of the model's prompts to put before every text; None takes the model's default, if it has one."""
    dtype: DType = "float32"
    """Precision of weights and activations."""
    device: str = "auto"
    """`cuda`, `cuda:1`, `mps`, `cpu`; `auto` takes the first there is."""
    truncate: bool = False
    """Cut what is too long at its end instead of refusing it."""
    token_budget: Positive | None = None
    """Tokens per forward pass: bounds memory, changes no answer. None takes 8,192 on a processor and 65,536 on an
    accelerator."""
    batch_items: Positive = 256
    """Texts per call."""
    trust_remote_code: bool = False
    """Run Python code that comes with the model."""
    allow_pickle: bool = False
    """Read pickled weights where there are no safetensors; a pickle can run code when read."""
    threads: Positive | None = None
    """CPU threads of this model's forward passes; None leaves torch's own choice."""


class HFEncoder(ThreadedAdapter):
    """A sentence encoder of sentence-transformers: one vector per text, as the model's own modules pool it."""

    options: ClassVar[type[msgspec.Struct]] = HFEncoderOptions

    def __init__(self, options: HFEncoderOptions) -> None:
        """Check the model's files and pin them; weights load at the first call.

        Raises:
            MissingExtraError: sentence-transformers is not installed.
            ModelLoadError: the model is not there, incomplete, or of another kind.
        """
        require_torch("adapter 'hf-encoder'", EXTRA)
        if find_spec("sentence_transformers") is None:
            raise MissingExtraError("adapter 'hf-encoder'", EXTRA)
        self._options = options
        self._source = find_encoder(
            options.model,
            options.revision,
            allow_pickle=options.allow_pickle,
            trust_remote_code=options.trust_remote_code,
        )
        if self._source.prompts is not None:
            check_prompt(options.prompt_name, self._source.prompts, self._source.name)
        self.identity = _identify(options, self._source)
        self.limits = Limits(concurrency=1, batch_items=options.batch_items)
        self._start("hf-encoder")
        self._engine: tuple[Encoder, EncoderScorer] | None = None

    async def embed_batch(self, requests: Sequence[Embed]) -> Sequence[Embedding | ModelError]:
        """Embed texts; one that cannot be embedded has a `PermanentError` in its place.

        Raises:
            ModelLoadError: the model cannot be loaded (first call).
        """
        return await self._run(self._embed, [request.text for request in requests])

    def _embed(self, texts: Sequence[str], stop: threading.Event) -> list[Embedding | ModelError]:
        encoder, scorer = self._engine = self._engine or self._load()
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
            return PermanentError(f"{self.identity.model!r} makes no tokens of this text: nothing to embed.")
        most = encoder.max_tokens
        if length is not None and most is not None and length > most and not self._options.truncate:
            return PermanentError(
                f"the text (with its prompt) has {length} tokens, {self.identity.model!r} takes at most {most}. "
                "Shorten it, or set truncate = true to have its end cut off."
            )
        return None

    def _answer(self, vector: Row | None, length: int | None, encoder: Encoder) -> Embedding | ModelError:
        if vector is None:
            return PermanentError(
                "this text does not fit into this device's memory. Use device = 'cpu' or a smaller dtype."
            )
        if not np.isfinite(vector).all():
            return PermanentError(
                f"{self.identity.model!r} gives a vector that is not finite in {self._options.dtype}. "
                "Use dtype = 'float32'."
            )
        if self._options.normalize:
            norm = float(np.linalg.norm(vector))
            if norm == 0:
                return PermanentError("the vector of this text is zero, so it cannot be scaled to length 1.")
            vector = vector / norm
        used = min(length or 0, encoder.max_tokens or length or 0)
        return Embedding(vector=tuple(vector.tolist()), usage=Usage(input_tokens=used))

    def _load(self) -> tuple[Encoder, EncoderScorer]:
        options = self._options
        if options.threads is not None:
            import torch

            torch.set_num_threads(options.threads)
        encoder = load_encoder(self._source, options.dtype, options.device, options.prompt_name)
        return encoder, EncoderScorer(encoder, options.token_budget)

    def _free(self) -> None:
        if self._engine is not None:
            device = self._engine[0].device
            self._engine = None
            release_memory(device)


def _identify(options: HFEncoderOptions, source: EncoderSource) -> Identity:
    return Identity(
        adapter="hf-encoder",
        version=VERSION,
        model=source.name,
        digest=source.digest,
        settings={
            "dtype": options.dtype,
            "trust_remote_code": options.trust_remote_code,
            "normalize": options.normalize,
            **({} if options.prompt_name is None else {"prompt_name": options.prompt_name}),
            **({"truncate": True} if options.truncate else {}),
        },
    )
