"""Find the template and the given term of sentences that came without them.

A published item is a finished sentence. Two sentences of one template differ in the given term, and in the words that
follow the pronoun. So the term is the stretch of words in whose place most other sentences have something else. A few
sentences do not show it: then the term stays unknown, and a sentence is its own template.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from .items import BLANK

LONGEST = 8
"""Words of the longest term, the name of a university."""
SUPPORTED = 3
"""Other fillings of a frame, and other frames of a filling, that make a stretch a term beyond doubt."""
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
"""Words that change with the pronoun, as one word for all."""


class Derived(NamedTuple):
    """What a sentence was made of."""

    template: str
    """The sentence with `*` for the term, as it stands in the first sentence of this template."""
    term: str | None
    """None where nothing shows which words it is; the template is then the sentence, whatever its pronoun."""


class _Words(NamedTuple):
    plain: list[str]
    """As written, without the punctuation at a word's edges."""
    head: list[str]
    """The first n words, without gender, for every n."""
    tail: list[str]
    """The words from the n-th on."""


def derive(contexts: Sequence[str], young: Sequence[bool] | None = None) -> list[Derived]:
    """Return template and term of each sentence; all must be of one domain and direction.

    With `young` the terms are ages: the first that is on the side of `MIDDLE` that `young` says, for each sentence.
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
    """Choose per sentence the stretch whose frame has many fillings and which itself fills many frames.

    Both count, and the lesser decides: a stretch that takes in more than the term has a frame with many fillings, but
    hardly stands in another frame; an article stands in all frames, each of which has hardly anything else there.
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
            # The term stands there twice, so that no stretch alone varies: take the longest one known elsewhere.
            term = max(texts, key=len)
            chosen.append((_frame(words.plain, term), term.replace("_", " ")))
        else:
            chosen.append(((words.head[-1], ""), None))
    return [frame for frame, _ in chosen], [term for _, term in chosen]


def _frame(plain: Sequence[str], term: str) -> tuple[str, str]:
    words = " ".join(plain).lower().replace(term, "*").split()
    return " ".join(map(_bare, words)), ""


def _stretches(words: _Words) -> list[tuple[tuple[str, str], str]]:
    """Return frame and text of each stretch that may be the term."""
    return [((words.head[a], words.tail[b]), " ".join(words.plain[a:b]).lower()) for a, b in _spans(words)]


def _spans(words: _Words) -> list[tuple[int, int]]:
    """Return the stretches that may be the term: short, without the blank and without what follows the pronoun."""
    count, plain = len(words.plain), words.plain
    found = []
    for start in range(count):
        for end in range(start + 1, min(count, start + LONGEST) + 1):
            if BLANK in plain[end - 1] or plain[end - 1].lower() in GENDERED:
                break
            found.append((start, end))
    return found or [(0, 0)]
