"""`Integrity`: what a run found out about the endpoint of a stage, as its manifest records it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

Verdict = Literal["varied", "narrow", "alike", "unclear"]
"""Of a canary. `varied`: draws differ. `narrow`: they are alike at the stage's temperature, and differ at 1. `alike`:
they are alike at both. `unclear`: too few answers that could tell."""
ALIKE = "the canary gave one answer"
REPEATS = "repeats"
IN_REASONING = "answer-in-reasoning"
FINDINGS = {
    REPEATS: "draws of one prompt are alike where they cannot be",
    "one-text": "all answers, to different prompts, are one text",
    "max-tokens": "answers are longer than the limit of tokens that was sent",
    "stop": "answers hold a stop text that should have ended them",
    IN_REASONING: "answers that ended by themselves stand in the reasoning field and leave no text; the "
    "server takes a model that does not think for one that does: start it without its reasoning parser (vLLM, SGLang: "
    '--reasoning-parser), or let the model think (thinking = "on" in its entry)',
    "marks": "answers hold special tokens that the server should have removed; check its chat template and its "
    "reasoning parser (vLLM, SGLang: --reasoning-parser), and that it skips special tokens (skip_special_tokens)",
    "finish-reason": "answers ended for a reason that is not known; they are read like others",
    "context": "prompts longer than the model's context were answered all the same",
    "truncated": "prompts of different length are counted with one number of tokens: they may be cut off",
    "model-changed": "replies name several models",
    "providers": "a router had several providers answer, which may run the model differently",
    "other-model": "replies name another model than the one that was asked",
    "rounded": "log-probabilities are rounded to few values",
    "clipped": "log-probabilities are cut off at a lowest value",
}
"""Names of findings, with what each says."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that an endpoint does not do as asked."""

    name: str
    """One of `FINDINGS`."""
    count: int
    """Answers that show it."""
    key: str = ""
    """Key of the first of these requests, hexadecimal; empty if it is none of the store."""
    detail: str = ""

    @property
    def words(self) -> str:
        """Return it as a clause."""
        what = FINDINGS.get(self.name, self.name)
        return f"{what} ({self.detail})" if self.detail else what


class Sighting(msgspec.Struct, frozen=True):
    """How often a name was seen in replies, and when (Unix time) first and last."""

    count: int
    first: float
    last: float

    def plus(self, other: Sighting) -> Sighting:
        """Return both together."""
        return Sighting(self.count + other.count, min(self.first, other.first), max(self.last, other.last))


class Draws(msgspec.Struct, frozen=True, kw_only=True):
    """Answers to one question that cannot have one answer."""

    verdict: Verdict
    asked: float
    """Unix time."""
    temperature: float | None = None
    """None: the model's own default."""
    draws: int = 0
    usable: int = 0
    """Draws with enough words to tell."""
    distinct: int = 0
    """Texts that differ, of all that were answered."""
    most: int = 0
    """Draws with the most frequent beginning."""
    digests: tuple[str, ...] = ()
    """First 16 hexadecimal digits of the sha256 of each text."""
    reason: str = ""
    """Why it is unclear."""


class Canary(msgspec.Struct, frozen=True, kw_only=True):
    """The question with which a stage that samples begins, and the second one where the first gave one answer."""

    verdict: Verdict
    first: Draws
    second: Draws | None = None


class Integrity(msgspec.Struct, frozen=True, kw_only=True):
    """What a run found out about the endpoint of a stage."""

    checked: int = 0
    """Answers that were looked at."""
    canary: Canary | None = None
    """The latest; None: nothing had to be drawn."""
    repeated: str = ""
    """Why all draws of one prompt count as one; empty: they count as draws."""
    findings: tuple[Finding, ...] = ()
    models: dict[str, Sighting] = {}
    """By the name in replies."""
    fingerprints: dict[str, Sighting] = {}
    providers: dict[str, Sighting] = {}
    """By the provider that a router such as OpenRouter names."""


class Repeats(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of the answered draws of prompts that were asked several times."""

    prompts: int
    draws: int
    alike: int
    """Prompts of which all draws have the same text."""
    distinct: int
    """Texts that differ within their prompt, over all prompts."""
    pairs: float
    """Mean share of pairs of draws of one prompt with the same text: an estimate of how often two draws agree."""


def add_up(before: Integrity | None, now: Integrity) -> Integrity:
    """Return what a run found out, with what it knew before it was resumed."""
    if before is None:
        return now
    return Integrity(
        checked=before.checked + now.checked,
        canary=now.canary or before.canary,
        repeated=before.repeated or now.repeated,
        findings=tuple(_together([*before.findings, *now.findings])),
        models=_seen(before.models, now.models),
        fingerprints=_seen(before.fingerprints, now.fingerprints),
        providers=_seen(before.providers, now.providers),
    )


def _together(findings: Iterable[Finding]) -> Iterable[Finding]:
    by_name: dict[str, Finding] = {}
    for finding in findings:
        earlier = by_name.get(finding.name)
        if earlier is not None:
            finding = msgspec.structs.replace(finding, count=earlier.count + finding.count, key=earlier.key)
        by_name[finding.name] = finding
    return by_name.values()


def _seen(before: Mapping[str, Sighting], now: Mapping[str, Sighting]) -> dict[str, Sighting]:
    both = dict(before)
    for name, sighting in now.items():
        both[name] = both[name].plus(sighting) if name in both else sighting
    return both
