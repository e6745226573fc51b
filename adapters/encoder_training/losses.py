"""The four losses of Santhosh et al. (2025), section Contrastive Learning, on one batch of whole contexts.

S is the matrix of cosines. A positive pair is two sentences of one context and one type, a negative pair two of one
context and both types; sentences of different contexts are no pair.

NT-Xent    mean over ordered positive pairs of -log(exp(S_ij/t) / sum of exp(S_ik/t) over all k != i of the batch)
NT-BXent   l_ij = -log sigmoid(S_ij/t) for positive pairs, -log sigmoid((1 - S_ij)/t) for negative ones; for each
           sentence i the mean of l over its positive pairs times their weight, and the mean over its negative pairs
           times theirs; both averaged over the sentences that have such pairs
pairwise   mean over pairs of 1 - S_ij (positive) or max(0, S_ij - m) (negative)
triplet    mean over triplets (i, j, l) of max(0, S_il - S_ij + m), ij positive and il negative
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import torch
from torch import Tensor
from torch.nn import functional

from .settings import LossSettings

BUCKET = 32
"""Sentences of one padded forward pass where batches are cut by length."""


class Pairs(NamedTuple):
    """Which entries of the matrix of cosines are pairs: [batch, batch] each."""

    positive: Tensor
    negative: Tensor


class ContrastiveLoss(torch.nn.Module):  # type: ignore[misc]
    """One of the losses, as the Trainer of sentence-transformers calls it."""

    def __init__(self, model: Any, settings: LossSettings, buckets: bool = True) -> None:
        super().__init__()
        self.model, self.settings, self.buckets = model, settings, buckets

    def forward(self, features: list[dict[str, Any]], labels: Tensor) -> Tensor:
        """Return the loss of a batch; a label is twice the context, plus 1 for a stereotype."""
        vectors = embed_in_buckets(self.model, features[0]) if self.buckets else _embed(self.model, features[0])
        pairs = find_pairs(labels // 2, labels % 2)
        if not pairs.positive.any() or not pairs.negative.any():
            return vectors.sum() * 0.0
        # Half precision does not resolve cosines near 1.
        with torch.autocast(vectors.device.type, enabled=False):
            return contrastive_loss(vectors.float(), pairs, self.settings)

    def get_config_dict(self) -> dict[str, Any]:
        """Return the settings for the model card."""
        return msgspec.structs.asdict(self.settings)


class TypeLoss(torch.nn.Module):  # type: ignore[misc]
    """Binary cross-entropy of the type, for a model whose only output is its logit."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, features: list[dict[str, Any]], labels: Tensor) -> Tensor:
        """Return the loss of a batch; an odd label is a stereotype."""
        logits = _embed(self.model, features[0])[:, 0].float()
        return functional.binary_cross_entropy_with_logits(logits, (labels % 2).float())


def embed_in_buckets(model: Any, features: dict[str, Any]) -> Tensor:
    """Return the vectors of a batch, in its order, padded in passes of `BUCKET` sentences of similar length.

    Dropout apart, the vectors equal those of one pass.
    """
    mask = features["attention_mask"]
    order = mask.sum(1).argsort(stable=True)
    passes = [_embed(model, _trimmed(features, mask, rows)) for rows in order.split(BUCKET)]
    return torch.cat(passes)[order.argsort()]


def find_pairs(contexts: Tensor, stereotype: Tensor) -> Pairs:
    """Mark the ordered pairs of a batch."""
    together = contexts[:, None] == contexts[None, :]
    alike = stereotype[:, None] == stereotype[None, :]
    positive = together & alike
    positive.fill_diagonal_(False)
    return Pairs(positive, together & ~alike)


def contrastive_loss(vectors: Tensor, pairs: Pairs, settings: LossSettings) -> Tensor:
    """Return the loss of a batch: a scalar. Vectors [batch, width] need no unit length."""
    scaled = functional.normalize(vectors, dim=1)
    return FORMULAS[settings.name](scaled @ scaled.T, pairs, settings)


def _embed(model: Any, features: dict[str, Any]) -> Tensor:
    vectors: Tensor = model(dict(features))["sentence_embedding"]
    return vectors


def _trimmed(features: dict[str, Any], mask: Tensor, rows: Tensor) -> dict[str, Any]:
    """Return some rows of the features without the columns that only pad them."""
    used = mask[rows].any(0)
    return {
        name: value[rows][:, used] if isinstance(value, Tensor) and value.shape == mask.shape else value
        for name, value in features.items()
    }


def _nt_xent(cosines: Tensor, pairs: Pairs, settings: LossSettings) -> Tensor:
    logits = cosines / settings.temperature
    itself = torch.eye(len(logits), dtype=torch.bool, device=logits.device)
    log_share = logits - logits.masked_fill(itself, float("-inf")).logsumexp(1, keepdim=True)
    return -log_share[pairs.positive].mean()


def _nt_bxent(cosines: Tensor, pairs: Pairs, settings: LossSettings) -> Tensor:
    near = -functional.logsigmoid(cosines / settings.temperature)
    far = -functional.logsigmoid((1 - cosines) / settings.temperature)
    positive, negative = _by_sentence(near, pairs.positive), _by_sentence(far, pairs.negative)
    return settings.positive_weight * positive + settings.negative_weight * negative


def _by_sentence(values: Tensor, chosen: Tensor) -> Tensor:
    counts = chosen.sum(1)
    return ((values * chosen).sum(1)[counts > 0] / counts[counts > 0]).mean()


def _pairwise(cosines: Tensor, pairs: Pairs, settings: LossSettings) -> Tensor:
    near = (1 - cosines)[pairs.positive]
    far = (cosines - settings.margin).clamp(min=0)[pairs.negative]
    return torch.cat([near, far]).mean()


def _triplet(cosines: Tensor, pairs: Pairs, settings: LossSettings) -> Tensor:
    anchor, other = pairs.positive.nonzero(as_tuple=True)
    # Each positive pair against all negative partners of its anchor: [positive pairs, batch].
    rise = (cosines[anchor] - cosines[anchor, other][:, None] + settings.margin).clamp(min=0)
    return rise[pairs.negative[anchor]].mean()


FORMULAS: dict[str, Callable[[Tensor, Pairs, LossSettings], Tensor]] = {
    "nt-xent": _nt_xent,
    "nt-bxent": _nt_bxent,
    "pairwise": _pairwise,
    "triplet": _triplet,
}
"""The losses by name: from cosines, pairs and parameters to a scalar."""
