"""The losses of Santhosh et al. (2025) on a batch of whole contexts: those of their program, and the printed formulas.

S is the matrix of cosines. A positive pair is two different sentences of one context and one type, a negative pair two
of one context and both types. The losses of the program are computed in each context, and averaged over contexts:

nt-xent    mean over positive pairs of -log(exp(S_ij/t) / (exp(S_ij/t) + sum of exp(S/t) over all negative pairs))
nt-bxent   mean over positive pairs of -log sigmoid(S/t), plus mean over negative pairs of -log(1 - sigmoid(S/t))
pairwise   mean over positive pairs of 1 - S, plus mean over negative pairs of max(0, S - m)
triplet    mean of max(0, S_negative - S_positive + m) over every positive against every negative pair: no anchor

The printed formulas differ in two (section Contrastive Learning), and are computed on the whole batch:

nt-xent-printed    mean over positive pairs of -log(exp(S_ij/t) / sum of exp(S_ik/t) over all k != i of the batch)
nt-bxent-printed   the negative pairs count -log sigmoid((1 - S)/t)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

PRINTED = "-printed"


class ContrastiveLoss(torch.nn.Module):  # type: ignore[misc]
    """A loss of this name and temperature or margin, as the Trainer of sentence-transformers calls it."""

    def __init__(self, model: Any, name: str, value: float) -> None:
        super().__init__()
        self.model, self.name, self.value = model, name, value

    def forward(self, features: list[dict[str, Any]], labels: Tensor) -> Tensor:
        """Return the loss of a batch; a label is twice the context, plus 1 for a stereotype."""
        vectors = self.model(dict(features[0]))["sentence_embedding"]
        tokens = features[0]["input_ids"]
        # Half precision does not resolve cosines near 1.
        with torch.autocast(vectors.device.type, enabled=False):
            equal = (tokens[:, None] == tokens[None]).all(-1)
            return contrastive_loss(vectors.float(), labels, equal, self.name, self.value)


class TypeLoss(torch.nn.Module):  # type: ignore[misc]
    """Binary cross-entropy of the type, for a model whose only output is its logit."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, features: list[dict[str, Any]], labels: Tensor) -> Tensor:
        """Return the loss of a batch; an odd label is a stereotype."""
        logits = self.model(dict(features[0]))["sentence_embedding"][:, 0].float()
        return functional.binary_cross_entropy_with_logits(logits, (labels % 2).float())


def contrastive_loss(vectors: Tensor, labels: Tensor, equal: Tensor, name: str, value: float) -> Tensor:
    """Return the loss of a batch: a scalar, 0 where no context has pairs of both kinds.

    Args:
        vectors: [batch, width], of any length.
        labels: Twice the context, plus 1 for a stereotype: [batch].
        equal: Which sentences are word for word the same: [batch, batch].
        name: Of the loss.
        value: Its temperature or margin.
    """
    scaled = functional.normalize(vectors, dim=1)
    cosines, formula = scaled @ scaled.T, FORMULAS[name]
    context, kind = labels // 2, labels % 2
    together, alike = context[:, None] == context[None], kind[:, None] == kind[None]
    # Each pair once: the lower triangle repeats it.
    positive, negative = (together & alike & ~equal).triu(1), (together & ~alike).triu(1)
    if name.endswith(PRINTED):
        blocks = [torch.ones_like(context, dtype=torch.bool)]
    else:
        blocks = [context == one for one in context.unique()]
    found = []
    for own in blocks:
        pairs = [mask[own][:, own] for mask in (positive, negative)]
        if all(mask.any() for mask in pairs):
            found.append(formula(cosines[own][:, own], pairs[0], pairs[1], value))
    return torch.stack(found).mean() if found else vectors.sum() * 0.0


def _nt_xent(cosines: Tensor, positive: Tensor, negative: Tensor, temperature: float) -> Tensor:
    near, far = cosines[positive] / temperature, cosines[negative] / temperature
    return (torch.logaddexp(near, far.logsumexp(0)) - near).mean()


def _nt_bxent(cosines: Tensor, positive: Tensor, negative: Tensor, temperature: float) -> Tensor:
    near, far = cosines[positive] / temperature, cosines[negative] / temperature
    return -functional.logsigmoid(near).mean() - functional.logsigmoid(-far).mean()


def _pairwise(cosines: Tensor, positive: Tensor, negative: Tensor, margin: float) -> Tensor:
    return (1 - cosines[positive]).mean() + (cosines[negative] - margin).clamp(min=0).mean()


def _triplet(cosines: Tensor, positive: Tensor, negative: Tensor, margin: float) -> Tensor:
    return (cosines[negative][None] - cosines[positive][:, None] + margin).clamp(min=0).mean()


def _nt_xent_printed(cosines: Tensor, positive: Tensor, negative: Tensor, temperature: float) -> Tensor:
    itself = torch.eye(len(cosines), dtype=torch.bool, device=cosines.device)
    logits = (cosines / temperature).masked_fill(itself, float("-inf"))
    share = logits - logits.logsumexp(1, keepdim=True)
    return -share[positive | positive.T].mean()


def _nt_bxent_printed(cosines: Tensor, positive: Tensor, negative: Tensor, temperature: float) -> Tensor:
    near, far = cosines[positive] / temperature, (1 - cosines[negative]) / temperature
    return -functional.logsigmoid(near).mean() - functional.logsigmoid(far).mean()


FORMULAS: dict[str, Callable[[Tensor, Tensor, Tensor, float], Tensor]] = {
    "nt-xent": _nt_xent,
    "nt-bxent": _nt_bxent,
    "pairwise": _pairwise,
    "triplet": _triplet,
    "nt-xent-printed": _nt_xent_printed,
    "nt-bxent-printed": _nt_bxent_printed,
}
"""The losses by name: from cosines, the masks of pairs and the parameter to a scalar."""
