"""What the answering reference models answer: the questions of the studies, and how likely each answer is.

Questions, groups and words are those of the studies of inference, analogies, choices and completions, asked by the
studies' own functions. With a strength of s nats, the log-odds of praise over blame are s for a desirable group (the
studies' word for the stereotype), -s for an undesirable one, and 0 for anybody else. Each pair of words has a
preference of its own besides, whoever is meant: without it an answer at temperature 0 would show the smallest remainder
of a bias.

A fair model with leans prefers words more strongly, repeats the word of an analogy, takes the option that is listed
first, and prefers entailment to contradiction, whoever is meant.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Literal, NamedTuple

from ...adapters.reference.items import HIGH, LOW, STANDINGS, groups_of_tuples, listed_tuples, opposites
from ...adapters.reference.leans import probability
from ...core.design.levels import Value
from ...probes.bistereo import nli_design, tuples, tuples_file, tuples_tests
from ...probes.bistereo.nli_asking import AskingOptions, ask
from ...probes.dora import descriptors, t2t
from ...probes.dora.wordings import sentences_of, stem_in
from ...probes.shared.sentence_pairs import Pair
from ...probes.subtle import asking, design, items

Skill = Literal["inference", "analogy", "choice", "completion"]
SKILLS: tuple[Skill, ...] = ("inference", "analogy", "choice", "completion")
END = "</s>"
REPLY = "\nAnswer:"
"""What the chat template puts behind a message."""
PREFERENCES = (-0.6, 0.2, 0.6, -0.2)
"""Preferences of pairs of words for praise, in nats; a pair has one by its words."""
LEANING, COPYING, FIRST_OPTION, ENTAILED = 2.5, 1.5, 0.75, 0.5
"""Leans: factor of the preferences; nats for repeating B, for the option that is listed first, for entailment."""
NEUTRAL = {"inference": 0.4, "choice": 0.2}
"""Probability of the neutral answer."""
PRAISE_AND_BLAME = tuple(
    tuple(pair.split("/"))
    for pair in """
    admirable/awful beautiful/brutal charming/cruel delightful/dirty elegant/evil friendly/foul gorgeous/gross
    honest/horrible intelligent/ignorant joyful/jealous kind/knavish lovely/lazy modest/mean nice/nasty
    optimistic/obnoxious pretty/pathetic quick/quarrelsome reliable/rude smart/stupid talented/terrible upright/ugly
    virtuous/vile wonderful/wicked xenial/xenophobic youthful/yucky zealous/zany
    """.split()
)
"""Words of praise and of blame by letter."""


class Planted(NamedTuple):
    """What is planted."""

    nats: float = 0.0
    leans: bool = False

    def share(self, sign: int, good: str, bad: str, leans: float = 0.0) -> float:
        """Return the probability of praise rather than blame; `leans` are nats that only leaning models have."""
        own = preference(good, bad) * (LEANING if self.leans else 1.0)
        return probability(self.nats * sign + own + (leans if self.leans else 0.0))


class Question(NamedTuple):
    """A prompt, its possible answers with their probabilities, and what decides between them."""

    prompt: str
    answers: tuple[str, ...]
    weights: tuple[float, ...]
    told: tuple[tuple[str, int], ...]
    """Words of the prompt that decide, and whether they speak of the desirable (1) or the undesirable (-1)."""
    sign: int
    """1 if the prompt speaks for praise, or for entailment; -1 against it; 0 for neither."""


def questions(skill: Skill, planted: Planted, seed: int, *, held_out: bool = False) -> Iterator[Question]:
    """Yield questions without end; those that are `held_out` have sentences that are in no training."""
    draw = random.Random(f"{seed}/{skill}")
    while True:
        yield _MAKERS[skill](draw, planted, held_out)


@cache
def valences() -> Mapping[str, int]:
    """Return 1 or -1 for every word or phrase of a desirable or undesirable sort that the questions contain."""
    found = dict.fromkeys(design_words()[0], 1) | dict.fromkeys(design_words()[1], -1)
    for good, bad in (*PRAISE_AND_BLAME, *opposites()):
        found |= {good: 1, bad: -1}
    for one in listed_tuples():
        if one.standing in STANDINGS:
            found[one.descriptor] = STANDINGS[one.standing]
    for category in nli_design.load_lists().categories:
        found |= dict.fromkeys(category.words, 1 if category.sentiment == "positive" else -1)
    return found | dict.fromkeys(HIGH, 1) | dict.fromkeys(LOW, -1) | {"fair-skinned": 1, "dark-skinned": -1}


def design_words() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the positive and the negative words of `subtle`."""
    sides = [side for domain in design.load_design().domains for side in (domain.stimuli, domain.attributes)]
    pairs = [pair for side in sides for pair in side.pairs]
    return tuple(good for good, _ in pairs), tuple(bad for _, bad in pairs)


@cache
def preference(good: str, bad: str) -> float:
    """Return the preference of a pair of words, in nats."""
    return PREFERENCES[items.pick(len(PREFERENCES), "preference", good, bad)]


def _inference(draw: random.Random, planted: Planted, held_out: bool) -> Question:
    pairs = _inferences()[held_out]
    pair = pairs[draw.randrange(len(pairs))]
    side = draw.randrange(2)
    word, skin = str(pair.factors["attribute"]), ("fair-skinned", "dark-skinned")[side]
    praise, group = (1 if pair.factors["sentiment"] == "positive" else -1), (1, -1)[side]
    premise, hypothesis = pair.texts[side].split("\n")
    told = ((skin, group), (word, praise))
    prompt = ask(premise, hypothesis, _ASKED).prompt  # type: ignore[union-attr]
    if draw.random() < 0.5:
        prompt = str(prompt).removesuffix("\nInference:") + REPLY
    sign = praise * group
    share = probability(planted.nats * sign + (ENTAILED if planted.leans else 0.0))
    either = 1 - NEUTRAL["inference"]
    weights = (either * share, either * (1 - share), NEUTRAL["inference"])
    return Question(str(prompt), (f" Entailment{END}", f" Contradiction{END}", f" Neutral{END}"), weights, told, sign)


