"""`hf-classifier`: probabilities per label from any Transformers sequence classifier, local or from the hub."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import msgspec
import numpy as np

from ....core.contracts import harmless
from ....core.contracts.errors import ModelError
from ....core.contracts.model_files import ModelFiles
from ....core.contracts.records import Classification, Classify, Usage
from ...shared.torch import require_torch
from ..base import HFAdapter, HFOptions, Naming, not_finite, open_source, too_large
from ..checkpoint import lacks_classes
from ..load import Kind
from ..loading import compile_model
from .labels import CLASSIFIER, choose_activation
from .model import Classifier, load_classifier
from .passes import Row
from .scorer import ClassifierScorer, Encoded, check, encode

NAMING = Naming("hf-classifier", "1")


class HFClassifierOptions(HFOptions, frozen=True, kw_only=True):
    """Settings of `hf-classifier`."""

    option_effects = harmless("multi_label truncate")

    multi_label: bool | None = None
    """True: labels are independent (a sigmoid each). False: exactly one is right (softmax). None: as in the model's
    configuration (`problem_type`)."""
    truncate: bool = False
    """Cut texts that are too long at their end (of a pair: the longer text) instead of refusing them."""


class _Engine(NamedTuple):
    classifier: Classifier
    scorer: ClassifierScorer


class HFClassifier(HFAdapter[_Engine]):
    """A sequence classifier of Transformers: sentiment, toxicity, and NLI on text pairs.

    Labels are those of the model's configuration (`id2label`), in its order; none is renamed.
    """

    options: ClassVar[type[msgspec.Struct]] = HFClassifierOptions
    kind: ClassVar[Kind | None] = CLASSIFIER
    _options: HFClassifierOptions

    def __init__(self, options: HFClassifierOptions) -> None:
        """Check the model's files and pin them; weights load at the first call.

        Raises:
            MissingExtraError: torch or Transformers is not installed.
            ModelLoadError: the model is not there, incomplete, or of another kind.
        """
        require_torch("adapter 'hf-classifier'")
        self._source = open_source(options, CLASSIFIER)
        config, name = self._source.config, self._source.name
        self._activation = choose_activation(config, name, multi_label=options.multi_label)
        settings = {"activation": self._activation, **({"truncate": True} if options.truncate else {})}
        self._open(NAMING, options, self._source, settings)

    @classmethod
    def unsuitable(cls, files: ModelFiles, options: HFClassifierOptions) -> str:
        """Return why a folder is no classifier: its configuration or its head."""
        if why := super().unsuitable(files, options):
            return why
        if lacks_classes(files):
            return (
                f"the checkpoint {options.model!r} has no weights of a head for classes, so every answer would be "
                "random. Give one that was fine-tuned as a classifier, head included."
            )
        return ""

    async def classify_batch(self, requests: Sequence[Classify]) -> Sequence[Classification | ModelError]:
        """Classify texts and pairs; a request that cannot be answered has a `PermanentError` in its place.

        Raises:
            ModelLoadError: the weights cannot be loaded (first call).
        """
        return await self._run(self._classify, requests)

    def _classify(self, requests: Sequence[Classify], stop: threading.Event) -> list[Classification | ModelError]:
        classifier, scorer = self._ready()
        encoded = encode(classifier, requests, truncate=self._options.truncate)
        texts = [self._checked(text, classifier) for text in encoded]
        fitting = [text for text in texts if isinstance(text, Encoded)]
        rows = iter(scorer.score(fitting, stop))
        return [text if isinstance(text, ModelError) else self._answer(text, next(rows), classifier) for text in texts]

    def _checked(self, text: Encoded, classifier: Classifier) -> Encoded | ModelError:
        try:
            check(text, classifier, self.identity.model)
        except ModelError as error:
            return error
        return text

    def _answer(self, text: Encoded, row: Row | None, classifier: Classifier) -> Classification | ModelError:
        if row is None:
            return too_large(f"a text of {len(text.ids)} tokens")
        if not np.isfinite(row).all():
            return not_finite("probabilities that are", self.identity.model, self._loading.dtype)
        return Classification(
            probabilities=dict(zip(classifier.labels, row.tolist(), strict=True)),
            usage=Usage(input_tokens=len(text.ids)),
        )

    def _growth(self) -> int:
        return 1 if self._engine is None else self._engine.scorer.passes.budget.growth

    def _load(self) -> _Engine:
        options = self._options
        classifier = load_classifier(self._source, self._loading)
        compile_model(classifier.model, self._loading)
        return _Engine(classifier, ClassifierScorer(classifier, self._activation, options.token_budget))
