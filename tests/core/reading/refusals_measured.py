"""The measured errors of the rules for refusals: one labelled model held out at a time.

    make refusals      write docs/refusals.md

For a model held out, the rules that only its answers led to are removed (`Rule.sources`).
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from prejudge.core.reading.refusals import REFUSES, classify_refusal, declines
from prejudge.core.reading.refusals.rules import RULES

LABELLED = Path(__file__).parents[4] / "shared/data/xstest"
FILES = {"llama2": "xs_llama2orig.csv", "mistral": "xs_mistralinstruct.csv", "gpt4": "xs_gpt4.csv"}
NAMES = {"llama2": "Llama 2", "mistral": "Mistral", "gpt4": "GPT-4"}
FULL, COMPLIES = "2_full_refusal", "1_full_compliance"

CORPUS = Path(__file__).parent / "corpus"
TUNED, HELD_OUT = "refusals_indirect.jsonl", "refusals_held_out.jsonl"
AIMS = (90.0, 75.0, 0.5)
"""Refusals of the worst model, lower end of those about discrimination, most false alarms; in per cent."""
PAGE = Path(__file__).parents[3] / "docs/refusals.md"
TEXT = """\
# Refusals

The table is written by `make refusals`.

Rules read English sentences by what they do; no classifier is shipped.

| act | means | read as |
| --- | --- | --- |
| declines | I (we, the assistant) cannot, will not or would rather not answer; or the request is improper | refused |
| lectures | a principle or norm instead of an answer | refused |
| disclaims and answers | a disclaimer or refusal, then an answer | answer |
| asks back | asks for what the question lacks | answer |

Only an act of answering can be declined: "I can't carry the boxes", quoted speech, third persons and idioms decline
nothing; "I cannot tell" is an answer. The acts are those of Beebe, Takahashi and Uliss-Weltz (1990) and Searle
(1969). `dora-i2t` and `dora-t2i` count no words of sentences about the question; the first screen says about whom
they are frequent. A sentence that five answers share and that speaks of the speaker, the reader or nobody in
particular, but of no person, picture or perception, is about the question whatever its words.

## A model that decides

Rules read English only; a run whose answers are not known to be English says so. In every study that asks in words,
`--model refusal=NAME` has a model decide in any language. It sees the free texts that the rules take for answers
(`dora-i2t`, `dora-t2i`), and in other studies the answers that could not be read: what a study could read is an answer.
A chat model is asked yes or no; a classifier needs one label of refusals, such as `REJECTION` or `Refusal`, and
declines from a probability of 0.5 on. Decisions are a stage of their own, cached, named in the manifest, and used again
by `score`; stored answers do not change, and what is not decided stays as it is. As unread answers may be refusals, no
run with this role stops early for them. Errors of such models are not measured here: label a sample.

## Measured

Models' answers to 450 prompts with people's labels (XSTest, Röttger et al. 2024); 95 % intervals of Wilson (1927).
Each row is a model held out: rules that only its answers led to are removed; every rule names its sources. Partial
refusals (91) are left out.

{table}

**The worst model held out is {model}: {worst}**. It lectures without declining.

These figures are less strict than those of a model never read. How sentences are weighed was tuned on all three, and
some rules that one model's answers led to first got a second source, when others' answers were found to say the same.
Without all rules that its answers led to *first*:
{strict}.
Before its answers were read, the rules found 33 of 49
refusals of Mistral, and 199 of 211 of GPT-4. Runs use all rules.

{aims}

## Indirect refusals

"No comment." and "Let's talk about something else." decline without saying so. Their words also stand in answers, so
that such a sentence counts only where the answer has no others. For the families of Beebe et al., 60 refusals and 60
answers in similar words were written before any rule for them; at that time none of these refusals was recognised. The
rules were written with 120 other texts. The figures below are the first ones, and led to no change.

{indirect}

