"""The model card of a trained encoder: what it was made from, how, what it reached, and what it is not good for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ..hf.encoder.files import EncoderSource
from .cells import Result, sizes
from .data import Corpus
from .parts import SelectOn
from .similarity import Delta

_TEXT = """---
library_name: sentence-transformers
pipeline_tag: sentence-similarity
tags: [sentence-transformers, feature-extraction, stereotypes]
---
# {name}, trained to tell stereotypes from anti-stereotypes

Fine-tuned by `prejudge train-encoder` from `{base}` (`{digest}`) by contrastive learning as in Santhosh et al. 2025
(*IndiCASA: A Dataset and Bias Evaluation Framework in LLMs Using Contrastive Embedding Similarity in the Indian
Context*).

{among}

| setting | value |
| --- | --- |
{settings}

Data ({sentences} sentences in {contexts} contexts; {sizes}):

{data}

## Validation delta-sim

The mean cosine of two sentences of one context and one type, less that of two of one context and both types, as an
absolute value (*reversed*: the difference is below 0); 95 % intervals resample contexts.{select}

{deltas}

{split} {repeated} validation sentences stand word for word among the others.

## Limits

It sees the stereotypes of its data, as their authors and annotators saw them, and little else. A vector is no verdict:
read `confusion.json` beside the encoder's folder for how often it errs on held-out sentences, by category. The data's
licence, and the base model's, bind this model too.
"""
_PARTS = {"inner": "tuning part", "validation": "validation part"}
_SELECT = {
    "inner": " Stopping and\nchoosing went by the tuning part, which is not reported here.",
    "validation": "\n**Stopping and choosing went by this very part**, so the values are better than they would be on "
    "sentences\nthat had no say.",
}
_SPLIT = {
    "sentence": "The split is by sentence, so sentences of one context, often near copies, stand on both sides.",
    "context": "The split is by context: no context of the validation part was trained on.",
}


class Origin(NamedTuple):
    """Where an encoder comes from."""

    source: EncoderSource
    corpus: Corpus
    select: SelectOn


def write_card(folder: Path, origin: Origin, result: Result, others: Sequence[Result]) -> None:
    """Write `README.md` into an encoder's folder.

    Args:
        folder: The encoder's.
        origin: Model and data.
        result: What its training came to.
        others: The other trainings of its split and loss, which it is better than on the tuning part.
    """
    source, corpus, select = origin
    text = _TEXT.format(
        name=source.name,
        base=source.name,
        digest=source.digest,
        among=_among(result, others, _PARTS[select]),
        settings="\n".join(f"| {name} | {value} |" for name, value in _settings(result).items()),
        sentences=f"{len(corpus.sentences):,}",
        contexts=corpus.contexts,
        sizes=sizes(result, select),
        data="\n".join(f"- `{name}`, sha256 `{digest}`" for name, digest in corpus.digests.items()),
        deltas=delta_table(result.before, result.after),
        select=_SELECT[select],
        split=_SPLIT[result.split],
        repeated=result.repeated,
    )
    (folder / "README.md").write_text(text, encoding="utf-8")


def _among(result: Result, others: Sequence[Result], part: str) -> str:
    """Say of how many trainings it is the best."""
    loss, tuning = result.settings.loss, "none" if result.tuning is None else f"{result.tuning:.4f}"
    if not others:
        return f"Its delta-sim on the {part} is {tuning}; no other seed and no other {loss.parameter} was trained."
    every = [result, *others]
    seeds = ", ".join(map(str, sorted({one.settings.seed for one in every})))
    values = ", ".join(f"{value:g}" for value in sorted({one.settings.loss.chosen for one in every}))
    tried = f"{len(every)} trainings with this loss and split (seeds {seeds}; {loss.parameter} {values})"
    return f"It is the best of {tried} by delta-sim on the {part}: {tuning}."


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
    weights = {"weights of positive and negative pairs": f"{loss.positive_weight:g}, {loss.negative_weight:g}"}
    best = f"the best is number {result.best}" if result.best else "none brought anything, so it is as it was given"
    return {
        "loss": loss.name,
        loss.parameter: f"{loss.chosen:g}",
        **(weights if loss.name == "nt-bxent" else {}),
        "split": f"by {result.split}",
        "seed": settings.seed,
        "optimiser": f"AdamW, learning rate {settings.learning_rate:g}, weight decay {settings.weight_decay:g}",
        "sentences per batch": f"at most {settings.batch}, whole contexts",
        "epochs": f"{result.history[-1].epoch}, at most {settings.epochs}; {best}",
    }
