"""The model card of a trained encoder: what it was made from, how, what it reached, and what it is not good for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from .._encoder_files import EncoderSource
from ._cells import Result
from ._data import Corpus
from ._losses import BY_TEMPERATURE
from ._similarity import Delta

_TEXT = """---
library_name: sentence-transformers
pipeline_tag: sentence-similarity
tags: [sentence-transformers, feature-extraction, stereotypes]
---
# {name}, trained to tell stereotypes from anti-stereotypes

Fine-tuned by `prejudge train-encoder` from `{base}` (`{digest}`) after the method of IndiCASA (paper 002).

| setting | value |
| --- | --- |
{settings}

Data ({sentences} sentences in {contexts} contexts; {sizes}):

{data}

## Validation delta-sim

The mean cosine of two sentences of one context and one type, less that of two of one context and both types, as an
absolute value (*reversed*: the difference is below 0); 95 % intervals resample contexts.

{deltas}

{split} {repeated} validation sentences stand word for word among the others.

## Limits

It sees the stereotypes of its data, as their authors and annotators saw them, and little else. A vector is no verdict:
read `confusion.json` beside the encoder's folder for how often it errs on held-out sentences, by category. The data's
licence, and the base model's, bind this model too.
"""
_SPLIT = {
    "sentence": "The split is by sentence, so sentences of one context, often near copies, stand on both sides.",
    "context": "The split is by context: no context of the validation part was trained on.",
}


def write_card(folder: Path, source: EncoderSource, corpus: Corpus, result: Result) -> None:
    """Write `README.md` into an encoder's folder."""
    text = _TEXT.format(
        name=source.name,
        base=source.name,
        digest=source.digest,
        settings="\n".join(f"| {name} | {value} |" for name, value in _settings(result).items()),
        sentences=f"{len(corpus.sentences):,}",
        contexts=corpus.contexts,
        sizes=", ".join(f"{name} {count:,}" for name, count in result.sizes.items()),
        data="\n".join(f"- `{name}`, sha256 `{digest}`" for name, digest in corpus.digests.items()),
        deltas=delta_table(result.before, result.after),
        split=_SPLIT[result.split],
        repeated=result.repeated,
    )
    (folder / "README.md").write_text(text, encoding="utf-8")


def delta_table(before: Mapping[str, Delta], after: Mapping[str, Delta]) -> str:
    """Return a Markdown table of delta-sim before and after."""
    rows = [f"| {name} | {_words(before[name])} | {_words(after[name])} |" for name in after]
    return "\n".join(["| category | before | after |", "| --- | --- | --- |", *rows])


def _words(delta: Delta) -> str:
    if delta.value is None:
        return "no pairs"
    interval = "" if delta.low is None else f" [{delta.low:.4f}, {delta.high:.4f}]"
    return f"{delta.value:.4f}{interval}" + (" reversed" if (delta.signed or 0.0) < 0 else "")


def _settings(result: Result) -> dict[str, object]:
    settings, loss = result.settings, result.settings.loss
    knob = {"temperature": loss.temperature} if loss.name in BY_TEMPERATURE else {"margin": loss.margin}
    weights = {"weights of positive and negative pairs": f"{loss.positive_weight:g}, {loss.negative_weight:g}"}
    return {
        "loss": loss.name,
        **knob,
        **(weights if loss.name == "nt-bxent" else {}),
        "split": f"by {result.split}",
        "seed": settings.seed,
        "optimiser": f"AdamW, learning rate {settings.learning_rate:g}, weight decay {settings.weight_decay:g}",
        "sentences per batch": f"at most {settings.batch}, whole contexts",
        "epochs": f"{result.history[-1].epoch}, at most {settings.epochs}; the best is number {result.best}",
    }
