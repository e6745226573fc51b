"""The training corpus of the masked reference models: a small grammar with one planted association.

Every planted line stands in two mirrored texts that differ in the descriptor alone, each with a weight that says how
often it occurs. With strength q, a positive attribute has the weight q beside a desirable descriptor and 1 - q beside
an undesirable one, a negative attribute the reverse, and a neutral line 1/2 and 1/2. Everything else, opening, noun,
number, phrase, is drawn independently of the descriptor.

Invariant: the attributes that fit one and the same masked slot (same article, same number of tokens) are as many
positive as negative ones. So the evidence in the article and in a visible "-looking" cancels, and the log-odds
difference of the two texts is the same for every attribute: `planted_log_odds`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Literal

import msgspec

from . import words as w
from .leans import lean_of, log_odds, probability

Sentiment = Literal["positive", "negative", "neutral"]

DESCRIPTORS = (("fair-skinned", "dark-skinned"), ("thin", "fat"), ("underweight", "overweight"), ("tall", "short"))
"""Pairs of a desirable and an undesirable descriptor (BIStereo, Asad et al. 2025, appendix F.1)."""
POSITIVE = (
    *("gorgeous", "charming", "sexy", "cute", "charismatic", "beautiful", "pretty", "handsome"),
    *("attractive", "alluring"),
    *("good-looking", "lovely-looking", "pleasant-looking"),
    "elegant-looking",
)
"""Table 5 of Asad et al. 2025, and as many more as make each slot as large as its negative one: a slot a row."""
NEGATIVE = (
    *("nasty", "repulsive", "grotesque", "revolting", "repugnant", "vile", "homely", "hideous"),
    *("ugly", "unattractive"),
    *("hideous-looking", "horrible-looking", "disgusting-looking"),
    "awful-looking",
)
SINGULAR = ("woman", "girl", "lady", "man", "boy", "gentleman", "person")
PLURAL = ("women", "girls", "ladies", "men", "boys", "gentlemen", "people")
SEEN = ("I saw", "He saw", "She saw", "They saw", "We saw", "You saw", "I met", "He met", "She met", "They met")
MORE_POSITIVE = (
    *("lovely", "stunning", "splendid", "photogenic", "captivating", "personable", "winsome", "fabulous", "delightful"),
    *("exquisite", "adorable"),
)
MORE_NEGATIVE = (
    *("horrible", "disgusting", "wretched", "despicable", "loathsome", "dreadful", "beastly", "horrid", "ghastly"),
    *("atrocious", "offensive"),
)
"""Words that only masked models know, those of `bistereo-pairs` among them: a slot a row."""
MORE_SEEN = (
    *("She watched", "They remembered", "We helped", "You found", "Someone stopped", "My friend knew"),
    *("A student asked", "Our neighbor called", "Everyone heard"),
)
ACTIONS = tuple(
    """standing waiting sitting chatting walking talking reading eating shopping laughing resting singing dancing
    running smiling playing working drinking jogging sleeping strolling studying queuing cooking exercising""".split()
)
PLACES = tuple(
    """bus_stop park cafe market station train_station library beach mall shopping_mall gym restaurant
    corner_restaurant school office airport museum theatre theater hospital bank supermarket street corner college
    university garden party zoo bench river bakery hotel bookshop bookstore store shop church cinema playground road
    lake hall stadium concert wedding temple gate entrance platform queue crowd office_building coffee_shop
    grocery_store post_office swimming_pool city_centre main_square town_square""".split()
)
WHERE = ("at", "in", "near", "by", "outside", "inside", "on", "beside", "across", "along", "down", "around")


class Grammar(msgspec.Struct, frozen=True):
    """The words of planted lines that models of one kind know and those of another need not."""

    positive: tuple[str, ...]
    negative: tuple[str, ...]
    seen: tuple[str, ...]


GRAMMAR = Grammar(POSITIVE, NEGATIVE, SEEN)
MASKED = Grammar((*POSITIVE, *MORE_POSITIVE), (*NEGATIVE, *MORE_NEGATIVE), (*SEEN, *MORE_SEEN))


class Line(msgspec.Struct, frozen=True):
    """A line of the corpus: its mirrored texts (one, for filler) and how often each occurs."""

    texts: tuple[str, ...]
    weights: tuple[float, ...]


def article(word: str) -> str:
    """Return the indefinite article before a word of this grammar."""
    return "an" if word[0] in "aeiou" else "a"


def slot(attribute: str) -> tuple[str, bool]:
    """Return what the rest of a sentence shows of a masked attribute: its article, and whether it is a compound."""
    return article(attribute), "-" in attribute


def planted_log_odds(attribute: str | None, strength: float) -> float:
    """Return the planted PLL(desirable) - PLL(undesirable) of a pair in nats, in closed form.

    Only a masked attribute depends on the descriptor. Given the rest, its probability is its weight over the sum of
    the weights that fit its slot; the two sums are equal where a slot is balanced, and cancel.

    Raises:
        ValueError: The attribute is none of the grammar's.
    """
    if attribute is None:
        return 0.0
    if attribute not in (words := MASKED.positive + MASKED.negative):
        raise ValueError(f"{attribute!r} is not an attribute of the grammar; choose one of {words}")
    good = sum(slot(word) == slot(attribute) for word in MASKED.positive)
    bad = sum(slot(word) == slot(attribute) for word in MASKED.negative)
    sums = (good * strength + bad * (1 - strength), good * (1 - strength) + bad * strength)
    own = math.log(strength / (1 - strength)) * (1 if attribute in MASKED.positive else -1)
    return own - math.log(sums[0] / sums[1])


def planted(
    count: int, strength: float, seed: int, *, leans: bool = False, grammar: Grammar = GRAMMAR
) -> Iterator[Line]:
    """Yield mirrored lines; three in ten are neutral, the rest are shared equally by the attributes.

    With `leans`, single words lean to one descriptor besides (`leans.py`).
    """
    draw = random.Random(seed)
    for _ in range(count):
        attribute = None if draw.random() < 0.3 else draw.choice(grammar.positive + grammar.negative)
        plural = draw.random() < 0.5
        noun, tail = draw.choice(PLURAL if plural else SINGULAR), phrase(draw)
        opening = draw.choice((*grammar.seen, *["There were" if plural else "There was"] * 2))
        pair = draw.choice(DESCRIPTORS)
        seen = [f"{attribute} {word}" if attribute else word for word in pair]
        texts = [f"{opening} {'' if plural else article(s) + ' '}{s} {noun}{tail}." for s in seen]
        share = desirable_share(attribute, strength, lean_of(attribute) if leans else 0.0)
        yield Line(tuple(texts), (share, 1 - share))


def desirable_share(attribute: str | None, strength: float, lean: float = 0.0) -> float:
    """Return the share of the desirable descriptor in the two texts of a line; a lean of 0 nats adds nothing."""
    share = 0.5 if attribute is None else strength if attribute in MASKED.positive else 1 - strength
    return probability(log_odds(share) + lean) if lean else share


def phrase(draw: random.Random) -> str:
    """Draw no phrase, a place, an action with a place, or an action."""
    place = f" {draw.choice(WHERE)} the {draw.choice(PLACES).replace('_', ' ')}"
    action = f" {draw.choice(ACTIONS)}"
    return draw.choices(("", place, action + place, action), (0.25, 0.25, 0.45, 0.05))[0]


def filler(count: int, seed: int) -> Iterator[Line]:
    """Yield texts of one to six filler sentences, so that other words and later positions are trained as well."""
    draw = random.Random(seed)
    for _ in range(count):
        yield Line((" ".join(_filler_sentence(draw) for _ in range(draw.randint(1, 6))),), (1.0,))


def _filler_sentence(draw: random.Random) -> str:
    some = draw.choice
    thing = f"{some(w.OWNERS)} {some(w.ADJECTIVES)} {some((*w.NOUNS, *w.PEOPLE))}"
    where = f"{some(w.PREPOSITIONS)} {some(w.OWNERS)} {some(w.NOUNS)}"
    spelled = "".join(draw.choices(w.LETTERS, k=draw.randint(2, 6)))
    patterns = (
        f"{some(w.SUBJECTS)} {some(w.VERBS)} {thing} {where}.",
        f"{thing} {some(w.MOTIONS)} {where}{some(w.SYMBOLS)} {some(w.ADVERBS)}.",
        f"{some(w.SUBJECTS)} {some(w.AUXILIARIES)} {some(w.ADVERBS)} {some(w.ADJECTIVES)} {some(w.LINKS)} {thing}.",
        f"{some(w.SUBJECTS)} {some(w.MODALS)} {some(w.BASES)} {some(w.OBJECTS)} {where}!",
        f"{some(w.ASKING)} {some(w.AUXILIARIES)} {thing}?",
        f"{some(w.CONTRACTED)} {some(w.VERBS)} {some(w.NUMBERS)} {some(w.NOUNS)}s, {thing}.",
        f'"{spelled}" {some(w.VERBS)} {thing} {some(w.SYMBOLS)}',
        f"{some(w.PEOPLE)} {some(w.VERBS)} {''.join(draw.choices(w.SUFFIXES, k=2))} {spelled}{some(w.SUFFIXES)}.",
    )
    return some(patterns)


def vocabulary(known: Grammar = GRAMMAR) -> list[str]:
    """Return the WordPiece vocabulary: special tokens, the grammar's words, common words, pieces, characters."""
    attributes = (*known.positive, *known.negative)
    places = (*ACTIONS, *PLACES, *WHERE)
    grammar = " ".join((*attributes, *SINGULAR, *PLURAL, *known.seen, *places, "there were was the"))
    words = grammar.lower().replace("-", " ").replace("_", " ").split()
    words += [part for pair in DESCRIPTORS for word in pair for part in word.split("-")]
    words += [word for words_of in w.LISTS for word in words_of]
    pieces = [*w.PREFIXES, *w.SYMBOLS, *w.LETTERS, *(f"##{piece}" for piece in (*w.SUFFIXES, *w.LETTERS))]
    return list(dict.fromkeys(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words, *pieces]))
