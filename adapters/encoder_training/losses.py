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

from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import msgspec

if TYPE_CHECKING:
    from torch import Tensor

LossName = Literal["nt-xent", "nt-bxent", "pairwise", "triplet"]
LOSSES: tuple[LossName, ...] = get_args(LossName)
BY_TEMPERATURE: tuple[LossName, ...] = ("nt-xent", "nt-bxent")


class LossSettings(msgspec.Struct, frozen=True, kw_only=True):
    """A loss and its parameters."""

    name: LossName
    temperature: float = 0.1
    """Of NT-Xent and NT-BXent."""
    margin: float = 0.5
    """Of the pairwise and the triplet loss."""
    positive_weight: float = 1.0
    """Of the positive pairs in NT-BXent."""
    negative_weight: float = 1.0
    """Of the negative pairs in NT-BXent."""

    @property
    def parameter(self) -> Literal["temperature", "margin"]:
        """Return which of the two this loss has."""
        return "temperature" if self.name in BY_TEMPERATURE else "margin"

    @property
    def chosen(self) -> float:
        """Return the value of that one."""
        return self.temperature if self.name in BY_TEMPERATURE else self.margin


class Pairs(NamedTuple):
    """Which entries of the matrix of cosines are pairs: [batch, batch] each."""

    positive: Tensor
    negative: Tensor


def find_pairs(contexts: Tensor, stereotype: Tensor) -> Pairs:
    """Mark the ordered pairs of a batch."""
    together = contexts[:, None] == contexts[None, :]
    alike = stereotype[:, None] == stereotype[None, :]
    positive = together & alike
    positive.fill_diagonal_(False)
    return Pairs(positive, together & ~alike)


def contrastive_loss(vectors: Tensor, pairs: Pairs, settings: LossSettings) -> Tensor:
    """Return the loss of a batch: a scalar. Vectors [batch, width] need no unit length."""
    import torch.nn.functional as functional

    scaled = functional.normalize(vectors, dim=1)
    return _LOSSES[settings.name](scaled @ scaled.T, pairs, settings)


def _nt_xent(cosines: Tensor, pairs: Pairs, settings: LossSettings) -> Tensor:
    import torch

    logits = cosines / settings.temperature
    itself = torch.eye(len(logits), dtype=torch.bool, device=logits.device)
    log_share = logits - logits.masked_fill(itself, float("-inf")).logsumexp(1, keepdim=True)
    return -log_share[pairs.positive].mean()


def _nt_bxent(cosines: Tensor, pairs: Pairs, settings: LossSettings) -> Tensor:
    import torch.nn.functional as functional

    near = -functional.logsigmoid(cosines / settings.temperature)
    far = -functional.logsigmoid((1 - cosines) / settings.temperature)
    return settings.positive_weight * _by_sentence(near, pairs.positive) + settings.negative_weight * _by_sentence(
        far, pairs.negative
    )


def _by_sentence(values: Tensor, chosen: Tensor) -> Tensor:
    counts = chosen.sum(1)
    has = counts > 0
    return ((values * chosen).sum(1)[has] / counts[has]).mean()


def _pairwise(cosines: Tensor, pairs: Pairs, settings: LossSettings) -> Tensor:
    near = (1 - cosines)[pairs.positive].sum()
    far = (cosines - settings.margin).clamp(min=0)[pairs.negative].sum()
    return (near + far) / (pairs.positive.sum() + pairs.negative.sum())


def _triplet(cosines: Tensor, pairs: Pairs, settings: LossSettings) -> Tensor:
    anchor, other = pairs.positive.nonzero(as_tuple=True)
    # [positive pairs, batch]: each pair against all that its anchor could be told from.
    rise = (cosines[anchor] - cosines[anchor, other][:, None] + settings.margin).clamp(min=0)
    chosen = pairs.negative[anchor]
    return (rise * chosen).sum() / chosen.sum()


_LOSSES = {"nt-xent": _nt_xent, "nt-bxent": _nt_bxent, "pairwise": _pairwise, "triplet": _triplet}