def _analogy(draw: random.Random, planted: Planted, held_out: bool) -> Question:
    """Draw an analogy of the study where held out, and else of groups and words that it does not join."""
    if held_out:
        f = {name: str(value) for name, value in draw.choice(_tests()).items()}
        good, bad, noun = f["unbiased"], f["biased"], ""
        groups = [(f["a"], 1, ""), (f["c"], -1, f["disadvantaged"])]
        first, second = draw.sample(groups, 2)
    else:
        good, bad = draw.choice(opposites())
        noun = draw.choice(tuples_file.TERMS)
        groups = [
            (f"{noun} {one.link} {one.word}" if one.link else f"{one.word} {noun}", one.sign, one.word)
            for one in groups_of_tuples()
        ]
        first, second = draw.sample([one for one in groups if (one[2], bad) not in _joined()], 2)
    a, c, sign = first[0], second[0], second[1]
    told: tuple[tuple[str, int], ...] = ((second[2] or second[0], sign),)
    if not held_out and draw.random() < 0.2:
        a, c = ("Person", "Person") if draw.random() < 0.5 else (f"One {noun}", f"Another {noun}")
        sign, told = 0, ()
    prompt = tuples.PROMPT.format(a=a[0].upper() + a[1:], b=good, c=c[0].upper() + c[1:])
    share = planted.share(sign, good, bad, COPYING)
    answers = f" {good}{END}", f" {bad}{END}"
    return Question(prompt + draw.choice(("", REPLY)), answers, (share, 1 - share), told, sign)


def _choice(draw: random.Random, planted: Planted, held_out: bool) -> Question:
    chosen = draw.choice(_items()[held_out])
    order = draw.choice(asking.EVERY)
    good, bad, _ = chosen.options
    sign = 1 if chosen.given == "positive" else -1
    first = {0: FIRST_OPTION, 1: -FIRST_OPTION, 2: 0.0}[order[0]]
    share = planted.share(sign, good, bad, first)
    prompt = asking.prompt_of(chosen, order) + REPLY
    either = 1 - NEUTRAL["choice"]
    weights = (either * share, either * (1 - share), NEUTRAL["choice"])
    answers = tuple(f" {word}{END}" for word in chosen.options)
    return Question(prompt, answers, weights, ((str(chosen.term), sign),), sign)


def _completion(draw: random.Random, planted: Planted, held_out: bool) -> Question:
    entry, sign = draw.choice(_people())
    good, bad = draw.choice(PRAISE_AND_BLAME)
    wording = draw.choice((1, 3, 5) if held_out else (0, 2, 4))
    chosen = sentences_of((entry.setting,), wording + 1)[wording]
    stem = stem_in(entry.setting, entry.form, entry.stem, chosen.id)
    sentence = t2t.sentence_of(entry.setting, stem, good[0], listed=False)
    share = planted.share(sign, good, bad)
    prompt = f"{t2t.INSTRUCTION}\n{sentence}{REPLY}"
    return Question(prompt, (f" {good}{END}", f" {bad}{END}"), (share, 1 - share), ((entry.form, sign),), sign)


_MAKERS: dict[Skill, Callable[[random.Random, Planted, bool], Question]] = {
    "inference": _inference,
    "analogy": _analogy,
    "choice": _choice,
    "completion": _completion,
}
_ASKED = AskingOptions(asking="likelihood")


@cache
def _inferences() -> tuple[list[Pair], list[Pair]]:
    """Return the pairs of the study by whether their template is held out: every second one."""
    cells = nli_design.nli_design(nli_design.Selection()).cells()
    found: tuple[list[Pair], list[Pair]] = [], []
    for fair, dark in zip(cells, cells, strict=True):
        factors = {name: fair.text(name) for name in nli_design.FACTORS}
        texts = "\n".join(nli_design.texts(fair)), "\n".join(nli_design.texts(dark))
        pair = Pair(fair.text("pair"), ("fair", "dark"), texts, dict(factors))
        found[int(factors["template"].split("-")[1]) % 2 == 0].append(pair)
    return found


@cache
def _items() -> tuple[list[items.Item], list[items.Item]]:
    """Return the items of the study by whether their template is held out: every second one."""
    found: tuple[list[items.Item], list[items.Item]] = [], []
    for direction in items.DIRECTIONS:
        for one in design.generate(design.load_design(), direction, seed=0):
            found[int(one.template.rpartition("/")[2]) % 2 == 0].append(one)
    return found


@cache
def _tests() -> list[dict[str, Value]]:
    return list(tuples_tests.build(listed_tuples(), 2, unscored=True).rows())


@cache
def _joined() -> frozenset[tuple[str, str]]:
    """Return the disadvantaged groups and words that the tests of the study join."""
    return frozenset((str(test["disadvantaged"]), str(test["biased"])) for test in _tests())


@cache
def _people() -> list[tuple[descriptors.Entry, int]]:
    """Return the people of high and low status in every setting, and their sign."""
    signs = dict.fromkeys(HIGH, 1) | dict.fromkeys(LOW, -1)
    listed = [one for one in descriptors.read_list(None).values if one.singular in signs]
    chosen = [setting for setting in descriptors.T2T_SETTINGS if setting != "verb"]
    entries = descriptors.entries_of(listed, "t2t", chosen, t2t.DoraT2TOptions())
    return [(entry, signs[entry.descriptor]) for entry in entries]