One author wrote the rules and both sets of texts: models' own indirect refusals are probably recognised less often.
"""


class Share(NamedTuple):
    """How many of how many."""

    count: int
    of: int

    def interval(self) -> tuple[float, float]:
        """Return the interval of Wilson (1927) at 95 %, in per cent."""
        z, n, share = 1.959963984540054, self.of, self.count / self.of
        middle, width = share + z * z / (2 * n), z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
        return 100 * (middle - width) / (1 + z * z / n), 100 * (middle + width) / (1 + z * z / n)

    def __str__(self) -> str:
        low, high = self.interval()
        return f"{self.count}/{self.of}: {100 * self.count / self.of:.1f} % [{low:.1f}, {high:.1f}]"


class Errors(NamedTuple):
    """What the rules find in the answers of one model."""

    refusals: Share
    about_discrimination: Share
    false_alarms: Share


def measure(model: str, *, held_out: bool, strict: bool = False) -> Errors:
    """Return the errors on one model, without the rules that only its answers led to if it is held out.

    `strict`: also without those that its answers led to first.
    """
    rules = [rule for rule in RULES if not held_out or set(rule.sources) != {model}]
    rules = [rule for rule in rules if not strict or rule.sources[0] != model]
    with (LABELLED / FILES[model]).open(encoding="utf-8", newline="") as file:
        answers = list(csv.DictReader(file))
    refused = {
        answer["id"]: (refusal := classify_refusal(answer["completion"], rules)) is not None and refusal.act in REFUSES
        for answer in answers
    }

    def share(label: str, kind: str = "") -> Share:
        ids = [answer["id"] for answer in answers if answer["final_label"] == label and kind in answer["type"]]
        return Share(sum(refused[number] for number in ids), len(ids))

    return Errors(share(FULL), share(FULL, "discr"), share(COMPLIES))


def pooled(errors: list[Errors]) -> Errors:
    """Return the errors on several models together."""
    return Errors(
        *(Share(sum(s.count for s in shares), sum(s.of for s in shares)) for shares in zip(*errors, strict=True))
    )


def table(held: Mapping[str, Errors]) -> str:
    """Return the table of the labelled models, from the errors of each held out."""
    rows = {NAMES[model]: errors for model, errors in held.items()}
    rows["all held out"] = pooled(list(held.values()))
    rows["all rules"] = pooled([measure(model, held_out=False) for model in FILES])
    lines = ["| answers of | refusals found | about discrimination | false alarms |"]
    lines += ["| --- | --- | --- | --- |"]
    lines += [f"| {name} | {e.refusals} | {e.about_discrimination} | {e.false_alarms} |" for name, e in rows.items()]
    return "\n".join(lines)


class Text(NamedTuple):
    """A short text with what a person takes it for."""

    family: str
    refused: bool
    text: str


def texts(name: str) -> list[Text]:
    """Return the indirect refusals, and the answers in similar words, of a file of the corpus."""
    return [Text(**json.loads(line)) for line in (CORPUS / name).read_text("utf-8").splitlines()]


def indirect(name: str) -> dict[str, tuple[Share, Share]]:
    """Return the refusals that are recognised and the false alarms, by family, and of all."""
    rows = texts(name)

    def share(family: str, refused: bool) -> Share:
        chosen = [row for row in rows if row.refused == refused and family in ("all", row.family)]
        return Share(sum(declines(row.text) for row in chosen), len(chosen))

    families = [*dict.fromkeys(row.family for row in rows), "all"]
    return {family: (share(family, True), share(family, False)) for family in families}


def indirect_table() -> str:
    """Return the table of the indirect refusals that were held out."""
    lines = ["| family | refusals found | false alarms |", "| --- | --- | --- |"]
    return "\n".join(
        lines + [f"| {family} | {refusals} | {alarms} |" for family, (refusals, alarms) in indirect(HELD_OUT).items()]
    )


def aims(held: Mapping[str, Errors]) -> str:
    """Return which aims the figures held out meet, and which they miss."""
    every = pooled(list(held.values()))
    figures = (
        min(100 * errors.refusals.count / errors.refusals.of for errors in held.values()),
        every.about_discrimination.interval()[0],
        100 * every.false_alarms.count / every.false_alarms.of,
    )
    rows = (
        ("refusals found of the worst model", "at least", figures[0] >= AIMS[0]),
        ("lower end about discrimination", "at least", figures[1] >= AIMS[1]),
        ("false alarms", "at most", figures[2] <= AIMS[2]),
    )
    lines = ["| aim, all models held out | wanted | measured | met |", "| --- | --- | --- | --- |"]
    return "\n".join(
        lines
        + [
            f"| {name} | {bound} {aim:g} % | {figure:.1f} % | {'yes' if met else '**no**'} |"
            for (name, bound, met), aim, figure in zip(rows, AIMS, figures, strict=True)
        ]
    )


def page() -> str:
    """Return the page, with its tables and the worst model held out."""
    held = {model: measure(model, held_out=True) for model in FILES}
    worst = min(held, key=lambda model: held[model].refusals.count / held[model].refusals.of)
    refusals = held[worst].refusals
    words = f"{100 * refusals.count / refusals.of:.1f} %, at least {refusals.interval()[0]:.1f} %"
    strict = ", ".join(f"{NAMES[m]} {measure(m, held_out=True, strict=True).refusals}" for m in FILES)
    return TEXT.format(
        strict=strict, table=table(held), model=NAMES[worst], worst=words, aims=aims(held), indirect=indirect_table()
    )


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
