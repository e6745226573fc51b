"""The text rule for refusals: what a model says when it declines and the provider gives no signal of its own.

The rule is short and looks only at how a text opens, so that it can be read, tested and argued with: an apology or an
"As an AI ..." followed by "I can't", or one of the openings below. It knows English only and misses a refusal late in
a text. "I cannot tell" is an answer, not a refusal. The text is always kept, so a study can apply its own rule.
"""

from __future__ import annotations

import re

REFUSAL_READER_VERSION = 1
"""Raised whenever the rule reads other texts as refusals; recorded with a reading, in no identity."""

DECLINES: tuple[str, ...] = (
    "i can't assist",
    "i can't help you",
    "i can't help with",
    "i can't comply",
    "i can't fulfil",
    "i can't engage in",
    "i can't participate in",
    "i can't support",
    "i can't provide",
    "i can't create",
    "i can't generate",
    "i can't write",
    "i can't produce",
    "i can't answer",
    "i can't respond",
    "i can't discuss",
    "i can't continue with",
    "i can't do that",
    "i can't make assumptions",
    "i can't make judgments",
    "i can't make judgements",
    "i must decline",
    "i must refuse",
    "i must respectfully decline",
    "i have to decline",
    "i have to refuse",
    "i refuse to",
    "i decline to",
    "i'm not comfortable",
    "i don't feel comfortable",
)
"""Openings of a refusal, as `normalise` writes them."""
UNSURE: tuple[str, ...] = tuple(
    f"i can't {verb}" for verb in ("tell", "determine", "be sure", "be certain", "say", "know", "infer", "see", "find")
)
"""Openings that own up to not knowing: answers, even behind an apology."""

_LOOKED_AT = 240
_LEAD = re.compile(r"^[\s\"'*_>#-]+")
_FIRST = re.compile(r"(?:i|we|sorry|as|my|very|so|truly|really)(?![a-z])", re.IGNORECASE)
"""How every refusal begins: most answers need no further look."""
_MARKS = str.maketrans({"\u2019": "'", "\u2018": "'", "\u02bc": "'", "`": "'"})
_SENTENCES = re.compile(r"(?<=[.!?])\s+|\n+")
_DECLINES = re.compile(
    r"\b(?:sorry|apolog\w+|can't|can ?not|won't|will not|couldn't|could not|unable|inappropriate"
    r"|not (?:able|allowed|permitted|willing|comfortable|appropriate)|(?:don't|do not) feel|declin(?:e|ing)"
    r"|refus(?:e|ing)|as an? (?:ai|artificial|(?:large )?language model))\b",
    re.IGNORECASE,
)
_SAME: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\bwe\b"), "i"),
    (re.compile(r"\bi (?:am|are)\b|\bi're\b"), "i'm"),
    (re.compile(r"\bdo not\b"), "don't"),
    (re.compile(r"\b(?:cannot|can not|won't|will not|could not|couldn't)\b"), "can't"),
    (re.compile(r"\bi'm (?:unable|not able|not allowed|not permitted) to\b"), "i can't"),
    (re.compile(r"\bi can't be able to\b"), "i can't"),
)
_APOLOGY = re.compile(
    r"(?:(?:i'm )?(?:very |so |truly |really )?sorry|i apologi[sz]e|my apologies)[,.;:!]?(?: but| however)?,? "
)
_AS_AI = re.compile(r"as an? (?:ai|artificial intelligence|(?:large )?language model)\b[^.!?,]{0,60}, ")


def normalise(text: str) -> str:
    """Return how a text opens: lower case, straight apostrophes, single blanks, one wording for "I cannot"."""
    opening = " ".join(_LEAD.sub("", text[:_LOOKED_AT].translate(_MARKS)).lower().split())
    for pattern, wording in _SAME:
        opening = pattern.sub(wording, opening)
    return opening


def declines(text: str) -> bool:
    """Return whether a text opens like an English refusal; case, apostrophes and spacing do not matter."""
    if not _FIRST.match(_LEAD.sub("", text[:_LOOKED_AT])):
        return False
    remainder = opening = normalise(text)
    for preamble in (_APOLOGY, _AS_AI):
        if match := preamble.match(remainder):
            remainder = remainder[match.end() :]
    if remainder.startswith(UNSURE):
        return False
    return remainder.startswith(DECLINES) or (remainder != opening and remainder.startswith("i can't"))


def behind_refusal(text: str) -> str:
    """Return a text without its sentences that decline; a JSON object is no sentence, whatever it says."""
    start, end = text.find("{"), text.rfind("}") + 1
    parts = (text[:start], text[start:end], text[end:]) if 0 <= start < end else (text, "", "")
    before, after = (
        "\n".join(sentence for sentence in _SENTENCES.split(part) if not _DECLINES.search(sentence.translate(_MARKS)))
        for part in (parts[0], parts[2])
    )
    return f"{before}{parts[1]}{after}".strip()
