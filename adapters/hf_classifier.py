"""`hf-classifier`: probabilities per label from any Transformers sequence classifier, local or from the hub."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Annotated, ClassVar

import msgspec
import numpy as np

from ..core.adapter import Identity, Limits
from ..core.contracts import Options
from ..core.errors import ModelError, PermanentError
from ..core.records import Classification, Classify, Usage
from ._classifier_labels import CLASSIFIER, choose_activation
from ._classifier_model import Classifier, load_classifier
from ._classifier_passes import Row
from ._classifier_scorer import ClassifierScorer, Encoded, check, encode
from ._hf_files import find_source
from ._hf_kinds import check_kind
from ._threaded import ThreadedAdapter
from ._torch import DType, release_memory, require_torch

VERSION = "1"
Positive = Annotated[int, msgspec.Meta(ge=1)]


class HFClassifierOptions(Options, frozen=True, kw_only=True):
    """Settings of `hf-classifier`."""

    model: str
    """A directory, or a name on the Hugging Face hub."""
    revision: str | None = None
    """Branch, tag or commit of a hub name; None takes its main branch. The commit it stands for is recorded."""
    dtype: DType = "float32"
    """Precision of weights and activations; probabilities are always taken in float64."""
    device: str = "auto"
    """`cuda`, `cuda:1`, `mps`, `cpu`; `auto` takes the first there is."""
    multi_label: bool | None = None
    """True: labels are independent (a sigmoid each). False: exactly one is right (softmax). None: as the model's
    configuration says (`problem_type`)."""
    truncate: bool = False
    """Cut what is too long at its end (of a pair: the longer text) instead of refusing it."""
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


class HFClassifier(ThreadedAdapter):
    """A sequence classifier of Transformers: sentiment, toxicity, and NLI on text pairs.

    Labels are those of the model's configuration (`id2label`), in its order; none is renamed.
    """

    options: ClassVar[type[msgspec.Struct]] = HFClassifierOptions

    def __init__(self, options: HFClassifierOptions) -> None:
        """Check the model's files and pin them; weights load at the first call.

        Raises:
            MissingExtraError: torch or Transformers is not installed.
            ModelLoadError: the model is not there, incomplete, or of another kind.
        """
        require_torch("adapter 'hf-classifier'")
        self._options = options
        self._source = find_source(
            options.model,
            options.revision,
            allow_pickle=options.allow_pickle,
            trust_remote_code=options.trust_remote_code,
        )
        config, name = self._source.config, self._source.name
        check_kind(CLASSIFIER, config, name, trust_remote_code=options.trust_remote_code)
        self._activation = choose_activation(config, name, multi_label=options.multi_label)
        self.identity = self._identify()
        self.limits = Limits(concurrency=1, batch_items=options.batch_items)
        self._start("hf-classifier")
        self._engine: tuple[Classifier, ClassifierScorer] | None = None

    async def classify_batch(self, requests: Sequence[Classify]) -> Sequence[Classification | ModelError]:
        """Classify texts and pairs; a request that cannot be answered has a `PermanentError` in its place.

        Raises:
            ModelLoadError: the weights cannot be loaded (first call).
        """
        return await self._run(self._classify, requests)

    def _identify(self) -> Identity:
        options = self._options
        return Identity(
            adapter="hf-classifier",
            version=VERSION,
            model=self._source.name,
            digest=self._source.digest,
            settings={
                "dtype": options.dtype,
                "trust_remote_code": options.trust_remote_code,
                "activation": self._activation,
                **({"truncate": True} if options.truncate else {}),
            },
        )

    def _classify(self, requests: Sequence[Classify], stop: threading.Event) -> list[Classification | ModelError]:
        classifier, scorer = self._engine = self._engine or self._load()
        texts = [self._checked(text) for text in encode(classifier, requests, truncate=self._options.truncate)]
        fitting = [text for text in texts if isinstance(text, Encoded)]
        rows = iter(scorer.score(fitting, stop))
        return [text if isinstance(text, ModelError) else self._answer(text, next(rows)) for text in texts]

    def _checked(self, text: Encoded) -> Encoded | ModelError:
        assert self._engine is not None
        try:
            check(text, self._engine[0], self.identity.model)
        except ModelError as error:
            return error
        return text

    def _answer(self, text: Encoded, row: Row | None) -> Classification | ModelError:
        assert self._engine is not None
        if row is None:
            return PermanentError(
                f"a text of {len(text.ids)} tokens does not fit into this device's memory. "
                "Use device = 'cpu' or a smaller dtype."
            )
        if not np.isfinite(row).all():
            return PermanentError(
                f"{self.identity.model!r} gives probabilities that are not finite in {self._options.dtype}. "
                "Use dtype = 'float32'."
            )
        return Classification(
            probabilities=dict(zip(self._engine[0].labels, row.tolist(), strict=True)),
            usage=Usage(input_tokens=len(text.ids)),
        )

    def _load(self) -> tuple[Classifier, ClassifierScorer]:
        if self._options.threads is not None:
            import torch

            torch.set_num_threads(self._options.threads)
        classifier = load_classifier(self._source, self._options.dtype, self._options.device)
        return classifier, ClassifierScorer(classifier, self._activation, self._options.token_budget)

    def _free(self) -> None:
        if self._engine is not None:
            device = self._engine[0].device
            self._engine = None
            release_memory(device)
