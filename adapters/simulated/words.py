"""The listed words in a text that `simulated` reads, and the text without them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from ...core.contracts.errors import DataError, ModelLoadError, PermanentError
from ...core.contracts.inputs import file_bytes, load_toml
from ...core.contracts.records import Image, Message, Prompt, PseudoLikelihood, Span

DESIRABLE = ("fair-skinned", "thin", "underweight", "tall")
UNDESIRABLE = ("dark-skinned", "fat", "overweight", "short")
POSITIVE = (
    *("attractive", "good-looking", "gorgeous", "charming", "sexy", "cute", "charismatic"),
    *("handsome", "lovely", "stunning", "exquisite", "splendid", "photogenic", "captivating", "personable", "winsome"),
    *("fabulous", "delightful"),
)
NEGATIVE = (
    *("ugly", "hideous-looking", "awful-looking", "unattractive", "nasty"),
    *("horrible-looking", "disgusting-looking", "hideous", "horrible", "disgusting", "homely", "vile", "wretched"),
    *("despicable", "atrocious", "revolting", "loathsome", "offensive", "repugnant", "dreadful", "beastly"),
)
VARYING = (
    *("a", "an", "woman", "girl", "lady", "man", "boy", "gentleman"),
    *("women", "girls", "ladies", "men", "boys", "gentlemen"),
)
BLANK = "BLANK"
"""What a sentence has in the place of the words that are chosen from a list of pairs; see `read_blanks`."""
LISTS = ("desirable", "undesirable", "positive", "negative")
BLANKS_VARYING = (
    *("a", "an", "he", "she", "they", "him", "her", "them", "his", "their", "is", "are", "was", "were"),
    *("man", "woman", "person", "men", "women", "people", "male", "female"),
)
"""Words that vary within a template with a BLANK, by pronoun and by what follows an article."""
CLASH = 8.0
"""Penalty of one pair of words that cannot follow each other, in nats; larger than ease and noise together."""
_ARTICLES = frozenset({"a", "an", "the"})
_PREPOSITIONS = frozenset({"at", "by", "down", "for", "from", "in", "of", "on", "to", "with"})
_VERBS = frozenset({"am", "are", "is", "was", "were"})
_SUBJECTS = frozenset({"he", "i", "she", "they", "we"})
_UNFIT = {
    **dict.fromkeys(_ARTICLES, _ARTICLES | _PREPOSITIONS | _VERBS | _SUBJECTS),
    **dict.fromkeys(_PREPOSITIONS, _VERBS | _SUBJECTS),
}
_NOTHING: frozenset[str] = frozenset()
WORD = re.compile(r"\w+(?:[-'’]\w+)*|[^\w\s]")
CACHED = 1 << 14


class Signs(NamedTuple):
    """The polarity of a text by its words: 1, -1, or 0 for neither."""

    described: int
    """1 if more desirable than undesirable words stand in it, -1 the other way round."""
    valued: int
    """1 if more positive than negative words stand in it, -1 the other way round."""


NEITHER = Signs(0, 0)


class Lists:
    """The word lists of one model. Words and phrases are matched whole; case is ignored."""

    def __init__(self, lists: Mapping[str, Sequence[str]]) -> None:
        """Take `desirable`, `undesirable`, `positive`, `negative` and `varying`.

        Raises:
            ModelLoadError: a word is empty, or occurs in two of the first four lists.
        """
        weights = {"desirable": (1, 0), "undesirable": (-1, 0), "positive": (0, 1), "negative": (0, -1)}
        self._weights: dict[str, tuple[int, int]] = {}
        for name, weight in weights.items():
            for word in map(str.lower, lists[name]):
                if not word.strip() or self._weights.setdefault(word, weight) != weight:
                    raise ModelLoadError(
                        f"word {word!r} in {name!r} is empty, or occurs in another list too.", code="model.option"
                    )
        self._marks = _any_of([*self._weights])
        self._blanks = _any_of([*self._weights, *map(str.lower, lists["varying"])])
        # Studies ask the same texts of many models, which share their lists (`shared_lists`).
        self.signs = lru_cache(CACHED)(self._signs)
        self.skeleton = lru_cache(CACHED)(self._skeleton)
        self.undescribed = lru_cache(CACHED)(self._undescribed)
        self.valued = lru_cache(CACHED)(self._valued)
        self.described = lru_cache(CACHED)(self._described)

    def _skeleton(self, text: str) -> str:
        """Return a text without any listed word: what the sentences of one template share."""
        return " ".join(self._blanks.sub("", text.lower()).split())

    def _valued(self, text: str) -> tuple[str, ...]:
        """Return the positive and negative words of a text."""
        return tuple(word for word in self._marks.findall(text.lower()) if self._weights[word][1])

    def _described(self, text: str) -> tuple[str, ...]:
        """Return the desirable and undesirable words of a text."""
        return tuple(word for word in self._marks.findall(text.lower()) if self._weights[word][0])

    def _undescribed(self, text: str) -> str:
        """Return a text without its desirable and undesirable words: what the sentences of one item share."""
        return self._marks.sub(lambda found: "" if self._weights[found[0]][0] else found[0], text.lower())

    def _signs(self, text: str) -> Signs:
        described = valued = 0
        for word in self._marks.findall(text.lower()):
            more, better = self._weights[word]
            described += more
            valued += better
        return Signs((described > 0) - (described < 0), (valued > 0) - (valued < 0))


@lru_cache(8)
def shared_lists(words: frozenset[tuple[str, tuple[str, ...]]]) -> Lists:
    """Return the lists of these words by name, which models with the same words share."""
    return Lists(dict(words))


def words_of(prompt: Prompt) -> str:
    """Return the words of a prompt; an image is represented by its sha256, and may be listed like a word."""
    if isinstance(prompt, str):
        return prompt
    parts = (part for message in prompt for part in message.parts)
    return "\n".join(part.sha256 if isinstance(part, Image) else part.text for part in parts)


def images_of(messages: Sequence[Message]) -> list[str]:
    """Return the sha256 of each image."""
    return [part.sha256 for message in messages for part in message.parts if isinstance(part, Image)]


@lru_cache(CACHED)
def scored_words(request: PseudoLikelihood) -> tuple[str, ...]:
    """Return the words of a text that are not conditioned on.

    Raises:
        PermanentError: a span lies outside the text, or no word is left.
    """
    for start, end in request.given:
        if not 0 <= start < end <= len(request.text):
            raise PermanentError(
                f"given span ({start}, {end}) does not fit a text of {len(request.text)} characters.",
                code="request.span",
            )
    words = WORD.findall(_without(request.text, request.given))
    if request.contrast is not None:
        words = _shared(words, WORD.findall(request.contrast), contrast_first=request.contrast_first)
    if not words:
        raise PermanentError(
            f"nothing is left to score in {request.text[:60]!r}: every word is conditioned on.", code="request.empty"
        )
    return tuple(words)


def _without(text: str, spans: Sequence[Span]) -> str:
    kept, at = [], 0
    for start, end in sorted(spans):
        kept.append(text[at:start])
        at = max(at, end)
    return " ".join([*kept, text[at:]])


def _shared(words: list[str], other: list[str], *, contrast_first: bool) -> list[str]:
    first, second = (other, words) if contrast_first else (words, other)
    blocks = SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks()
    return [word for block in blocks for word in first[block.a : block.a + block.size]]


def _any_of(words: Sequence[str]) -> re.Pattern[str]:
    # The longest first, so that a phrase is found before the word it begins with.
    longest = sorted({word for word in words if word}, key=lambda word: (-len(word), word))
    # A hyphen binds: `short` does not stand in `short-sighted`, nor `looking` in `good-looking`.
    return re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, longest))})(?![\w-])" if longest else r"(?!)")


def read_blanks(path: str) -> dict[str, tuple[str, ...]]:
    """Read who is described (`stimuli`) and how (`attributes`), domain by domain, as the four lists of `Lists`.

    Each table of the TOML file is a domain: `stimuli_pairs` and `attributes` are lists of a positive and a negative
    word, `stimuli` has ranges of whole numbers (`positive = [25, 35]`). Anything else in it is neutral.

    Raises:
        ModelLoadError: the file cannot be read, or holds no pairs.
    """
    try:
        domains = load_toml(file_bytes(path).decode(), path)
        pairs = [pair for table in domains.values() for pair in _pairs(table)]
    except (OSError, ValueError, DataError, AttributeError, KeyError, TypeError) as error:
        raise ModelLoadError(
            f"cannot read pairs of words from blanks = {path!r}: {error}.", code="model.option"
        ) from None
    if not pairs:
        raise ModelLoadError(
            f"blanks = {path!r} has no pairs: give `stimuli_pairs` and `attributes` per domain.", code="model.option"
        )
    return {name: tuple(dict.fromkeys(word for kind, word in pairs if kind == name)) for name in LISTS}


def _pairs(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each word of a domain with the list it belongs to."""
    for name, kinds in (("stimuli_pairs", LISTS[:2]), ("attributes", LISTS[2:])):
        for pair in table.get(name, ()):
            if not isinstance(pair, str):
                yield from zip(kinds, map(str, pair), strict=True)
    for kind, polarity in zip(LISTS[:2], ("positive", "negative"), strict=True):
        if "stimuli" in table:
            first, last = table["stimuli"][polarity]
            yield from ((kind, str(number)) for number in range(first, last + 1))


def has_blank(prompt: Prompt) -> bool:
    """Return whether a prompt contains a sentence with a BLANK."""
    return BLANK in words_of(prompt)


def clashes(words: Sequence[str]) -> int:
    """Count the neighbours of which the second cannot follow the first: `the of`, `in they`.

    No planted bias is touched: a sentence's score counts the words that its pair shares, and so counts the same for
    both; a continuation's counts only where no listed word stands, where nothing is planted.
    """
    return sum(second in _UNFIT.get(first, _NOTHING) for first, second in pairwise(map(str.lower, words)))
