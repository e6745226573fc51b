"""Find the template and the given term of published sentences, which do not state them.

Two sentences of one template differ in the given term and in the pronoun. So the term is the span of words that most
other sentences replace. For a few sentences this fails; then the term is unknown, and the sentence is the template.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from .items import BLANK

LONGEST = 8
"""Maximum number of words of a term: the name of a university."""
SUPPORTED = 3
"""Numbers of other terms in a frame, and of other frames of a term, above which a span is certainly a term."""
GRADED = re.compile(r"\b(more|less) ")
"""`more productive` is one term: the opposite of `less productive`."""
MIDDLE = 47
"""Between the young (25 to 35) and the old (60 to 70): the middle of the neutral ages."""
NUMBER = re.compile(r"\d+")
EDGE = ".,;:!?"
GENDERED = {
    **dict.fromkeys(("he", "she", "they"), "they"),
    **dict.fromkeys(("him", "his", "her", "hers", "them", "their"), "them"),
    **dict.fromkeys(("man", "men", "woman", "women", "person", "people", "boy", "girl"), "people"),
    **dict.fromkeys(("male", "female"), ""),
    **dict.fromkeys(("every", "all"), "all"),
    **dict.fromkeys(("is", "are"), "be"),
    **dict.fromkeys(("was", "were"), "was"),
    **dict.fromkeys(("has", "have"), "have"),
}
"""Words that change with the pronoun, mapped to one word."""


class Derived(NamedTuple):
    """Template and term of a sentence."""

    template: str
    """The sentence with `*` for the term, as in the first sentence of this template."""
    term: str | None
    """None if it was not found; the template is then the sentence, the same for all pronouns."""


class _Words(NamedTuple):
    plain: list[str]
    """Words as written, without outer punctuation."""
    head: list[str]
    """The first n words, without gender, for each n."""
    tail: list[str]
    """The words from the n-th on."""


def derive(contexts: Sequence[str], young: Sequence[bool] | None = None) -> list[Derived]:
    """Return template and term of each sentence; all must be of one domain and direction.

    With `young`, the terms are ages: for each sentence the first age below `MIDDLE` (young) or above it.
    """
    masked = [NUMBER.sub("#", context) for context in contexts]
    split = [_split(context) for context in masked]
    if young is not None:
        keys = [(words.head[-1], "") for words in split]
        terms: list[str | None] = [_age(context, side) for context, side in zip(contexts, young, strict=True)]
    else:
        keys, terms = _by_support(split)
    first: dict[tuple[str, str], str] = {}
    for key, term, context in zip(keys, terms, masked, strict=True):
        if key not in first:
            first[key] = context.strip() if young is not None else _starred(context, term)
    return [Derived(first[key], term) for key, term in zip(keys, terms, strict=True)]


def _starred(context: str, term: str | None) -> str:
    at = context.lower().find(term) if term is not None else -1
    return context.strip() if at < 0 else f"{context[:at]}*{context[at + len(term or '') :]}".strip()


def _age(context: str, young: bool) -> str | None:
    return next((age for age in NUMBER.findall(context) if (int(age) < MIDDLE) == young), None)


def _split(context: str) -> _Words:
    plain = [word.strip(EDGE) for word in GRADED.sub(r"\1_", context).split()]
    bare = [_bare(word) for word in plain]
    ends = range(len(bare) + 1)
    return _Words(plain, [" ".join(bare[:n]) for n in ends], [" ".join(bare[n:]) for n in ends])


def _bare(word: str) -> str:
    low = word.lower()
    # Verbs lose their -s, so that `looks` and `look` are one.
    return GENDERED.get(low, low.rstrip("s"))


def _by_support(split: Sequence[_Words]) -> tuple[list[tuple[str, str]], list[str | None]]:
    """Choose per sentence the span whose frame has many terms and which occurs in many frames.

    The smaller of the two numbers decides: the frame of a span that is longer than the term has many terms, but the
    span occurs in few other frames; an article occurs in all frames, but each of them has few other words there.
    """
    fillings: dict[tuple[str, str], set[str]] = defaultdict(set)
    frames: dict[str, set[tuple[str, str]]] = defaultdict(set)
    found = [_stretches(words) for words in split]
    for stretches in found:
        for frame, text in stretches:
            fillings[frame].add(text)
            frames[text].add(frame)

    def support(stretch: tuple[tuple[str, str], str]) -> tuple[int, int, int]:
        ways = len(fillings[stretch[0]]), len(frames[stretch[1]])
        return min(ways), max(ways), -len(stretch[1])

    best = [max(stretches, key=support) for stretches in found]
    known = {stretch[1] for stretch in best if support(stretch)[0] >= SUPPORTED}
    chosen: list[tuple[tuple[str, str], str | None]] = []
    for words, stretches, stretch in zip(split, found, best, strict=True):
        texts = [text for _, text in stretches if text in known]
        if support(stretch)[0] >= SUPPORTED:
            chosen.append((stretch[0], stretch[1].replace("_", " ")))
        elif texts:
            # The term occurs twice, so no single span varies: use the longest term known from other sentences.
            term = max(texts, key=len)
            chosen.append((_frame(words.plain, term), term.replace("_", " ")))
        else:
            chosen.append(((words.head[-1], ""), None))
    return [frame for frame, _ in chosen], [term for _, term in chosen]


def _frame(plain: Sequence[str], term: str) -> tuple[str, str]:
    words = " ".join(plain).lower().replace(term, "*").split()
    return " ".join(map(_bare, words)), ""


def _stretches(words: _Words) -> list[tuple[tuple[str, str], str]]:
    """Return frame and text of each span that may be the term."""
    return [((words.head[a], words.tail[b]), " ".join(words.plain[a:b]).lower()) for a, b in _spans(words)]


def _spans(words: _Words) -> list[tuple[int, int]]:
    """Return the spans that may be the term: short, without the blank and the words that change with the pronoun."""
    count, plain = len(words.plain), words.plain
    found = []
    for start in range(count):
        for end in range(start + 1, min(count, start + LONGEST) + 1):
            if BLANK in plain[end - 1] or plain[end - 1].lower() in GENDERED:
                break
            found.append((start, end))
    return found or [(0, 0)]
