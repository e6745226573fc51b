"""Which of several labels a text states, clause by clause; every rule is the same for each label.

- A clause *states* a label if it says no more than that this is the answer: `Neutral`, `Label: neutral`, `so the
  hypothesis is neutral`. The one label that a text states, be it first or last, is read, whatever the text says of
  the others. Of several, the last counts if it is announced (`Final answer: neutral`) and nothing is stated behind it.
- A label that is denied (`not entailment`) or only discussed (`whether it is neutral`) is not read.
- Where the labels are exhaustive, two denied labels of three leave the third, and the one label that a text names in a
  sentence of its own is read.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence

import msgspec

from .results import Unread, Value
from .unwrap import unwrap

_MARKUP = re.compile(r"[*`\"\[\]{}$#>=~|]|_{2,}|(?<!\w)'|'(?!\w)")
_ITEM = re.compile(r"^(\W*\d)[.):]+(?=\s)", re.M)
_TOKEN = re.compile(r"[^\W_]+(?:[-'_][^\W_]+)*|\n|[^\w\s]")
_BREAKS = frozenset(
    "so therefore thus hence but because since however which given due based although though while whereas".split()
)
"""Words that begin a clause."""
_AS = frozenset("the there it no neither nothing nobody we she he they".split())
_AND = frozenset("is it thus so hence therefore not does do neither the this".split())
"""Words after `as` and `and` that make these begin a clause."""
DENIALS = frozenset("not no non neither nor cannot never without nothing fails unlikely".split())
_OPEN = frozenset("if unless whether unclear unsure uncertain unknown requires require needs need means when".split())
"""A label beside one of these is discussed."""
_DECIDING = frozenset("between choose decide pick".split())
"""Beside a denial, one of these says that nothing was decided."""
_ANNOUNCING = frozenset("answer final finally conclusion label inference choice verdict decision antwort".split())
_OPENERS = frozenset("the this that these it its in on a an there they he she i we explanation reason note".split())
"""Words that begin a sentence where they have a capital behind a label."""
_SAYS = frozenset(
    """answer label classification conclusion prediction output result verdict judgment judgement choice option decision
    category status response type text it it's this that's that these they i i'd i'll we is are be would must should
    does do did say think choose pick go get with classify classified labelled labeled describe described considered as
    a an the of for between to towards and or nor either my your final finally correct right best most more likely
    probably clearly simply just overall perhaps maybe possibly actually indeed here in summary makes leaving stands
    leads remains first second both number other one there 's case sure seems
    """.split()
)
"""Words that say no more than that a label is the answer."""


class Labels(msgspec.Struct, frozen=True):
    """Labels that a text may state, and the words for them.

    Example:
        >>> from prejudge.core.reading.stated import Labels, read_stated
        >>> read_stated("I'd say it rains.", Labels(("rain", "sun"), ("rain(?:s|y)?", "sun(?:ny)?"))).value
        'rain'
    """

    names: tuple[str, ...]
    forms: tuple[str, ...]
    """Per label a pattern of the words for it, in lower case."""
    says: frozenset[str] = frozenset()
    """Further words that say no more than that a label is the answer."""
    numbers: tuple[str, ...] = ()
    """The labels by their numbers in the question, from 1; empty: they have none."""
    exhaustive: bool = False
    """Whether one of them is the case, so that the others may be denied, and one may be named in any sentence."""

    def label_of(self, word: str) -> str | None:
        """Return the label that a word stands for."""
        return next(
            (name for name, form in zip(self.names, self.forms, strict=True) if _form(form).fullmatch(word)), None
        )

    def number_of(self, word: str) -> str | None:
        """Return the label that a number stands for."""
        place = int(word) if len(word) < 3 and word.isdecimal() else 0
        return self.numbers[place - 1] if 0 < place <= len(self.numbers) else None

    def is_plain(self, word: str) -> bool:
        """Return whether a word names a label, or says no more than that one is the answer, or is not."""
        return bool(self.label_of(word) or word in _SAYS or word in self.says or self.number_of(word)) or _denies(word)


class Clause(msgspec.Struct, frozen=True):
    """Words in lower case, what ends them, and what they say of the labels."""

    words: tuple[str, ...]
    end: str
    labels: tuple[tuple[int, str], ...]
    """Labels with their places."""
    bare: bool
    """Whether the clause says no more than that something is, or is not, the answer."""
    announced: bool
    """Whether it, or the clause before its colon, speaks of the answer."""

    @property
    def denial(self) -> int | None:
        """Return the place of the first denial."""
        return next((at for at, word in enumerate(self.words) if _denies(word)), None)

    @property
    def heads(self) -> bool:
        """Return whether it is a label alone, as the heading of a text on this label."""
        return self.end == ":" and self.bare and self.denial is None


class _Found(msgspec.Struct):
    stated: list[tuple[frozenset[str], bool]]
    """Labels of each clause that states some, and whether it is announced."""
    denied: set[str]
    discussed: set[str]
    named: set[str]


def read_stated(text: str, labels: Labels, question: str = "") -> Value[str] | Unread:
    """Return the label that an answer states.

    Args:
        text: An answer as received, without reasoning.
        labels: The labels, with the words for them.
        question: The question, to recognise its repetition.

    Returns:
        The name of the label with the way it was read, or why there is none. No text raises an error.
    """
    answer = unwrap(text, question)
    if answer.empty:
        return Unread("an empty answer")
    behind = [read_clauses(part, labels) for part in answer.stated]
    values = {read.value for read in behind if isinstance(read, Value)}
    if len(values) == len(labels.names) > 2:
        # All of them behind one mark each are the list of the question.
        return Unread("several answers")
    if behind and isinstance(last := behind[-1], Value):
        return Value(last.value, "announced")
    return read_clauses(answer.text, labels)


def read_clauses(text: str, labels: Labels) -> Value[str] | Unread:
    """Return the label that a text without wrapping states."""
    plain = _MARKUP.sub(" ", text)
    share, answered = _patterns(labels.forms)
    if len({labels.label_of(match[1].lower()) for match in share.finditer(plain)}) > 1:
        return Unread("several answers")
    plain = answered.sub(lambda match: f"\n{'' if match[2] else 'not '}{match[1]}\n", plain)
    plain = _ITEM.sub(r"\1 " if labels.numbers else "\n", plain)
    sides = _sorted([*_clauses(_TOKEN.findall(plain), labels)])
    if sides.stated:
        return _last(sides.stated)
    if labels.exhaustive and len(sides.denied) == len(labels.names) - 1 and not sides.discussed and not sides.named:
        return Value(next(name for name in labels.names if name not in sides.denied), "by elimination")
    if sides.denied:
        return Unread("a denied answer")
    several = len(sides.discussed | sides.named) > 1
    if sides.named and not several and labels.exhaustive and not sides.discussed:
        return Value(sides.named.pop(), "named")
    if several:
        return Unread("several answers")
    return Unread("an answer among other words" if sides.discussed or sides.named else "other words")


def _last(stated: Sequence[tuple[frozenset[str], bool]]) -> Value[str] | Unread:
    """Return the one label that is stated, or the last one if it is announced and nothing else is stated behind it."""
    together = frozenset[str]().union(*(names for names, _ in stated))
    if len(together) == 1:
        return Value(min(together), "stated")
    places = [at for at, (_, announced) in enumerate(stated) if announced]
    last = frozenset[str]().union(*(names for names, _ in stated[places[-1] :])) if places else together
    return Value(min(last), "announced") if len(last) == 1 else Unread("several answers")


def _sorted(clauses: Sequence[Clause]) -> _Found:
    """Return the labels that are stated, denied, only discussed, and only named."""
    sides = _Found([], set(), set(), set())
    first, several = True, sum(clause.heads and bool(clause.labels) for clause in clauses) > 1
    for clause in clauses:
        if not clause.labels:
            continue
        denial, labels = clause.denial, frozenset(label for _, label in clause.labels)
        undecided = denial is not None and not _DECIDING.isdisjoint(clause.words)
        if clause.end == "?" or undecided or not _OPEN.isdisjoint(clause.words):
            sides.discussed |= labels
        elif denial is not None:
            all_behind = clause.bare and all(at > denial for at, _ in clause.labels)
            (sides.denied if all_behind else sides.discussed).update(labels)
        elif clause.bare and not (clause.heads and (several or not first) and not clause.announced):
            sides.stated.append((labels, clause.announced))
        else:
            sides.named |= labels
        first = False
    return sides


def _clauses(tokens: Sequence[str], labels: Labels) -> Iterator[Clause]:
    words: list[str] = []
    announced = False
    for at, token in enumerate([*tokens, "\n"]):
        following = [word.lower() for word in tokens[at + 1 : at + 4]]
        if at < len(tokens) and not _breaks(token, words, tokens[at - 1] if at else "", following, labels):
            words += [token.lower()] if token[0].isalnum() else []
            continue
        clause = _clause(words, token, labels, announced=announced)
        yield clause
        speaks = not _ANNOUNCING.isdisjoint(words)
        announced = (speaks and (token == ":" or not clause.labels)) or (announced and not words)
        words = _begun(token.lower())


def _clause(words: Sequence[str], end: str, labels: Labels, *, announced: bool) -> Clause:
    places = [(at, label) for at, word in enumerate(words) if (label := labels.label_of(word))]
    bare = all(map(labels.is_plain, words))
    if bare:
        # A number is that of a label only where it is the answer and nothing else is said.
        places += [(at, label) for at, word in enumerate(words) if (label := labels.number_of(word))]
    speaks = announced or not _ANNOUNCING.isdisjoint(words)
    return Clause(tuple(words), end, tuple(places), bare, speaks)


def _begun(token: str) -> list[str]:
    """Return the first words of a clause that a token begins."""
    if token in ("rather", "instead"):
        return ["not"]
    return [] if token in _BREAKS or token in ("as", "and") or not token[0].isalnum() else [token]


def _breaks(token: str, words: Sequence[str], before: str, following: Sequence[str], labels: Labels) -> bool:
    """Return whether a token ends a clause, or begins another."""
    word, after = token.lower(), following[0] if following else ""
    if token == ",":
        listed = next((word for word in following if word not in ("or", "nor", "and", "a", "an")), "")
        return not (words and words[0] in _OPEN) and not (labels.label_of(listed) and any(map(labels.label_of, words)))
    if not word[0].isalnum():
        return True
    if word in _BREAKS or (word in ("rather", "instead") and after in ("than", "of")):
        return True
    if (word == "as" and after.partition("'")[0] in _AS) or (word == "and" and after in _AND):
        return True
    is_new = bool(labels.label_of(before.lower())) and token.istitle() and word in _OPENERS
    return is_new and words[-1:] == [before.lower()]


def _denies(word: str) -> bool:
    return word in DENIALS or word.endswith("n't")


@functools.lru_cache(maxsize=256)
def _form(form: str) -> re.Pattern[str]:
    return re.compile(form, re.I)


@functools.lru_cache(maxsize=64)
def _patterns(forms: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of a label with a share, and of a label that is answered by yes or no."""
    label = rf"\b({'|'.join(f'(?:{form})' for form in forms)})\b[\s:,|(\u2013\u2014-]*"
    return (
        re.compile(rf"{label}(?:\d+(?:\.\d+)?\s*%|[01]?\.\d+)", re.I),
        re.compile(rf"{label}\b(?:(yes|true)|no|false)\b(?![ \t]*\w)", re.I),
    )
