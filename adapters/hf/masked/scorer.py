"""Score masked copies of many sentences: packed by length into forward passes of bounded size.

Each scored token is one row: its sentence with that token masked. Rows of one length share passes, so little or
nothing is padded, and a pass holds at most `budget` tokens, so that one long sentence cannot exhaust memory. The
vocabulary head runs on the masked position alone: a hook on the encoder cuts its output down to that position.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...shared.budget import Budget
from ...shared.torch import BUDGET, BUDGET_CPU, Stopped, agree
from .pll import Sentence

Values = npt.NDArray[np.float64]
MAX_LOGITS, MAX_LOGITS_CPU = 1 << 27, 1 << 22
"""Most logits of one pass: a vocabulary of 250,000 must not undo the token budget. 512 MiB in float32 on an
accelerator; 16 MiB on a processor, which is a fifth quicker there: larger blocks are fetched anew from the system."""
SLACK = 0.0
"""Share of a row that may be padding."""


class _Rows(NamedTuple):
    """All rows of a call on the device, the longest first."""

    ids: Any
    """Sentences, padded: [sentence, token]."""
    also_masked: Any
    """[sentence, token], see `Sentence`."""
    sentence: Any
    """[row]"""
    position: Any
    """[row]"""
    lengths: npt.NDArray[np.int64]
    """[row], on the host."""
    order: npt.NDArray[np.int64]
    """Number of each row before sorting."""


class MaskedScorer:
    """A masked language model that gives log P(token | rest) for one masked token per row."""

    def __init__(self, model: Any, mask_id: int, pad_id: int | None, budget: int | None = None) -> None:
        self._model, self._mask_id = model, mask_id
        self._pad_id = mask_id if pad_id is None else pad_id
        self._device = str(model.device)
        slow = self._device == "cpu"
        self.budget = Budget(self._device, BUDGET_CPU if slow else BUDGET, budget)
        self._most_logits = MAX_LOGITS_CPU if slow else MAX_LOGITS
        self._position: Any = None
        self._gathers = self._install_cuts()

    def score(self, sentences: Sequence[Sentence], stop: threading.Event | None = None) -> list[Values | None]:
        """Return per sentence one log-probability (natural logarithm) per scored position.

        None stands for a sentence of which even a single row did not fit into memory.

        Raises:
            Stopped: `stop` was set between two passes.
        """
        import torch

        with torch.inference_mode():
            rows = self._rows(sentences)
            found, lost = self._passes(rows, stop or threading.Event())
        values, missing = np.empty(len(rows.order)), np.empty(len(rows.order), dtype=bool)
        values[rows.order], missing[rows.order] = found.cpu().numpy(), lost
        ends = np.cumsum([len(sentence.positions) for sentence in sentences])[:-1]
        parts = zip(np.split(values, ends), np.split(missing, ends), strict=True)
        return [None if gaps.any() else part for part, gaps in parts]

    def _rows(self, sentences: Sequence[Sentence]) -> _Rows:
        import torch

        lengths = np.array([len(sentence.ids) for sentence in sentences])
        ids = np.full((len(sentences), lengths.max()), self._pad_id)
        also = np.full(ids.shape, -1)
        for row, sentence in enumerate(sentences):
            ids[row, : lengths[row]] = sentence.ids
            also[row, : lengths[row]] = sentence.also_masked
        owner = np.repeat(np.arange(len(sentences)), [len(sentence.positions) for sentence in sentences])
        order = np.argsort(-lengths[owner], kind="stable")
        positions = np.concatenate([np.asarray(sentence.positions) for sentence in sentences])
        return _Rows(
            ids=torch.from_numpy(ids).to(self._device),
            also_masked=torch.from_numpy(also).to(self._device),
            sentence=torch.from_numpy(owner[order]).to(self._device),
            position=torch.from_numpy(positions[order]).to(self._device),
            lengths=lengths[owner[order]],
            order=order,
        )

    def _passes(self, rows: _Rows, stop: threading.Event) -> tuple[Any, npt.NDArray[np.bool_]]:
        """Return the value of every row, and the rows that did not fit into memory."""
        import torch

        found = torch.zeros(len(rows.order), device=self._device)
        lost = np.zeros(len(rows.order), dtype=bool)
        start = 0
        while start < len(found):
            if stop.is_set():
                raise Stopped
            size = self._pass_size(rows.lengths, start)
            tokens = size * int(rows.lengths[start]) if size > 1 else 0
            run = partial(self._run_pass, rows, slice(start, start + size))
            scores = self.budget.attempt(run, partial(int, tokens))
            if scores is not None:
                found[start : start + size] = scores
            elif size > 1:
                continue
            else:
                lost[start] = True
            start += size
        return found, lost

    def _pass_size(self, lengths: npt.NDArray[np.int64], start: int) -> int:
        longest = int(lengths[start])
        logits = int(self._model.config.vocab_size) * (1 if self._gathers else longest)
        most = max(1, min(self.budget.tokens // longest, self._most_logits * self.budget.growth // logits))
        alike = int(np.searchsorted(-lengths, -longest * (1 - SLACK), side="right")) - start
        return min(most, alike)

    def _run_pass(self, rows: _Rows, part: slice) -> Any:
        import torch

        lengths = rows.lengths[part]
        longest = int(lengths[0])
        sentence, position = rows.sentence[part], rows.position[part, None]
        ids = rows.ids[sentence, :longest]
        targets = ids.gather(1, position)
        group = rows.also_masked[sentence, :longest]
        column = torch.arange(longest, device=ids.device)
        own = group.gather(1, position)
        ids = ids.masked_fill((group == own) & (own >= 0) & (column > position), self._mask_id)
        ids = ids.scatter(1, position, self._mask_id)
        attention = None
        if lengths[-1] < longest:
            attention = (column < torch.from_numpy(lengths).to(ids.device)[:, None]).long()
        logits = self._logits(ids, position[:, 0], attention).float()
        return -torch.nn.functional.cross_entropy(logits, targets[:, 0], reduction="none")

    def _logits(self, ids: Any, position: Any, attention: Any = None) -> Any:
        """Return the logits at one position per row: [row, vocabulary]."""
        import torch

        if not self._gathers:
            logits = self._model(input_ids=ids, attention_mask=attention).logits
            return logits[torch.arange(len(ids), device=ids.device), position]
        self._position = position
        try:
            return self._model(input_ids=ids, attention_mask=attention).logits[:, 0]
        finally:
            self._position = None

    def _install_cuts(self) -> bool:
        """Hook the earliest cut that does not change the logits; return whether there is one.

        After the last attention all is done position by position, so one position is enough from there on; the
        encoder's end comes next. A custom model may have a head that mixes positions: then all logits are computed
        and cut afterwards, which is slower but equally correct.
        """
        model, ids, position = self._model, *self._trial()
        self._gathers = False
        whole = self._trial_logits(ids, position)
        self._gathers = True
        last = [module for name, module in model.named_modules() if name.endswith("attention.output")][-1:]
        hooks = [module.register_forward_pre_hook(self._cut_inputs) for module in last]
        if model.base_model is not model:
            hooks.append(model.base_model.register_forward_hook(self._cut_output))
        for hook in hooks:
            cut = self._trial_logits(ids, position)
            if cut is not None and agree(cut, whole, model.dtype):
                return True
            hook.remove()
        return False

    def _cut_inputs(self, module: Any, inputs: Any) -> Any:
        return None if self._position is None else tuple(self._cut(hidden) for hidden in inputs)

    def _cut_output(self, module: Any, inputs: Any, output: Any) -> Any:
        if self._position is None or output[0].shape[1] == 1:
            return None
        if isinstance(output, tuple):
            return (self._cut(output[0]), *output[1:])
        output[next(iter(output))] = self._cut(output[0])
        return output

    def _cut(self, hidden: Any) -> Any:
        """Keep one position per row: [row, token, width] to [row, 1, width]."""
        import torch

        return hidden[torch.arange(len(hidden), device=hidden.device), self._position.to(hidden.device)].unsqueeze(1)

    def _trial(self) -> tuple[Any, Any]:
        """Return two rows of differing tokens and a position in each."""
        import torch

        ids = (torch.arange(16, device=self._device).view(2, 8) * 7 + 5) % self._model.config.vocab_size
        return ids.masked_fill(ids == self._pad_id, self._mask_id), torch.tensor([2, 5], device=self._device)

    def _trial_logits(self, ids: Any, position: Any) -> Any:
        import torch

        with torch.inference_mode():
            try:
                return self._logits(ids, position).float()
            except (RuntimeError, ValueError, LookupError, TypeError, AttributeError):
                if not self._gathers:
                    raise
                return None
