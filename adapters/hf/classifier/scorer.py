"""Turn texts and text pairs into probabilities per label, many per forward pass."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ....core.contracts.errors import PermanentError
from ....core.contracts.records import Classify
from ..base import check_known
from .labels import Activation
from .model import Classifier
from .passes import Key, Passes, Row


class Encoded(NamedTuple):
    """A text, or a pair, as the model reads it."""

    ids: Sequence[int]
    types: Sequence[int] | None
    """Which text each token belongs to; None if the model does not use it."""


def encode(classifier: Classifier, requests: Sequence[Classify], *, truncate: bool) -> list[Encoded]:
    """Tokenise texts and pairs whole, or cut to the model's limit; special tokens added, nothing padded."""
    found: list[Encoded] = [Encoded((), None)] * len(requests)
    for paired in (False, True):
        rows = [row for row, request in enumerate(requests) if (request.pair is not None) == paired]
        if rows:
            texts = [[requests[row].text for row in rows]]
            pairs = [[requests[row].pair for row in rows]] if paired else []
            for row, encoded in zip(rows, _encode_alike(classifier, [*texts, *pairs], truncate), strict=True):
                found[row] = encoded
    return found


def check(encoded: Encoded, classifier: Classifier, name: str) -> None:
    """Refuse texts that the model cannot read.

    Raises:
        PermanentError: too long, no tokens at all, or tokens the model does not know.
    """
    size, most = len(encoded.ids), classifier.max_tokens
    if most is not None and size > most:
        raise PermanentError(
            f"the text (with its pair) has {size} tokens, {name!r} takes at most {most}. "
            "Shorten it, or set truncate = true to cut off its end.",
            code="request.too-long",
        )
    if not size:
        raise PermanentError(
            f"the tokenizer of {name!r} makes no tokens from this text, so it cannot be classified.",
            code="request.empty",
        )
    check_known(encoded.ids, classifier.vocabulary, name)
    if encoded.types and classifier.token_types is not None and max(encoded.types) >= classifier.token_types:
        raise PermanentError(
            f"the tokenizer of {name!r} marks the second text with type {max(encoded.types)}, "
            f"the model knows {classifier.token_types} type(s): they do not belong together.",
            code="request.tokenizer",
        )


class ClassifierScorer:
    """A sequence classifier that gives one row of probabilities per text."""

    def __init__(self, classifier: Classifier, activation: Activation, budget: int | None = None) -> None:
        self._model, self._device = classifier.model, classifier.device
        self._activation = activation
        config = classifier.model.config
        self._end = getattr(config, "eos_token_id", None)
        # Models that read the last token refuse to look for it in several rows without a padding token.
        lone = getattr(config, "pad_token_id", None) is None
        self.passes = Passes(self._device, budget, max_rows=1 if lone else None)

    def score(self, texts: Sequence[Encoded], stop: threading.Event | None = None) -> list[Row | None]:
        """Return per text one probability per label; None for a text that did not fit into memory.

        Raises:
            Stopped: `stop` was set between two passes.
        """
        return self.passes.run([self._key(text) for text in texts], lambda rows: self._forward(texts, rows), stop)

    def _key(self, text: Encoded) -> Key:
        # BART and its kin read the last end token, and refuse rows that differ in how many they have.
        return len(text.ids), sum(token == self._end for token in text.ids)

    def _forward(self, texts: Sequence[Encoded], rows: Sequence[int]) -> npt.NDArray[np.float64]:
        import torch

        inputs = {"input_ids": self._tensor([texts[row].ids for row in rows])}
        inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
        types = [kinds for row in rows if (kinds := texts[row].types) is not None]
        if types:
            inputs["token_type_ids"] = self._tensor(types)
        with torch.inference_mode():
            logits = self._model(**inputs).logits.double()
            found = logits.sigmoid() if self._activation == "sigmoid" else logits.softmax(-1)
            values: npt.NDArray[np.float64] = found.cpu().numpy()
        return values

    def _tensor(self, rows: Sequence[Sequence[int]]) -> Any:
        import torch

        return torch.tensor(rows, dtype=torch.long, device=self._device)


def _encode_alike(classifier: Classifier, columns: Sequence[Sequence[str | None]], truncate: bool) -> list[Encoded]:
    cut = truncate and classifier.max_tokens is not None
    encoding = classifier.tokenizer(
        *columns,
        truncation=cut,
        max_length=classifier.max_tokens if cut else None,
        padding=False,
        return_attention_mask=False,
        verbose=False,
    )
    ids = encoding["input_ids"]
    types = encoding.get("token_type_ids") if classifier.token_types != 0 else None
    return [Encoded(row, None if types is None else types[number]) for number, row in enumerate(ids)]
