"""Answer one prompt at a time, through the model's own generation: slow, and right for every model."""

from __future__ import annotations

from typing import Any

from ...shared.sampling import pick
from .answers import Answer
from .cache import place_media
from .model import Loaded
from .prompt import Encoded


def continue_plainly(loaded: Loaded, prompt: Encoded, answer: Answer) -> Answer:
    """Bring one answer to its end.

    Transformers drives the model here, since models number positions and keep states in ways of their own; the
    tokens are still chosen as everywhere else.
    """
    import torch
    from transformers import GenerationConfig

    tokenizer = loaded.processor.tokenizer

    def force(ids: Any, logits: Any) -> Any:
        (token,) = pick(logits.float(), [answer.choice], answer.step).tolist()
        answer.add(token, logits[0], tokenizer)
        return torch.full_like(logits, -torch.inf).index_fill(1, torch.tensor([token], device=logits.device), 0.0)

    def enough(ids: Any, scores: Any, **_: Any) -> Any:
        return torch.tensor([answer.done], device=ids.device)

    if not answer.done:
        with torch.inference_mode():
            loaded.model.generate(
                **_inputs(loaded, prompt, len(prompt.ids)),
                generation_config=GenerationConfig(max_new_tokens=answer.most, do_sample=False, pad_token_id=0),
                logits_processor=[force],
                stopping_criteria=[enough],
            )
    return answer


def score_plainly(loaded: Loaded, prompt: Encoded, start: int) -> list[float]:
    """Return log P of every token of one prompt from `start` on."""
    table = logits_plainly(loaded, prompt).log_softmax(-1)
    return [float(table[place - 1, prompt.ids[place]]) for place in range(start, len(prompt.ids))]


def logits_plainly(loaded: Loaded, prompt: Encoded) -> Any:
    """Return the logits of one whole pass: [token, vocabulary] in float32."""
    import torch

    with torch.inference_mode():
        return loaded.model(**_inputs(loaded, prompt, len(prompt.ids)), use_cache=False).logits[0].float()


def _inputs(loaded: Loaded, prompt: Encoded, length: int) -> dict[str, Any]:
    import torch

    ids = torch.tensor([prompt.ids[:length]], device=loaded.device)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), **place_media(loaded, prompt.media)}
