"""Make the items of the subtle-bias studies from the templates and word lists in `data`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Any

import msgspec

from .items import DOMAINS, PRONOUNS, Item, pick
from .terms import GIVEN

VOWELS = (*"aeiou", "honest")
"""Words in the lists that take `an`."""
Pairs = tuple[tuple[str, str], ...]


class Side(msgspec.Struct, frozen=True):
    """Words of one side of an association: stimuli, or attributes."""

    pairs: Pairs
    """Matched pairs of a positive and a negative word."""
    neutral: tuple[str, ...]


class Domain(msgspec.Struct, frozen=True):
    """The words of one domain."""

    name: str
    stimuli: Side
    attributes: Side


class Design(msgspec.Struct, frozen=True):
    """All words and sentences."""

    domains: tuple[Domain, ...]
    templates: dict[str, dict[str, tuple[str, ...]]]
    """By direction and domain."""
    pronouns: dict[str, dict[str, str]]


def load_design() -> Design:
    """Read the word lists and templates of the package."""
    words, templates = (_toml(f"{name}.toml") for name in ("words", "templates"))
    neutral = tuple(words["neutral"]["attributes"])
    # Looks are the stimulus in both beauty domains; the paper uses neutral attributes as neutral looks (footnote 7).
    looks = Side(_pairs(words["beauty"]["stimuli_pairs"]), neutral)
    domains = []
    for name in DOMAINS:
        own = words[name]
        attributes = Side(_pairs(own["attributes"]), tuple(own.get("neutral", neutral)))
        domains.append(Domain(name, _stimuli(own) if not name.startswith("beauty") else looks, attributes))
    sentences = {d: {n: tuple(t) for n, t in templates[d].items()} for d in ("sai", "asa")}
    return Design(tuple(domains), sentences, templates["pronouns"])


def _toml(name: str) -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("data", name).read_text("utf-8"))


def _pairs(rows: Sequence[Sequence[str]]) -> Pairs:
    return tuple((positive, negative) for positive, negative in rows)


def _stimuli(words: dict[str, Any]) -> Side:
    if "stimuli" not in words:
        return Side(_pairs(words["stimuli_pairs"]), tuple(words["neutral_stimuli"]))
    ages = {name: [str(age) for age in range(low, high + 1)] for name, (low, high) in words["stimuli"].items()}
    return Side(tuple(zip(ages["positive"], ages["negative"], strict=True)), tuple(ages["neutral"]))


def generate(design: Design, direction: str, seed: int) -> list[Item]:
    """Return all items of a direction: every template with every given term, in each pronoun.

    The options, a matched pair and a neutral one, are drawn per template and term, and are the same for the three
    pronouns, as in the paper's Figure 2.
    """
    return [item for domain in design.domains for item in _of_domain(design, domain, direction, seed)]


def _of_domain(design: Design, domain: Domain, direction: str, seed: int) -> Iterator[Item]:
    given, chosen = domain.stimuli, domain.attributes
    if direction == "asa":
        given, chosen = chosen, given
    for number, sentence in enumerate(design.templates[direction][domain.name], 1):
        template = f"{direction}/{domain.name}/{number}"
        for place, pair in enumerate(given.pairs):
            for polarity, term in zip(GIVEN, pair, strict=True):
                name = f"{template}/{place}-{polarity}"
                options = _draw(chosen, seed, name)
                for pronoun in PRONOUNS:
                    yield Item(
                        id=f"{name}/{pronoun}",
                        direction=direction,
                        domain=domain.name,
                        pronoun=pronoun,
                        given=polarity,
                        template=template,
                        term=term,
                        context=_fill(sentence, design.pronouns[pronoun], term),
                        options=options,
                    )


def _draw(side: Side, seed: int, name: str) -> tuple[str, str, str]:
    pair = side.pairs[pick(len(side.pairs), "pair", seed, name)]
    return (*pair, side.neutral[pick(len(side.neutral), "neutral", seed, name)])


def _fill(sentence: str, words: dict[str, str], term: str) -> str:
    for name, word in words.items():
        sentence = sentence.replace(f"{{{name}}}", word).replace(f"{{{name.capitalize()}}}", word.capitalize())
    if term.startswith(VOWELS):
        sentence = sentence.replace(" a <given>", " an <given>")
    return sentence.replace("<given>", term)
