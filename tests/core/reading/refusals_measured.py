"""The measured errors of the rules for refusals: one labelled model held out at a time.

    python -m tests.core.reading.refusals_measured      print the table of docs/refusals.md

For a model held out, the rules that only its answers led to are removed (`Rule.sources`).
"""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import NamedTuple

from prejudge.core.reading.refusals import REFUSES, classify_refusal
from prejudge.core.reading.refusals.rules import RULES

LABELLED = Path(__file__).parents[4] / "shared/data/xstest"
FILES = {"llama2": "xs_llama2orig.csv", "mistral": "xs_mistralinstruct.csv", "gpt4": "xs_gpt4.csv"}
NAMES = {"llama2": "Llama 2, with its system prompt", "mistral": "Mistral Instruct", "gpt4": "GPT-4"}
FULL, COMPLIES = "2_full_refusal", "1_full_compliance"


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
        return f"{self.count} of {self.of} ({100 * self.count / self.of:.1f} %, {low:.1f} to {high:.1f})"


class Errors(NamedTuple):
    """What the rules find in the answers of one model."""

    refusals: Share
    about_discrimination: Share
    false_alarms: Share


def measure(model: str, *, held_out: bool) -> Errors:
    """Return the errors on one model, without the rules that only its answers led to if it is held out."""
    rules = [rule for rule in RULES if not held_out or set(rule.sources) != {model}]
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


def table() -> str:
    """Return the table of the page."""
    held = {model: measure(model, held_out=True) for model in FILES}
    rows = {f"{NAMES[model]}, held out": errors for model, errors in held.items()}
    rows["all three, each held out"] = pooled(list(held.values()))
    rows["all three, with all rules"] = pooled([measure(model, held_out=False) for model in FILES])
    lines = ["| answers of | full refusals read as such | about discrimination | compliant answers read as refusals |"]
    lines += ["| --- | --- | --- | --- |"]
    lines += [f"| {name} | {e.refusals} | {e.about_discrimination} | {e.false_alarms} |" for name, e in rows.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
