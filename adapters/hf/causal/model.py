"""Load a Transformers causal language model, and compute its logits only at the requested positions."""

from __future__ import annotations

import copy
import inspect
from typing import Any, NamedTuple

from ....core.contracts.errors import ModelLoadError
from ...shared.torch import BUDGET, BUDGET_CPU, agree, choose_device, quiet_loading
from ..files import Source, fetch
from ..load import Kind, load_tokenizer, load_weights, most_tokens
from ..loading import Loading

MAX_LOGITS, MAX_LOGITS_CPU = 1 << 27, 1 << 23
"""Most logits of one pass, so that a large vocabulary does not undo the token budget."""
FAILURES = (RuntimeError, ValueError, LookupError, TypeError, AttributeError, NotImplementedError)
"""Errors that a custom model raises for a missing feature."""


def _fits(architecture: str) -> bool:
    return architecture.endswith(("ForCausalLM", "LMHeadModel")) and not architecture.endswith("WithLMHeadModel")


CAUSAL = Kind("causal language model", "AutoModelForCausalLM", _fits)


class Loaded(NamedTuple):
    """A model on its device, and its tokenizer."""

    head: Head
    tokenizer: Any
    device: str
    max_tokens: int | None
    """Longest text in tokens, special ones included; None if the model names no limit."""
    vocabulary: int
    """Number of input embeddings."""


def load_causal(source: Source, loading: Loading) -> Loaded:
    """Load weights and tokenizer.

    Raises:
        ModelLoadError: not a causal model, missing weights, no fast tokenizer, no such device.
    """
    chosen = choose_device(loading.device)
    with quiet_loading():
        folder = fetch(source)
        tokenizer = load_tokenizer(folder, source)
        model = load_weights(folder, source, loading, chosen, CAUSAL.loader, f"a {CAUSAL.what}")
    vocabulary = model.get_input_embeddings().num_embeddings
    head = Head(model, vocabulary)
    if not head.is_causal():
        raise ModelLoadError(
            f"model {source.name!r} is not a causal language model: its output at a position depends on later tokens.",
            code="model.kind",
        )
    return Loaded(head, tokenizer, chosen, most_tokens(model, tokenizer), vocabulary)


class Head:
    """A causal language model whose vocabulary head runs on chosen positions only."""

    def __init__(self, model: Any, vocabulary: int) -> None:
        self.model, self.device, self.vocabulary = model, str(model.device), vocabulary
        slow = self.device == "cpu"
        self.budget, self.most_logits = (BUDGET_CPU, MAX_LOGITS_CPU) if slow else (BUDGET, MAX_LOGITS)
        self._numbers_positions = "position_ids" in inspect.signature(model.forward).parameters
        self._wanted: Any = None
        self._cuts = self._install_cut()

    def run(
        self, ids: Any, wanted: Any, past: Any = None, *, keep: bool = False, padding: tuple[Any, Any] | None = None
    ) -> tuple[Any, Any]:
        """Run one pass.

        Args:
            ids: Tokens, [row, token].
            wanted: Where logits are needed: numbers in `ids` laid out flat.
            past: Keys and values of the tokens before, one row per row; it is used up.
            keep: Return keys and values, too.
            padding: Attention mask and position numbers, where rows are padded in front.

        Returns:
            Logits in float32, [wanted, vocabulary], and keys and values if they are kept.
        """
        more: dict[str, Any] = {}
        if padding is not None:
            more["attention_mask"] = padding[0]
            if self._numbers_positions:
                more["position_ids"] = padding[1]
        if past is not None:
            more["past_key_values"] = past
        self._wanted = wanted if self._cuts else None
        try:
            output = self.model(input_ids=ids, use_cache=keep or past is not None, **more)
        finally:
            self._wanted = None
        logits = output.logits.flatten(0, 1)
        return (logits if self._cuts else logits[wanted]).float(), output.past_key_values if keep else None

    def same(self, one: Any, other: Any) -> bool:
        """Return whether two results of the same question agree within what the precision allows."""
        return agree(one, other, self.model.dtype)

    def trial(self, rows: int, width: int) -> Any:
        """Return rows of differing tokens."""
        import torch

        return (torch.arange(rows * width, device=self.device).view(rows, width) * 7 + 5) % self.vocabulary

    def is_causal(self) -> bool:
        """Return whether logits stay as they are when the last token changes."""
        import torch

        ids = self.trial(1, 8)
        other = ids.clone()
        other[0, -1] = (other[0, -1] + 1) % self.vocabulary
        wanted = torch.arange(7, device=self.device)
        with torch.inference_mode():
            return self.same(self.run(ids, wanted)[0], self.run(other, wanted)[0])

    def _install_cut(self) -> bool:
        """Cut the states down to the wanted ones before the vocabulary head, if that changes nothing."""
        import torch

        last = self.model.get_output_embeddings()
        ids, wanted = self.trial(2, 8), torch.tensor([2, 7, 13], device=self.device)
        self._cuts = False
        with torch.inference_mode():
            whole, _ = self.run(ids, wanted)
            if last is None:
                return False
            hook = last.register_forward_pre_hook(self._cut)
            self._cuts = True
            try:
                if self.same(self.run(ids, wanted)[0], whole):
                    return True
            except FAILURES:
                pass
        hook.remove()
        return False

    def _cut(self, module: Any, inputs: Any) -> Any:
        if self._wanted is None:
            return None
        return (inputs[0].flatten(0, 1)[self._wanted.to(inputs[0].device)].unsqueeze(0), *inputs[1:])


def take_rows(past: Any, rows: Any) -> Any:
    """Return keys and values of some rows, each as often as named, leaving `past` as it was."""
    if past is None:
        return None
    if hasattr(past, "layers"):
        taken = copy.copy(past)
        taken.layers = [copy.copy(layer) for layer in past.layers]
    else:
        taken = copy.deepcopy(past)
    taken.reorder_cache(rows)
    return taken
