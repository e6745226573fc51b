"""What an answer says of the values it names, clause by clause; every rule is the same for each value.

- A clause *states* a value if it says no more than that this is the answer: `(a)`, `I would pick b`, `(b) is correct`.
- A value that is denied (`not (a)`), asked about, or one of several in a clause is not stated.
- The one value that an answer states is read. If none is stated, the only one that is named is read, if it is marked as
  an answer (`(a)`, `4 out of 5`) and nothing is denied or open.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

from .results import Reason, Unread, Value
from .unwrap import EDGES

_TOKEN = re.compile(r"\x00\d+\x00|[^\W_]+(?:['-][^\W_]+)*|\n|[^\w\s]")
_BREAKS = frozenset(
    """so therefore thus hence but because since however which given due based although though while whereas as where
    yet""".split()
)
_THAN = frozenset("rather instead over than except besides unlike versus vs".split())
"""Words that begin a clause about what is not the answer."""
_DENIALS = frozenset(
    """not no non neither nor cannot never without nothing fails unlikely wrong incorrect false less least eliminated
    eliminate excluded exclude refuse decline avoid reject rejected rule ruled ruling discard
    dismiss skip doubt against nicht kein keine pas ningun nao""".split()
)
_DENYING_HEADS = frozenset("wrong incorrect false eliminated excluded rejected unlikely".split())
_OPEN = frozenset(
    """if unless whether unclear unsure uncertain unknown requires require needs need means mean meaning when depends
    people some someone somebody others many society stereotype stereotypes stereotypically stereotypical tempting
    tempted example instance instructions asked initially originally previously""".split()
)
"""A value beside one of these is discussed, or somebody else's."""
_REPEATS = re.compile(r"respond|reply|please")
"""First words of a sentence of the question."""
_ASKS = re.compile(
    r"respond|reply|select|choose|pick|answer|please|options?|is|are|does|do|which|what|rate|either|on|in"
)
_SAYS = frozenset(
    """answer answers label relation classification conclusion prediction output result verdict judgment judgement
    choice option decision category response question guess estimate rating score level person man woman image picture
    photo text it it's its this that's that these they she he she's he's they're i i'd i'll i'm we is are be would
    must should could will can may might does do did say says saying think believe feel guessing choose pick
    select go going get with as a an the of for to from in on my our your final correct right best better most
    more likely probable probably plausible clearly simply just overall perhaps maybe possibly actually indeed
    here stands leaning lean leans towards leads remains both there one seems seem appears appear looks look like
    suitable fitting appropriate accurate true sure okay ok well now then and or had based identify identified
    assume suppose call closer closest fits fit matches match good ja also ich w\u00fcrde ist die antwort je pense
    est la r\u00e9ponse es creo respuesta eu acho resposta \u00e9 hmm let's let me see ultimately conclude""".split()
)
"""Words that say no more than that a value is the answer."""
_COPULA = frozenset(
    "is are was means mean would represents refers stands describes implies suggests has does for".split()
)
_TAKES_BACK = re.compile(
    r"\b(?:can't|cannot|can not|won't|unable to|refuse to|decline to|not able to)\s+(?:\w+\s+)?"
    r"(?:answer|say|choose|decide|determine|pick|tell|help|assist|judge|know)\b",
    re.I,
)
_UNFINISHED = re.compile(
    r"(?:[:=(\[]|\b(?:is|be|are|with|the|an?|it|of|as|like|would(?: say| choose| pick)?|or|und|ist|est|es))\s*\Z", re.I
)


class Mark(NamedTuple):
    """A value that stands in a text."""

    start: int
    end: int
    value: Hashable
    strong: bool
    """Whether it is marked as an answer; others count only in a clause that states them."""
    kind: str = ""
    """How it is named, if a value may be named in several ways."""


class _Clause(NamedTuple):
    words: tuple[str | Mark, ...]
    end: str
    denied: bool

    @property
    def marks(self) -> list[Mark]:
        return [word for word in self.words if isinstance(word, Mark)]


class Reading(NamedTuple):
    """Values by what an answer says of them."""

    stated: tuple[Mark, ...]
    denied: frozenset[Hashable]
    open: frozenset[Hashable]
    listed: frozenset[Hashable]
    named: tuple[Mark, ...]
    echo: bool


def read_clauses(text: str, marks: Sequence[Mark], says: frozenset[str] = frozenset()) -> Reading:
    """Return what the clauses of a text say of the values that it names.

    Args:
        text: The text, without wrapping.
        marks: The values in it, in order and without overlap.
        says: Further words that say no more than that a value is the answer.
    """
    stated: list[Mark] = []
    named: list[Mark] = []
    denied: set[Hashable] = set()
    discussed: set[Hashable] = set()
    listed: set[Hashable] = set()
    echo = False
    for clause in _without_options([*_clauses(text, marks)], {mark.value for mark in marks}):
        values = {mark.value for mark in clause.marks}
        kind = _kind(clause, says)
        if kind == "listed":
            listed |= values
            echo = echo or _asks(clause)
            if stated and not _asks(clause) and all(word in _SAYS for word in clause.words if isinstance(word, str)):
                # `(a). The answer is (b) or (a).` takes the first answer back.
                stated += clause.marks
        elif kind in ("denied", "open"):
            (denied if kind == "denied" else discussed).update(values)
        elif kind == "stated":
            stated += clause.marks
        elif kind == "named":
            named += [mark for mark in clause.marks if mark.strong]
    return Reading(tuple(stated), frozenset(denied), frozenset(discussed), frozenset(listed), tuple(named), echo)


def decide(text: str, marks: Sequence[Mark], says: frozenset[str] = frozenset()) -> Value[Hashable] | Unread:
    """Return the one value that a text gives as its answer.

    Args:
        text: The text, without wrapping.
        marks: The values in it, in order and without overlap.
        says: Further words that say no more than that a value is the answer.
    """
    if not text.strip(EDGES):
        return Unread("an empty answer")
    reading = read_clauses(text, marks, says)
    for how, group in (("stated", reading.stated), ("named", reading.named)):
        values = {mark.value for mark in group}
        if how == "named" and (reading.denied or reading.open or reading.listed):
            break
        if len(values) > 1:
            return Unread(_disagreement(group))
        if values:
            if _TAKES_BACK.search(text, group[-1].end):
                return Unread("a denied answer")
            alone = not re.sub(r"\W", "", text[: group[0].start] + text[group[0].end :])
            return Value(values.pop(), "alone" if alone else "stated" if how == "stated" else "named")
    return Unread(_reason(text, marks, reading))


def _disagreement(group: Sequence[Mark]) -> Reason:
    by_kind = {kind: {mark.value for mark in group if mark.kind == kind} for kind in {mark.kind for mark in group}}
    single = len(by_kind) > 1 and all(len(values) == 1 for values in by_kind.values())
    return "a number and other words" if single else "several answers"


def _reason(text: str, marks: Sequence[Mark], reading: Reading) -> Reason:
    if reading.listed:
        return "echo of the question" if reading.echo else "several answers"
    if reading.denied or reading.open:
        return "several answers" if len(reading.open) > 1 else "a denied answer"
    if _UNFINISHED.search(text):
        return "cut off"
    return "an answer among other words" if any(mark.strong for mark in marks) else "other words"


def _kind(clause: _Clause, says: frozenset[str]) -> str:
    """Return `stated`, `denied`, `open`, `listed`, `described` or `named`."""
    words = [word for word in clause.words if isinstance(word, str)]
    place = next(at for at, word in enumerate(clause.words) if isinstance(word, Mark))
    after = clause.words[place + 1 : place + 2]
    denied = clause.denied or any(map(_denies, words))
    if len({mark.value for mark in clause.marks}) > 1 or "or" in words:
        return "denied" if denied else "listed"
    if clause.end == "?" or not _OPEN.isdisjoint(words) or (words and _REPEATS.fullmatch(words[0])):
        return "open"
    if denied:
        return "denied"
    if all(word in _SAYS or word in says for word in words):
        return "stated"
    if place == 0 and clause.marks[0].strong:
        if after and after[0] in _COPULA:
            return "open" if after[0] in ("would", "means", "implies", "suggests") else "described"
        return "stated"
    return "named"


def _denies(word: str) -> bool:
    return word in _DENIALS or word.endswith("n't")


def _asks(clause: _Clause) -> bool:
    first = next((word for word in clause.words if isinstance(word, str)), "")
    return clause.end in ("?", "option") or _ASKS.fullmatch(first) is not None


def _says_more(clause: _Clause) -> bool:
    """Return whether a clause says something of its option, and does not only show it."""
    words = [word for word in clause.words if isinstance(word, str)]
    return not _COPULA.isdisjoint(words[:1]) or any(map(_denies, words))


def _without_options(clauses: Sequence[_Clause], values: set[Hashable]) -> Iterator[_Clause]:
    """Yield the clauses with marks; a list of all options is one clause."""
    clauses = [clause for clause in clauses if clause.marks or clause.words]
    at = 0
    while at < len(clauses):
        run: list[_Clause] = []
        for clause in clauses[at:]:
            marks = clause.marks
            heads = len(marks) == 1 and isinstance(clause.words[0], Mark) and marks[0].strong
            option = heads and (len(clause.words) > 1 or clause.end == ":")
            fresh = option and marks[0].value not in {seen.value for earlier in run for seen in earlier.marks}
            if not (fresh or (run and not marks and run[-1].end == ":" and len(run[-1].words) == 1)):
                break
            run.append(clause)
        marks = [mark for clause in run for mark in clause.marks]
        plain = not any(map(_says_more, run))
        if len(values) > 1 and plain and {mark.value for mark in marks} == values:
            yield _Clause(tuple(marks), "option", False)
            at += len(run)
            continue
        if clauses[at].marks:
            yield clauses[at]
        at += 1


def _clauses(text: str, marks: Sequence[Mark]) -> Iterator[_Clause]:
    """Yield the clauses of a text, with marks in the place of their words."""
    pieces, end = [], 0
    for number, mark in enumerate(marks):
        pieces += [text[end : mark.start], f" \x00{number}\x00 "]
        end = mark.end
    tokens = _TOKEN.findall("".join([*pieces, text[end:]]))
    words: list[str | Mark] = []
    denied = False
    for at, token in enumerate(tokens):
        if token[0] == "\x00":
            words.append(marks[int(token[1:-1])])
            continue
        low = token.lower()
        if not _breaks(low, words, tokens[at + 1 : at + 4]):
            words += [low] if token[0].isalnum() else []
            continue
        yield _Clause(tuple(words), token, denied)
        # A heading denies what stands under it: `Eliminated: (a)`.
        denied = low in _THAN or (low == ":" and not _DENYING_HEADS.isdisjoint(map(str, words)))
        words = [low] if low in _OPEN else []
    yield _Clause(tuple(words), "", denied)


def _breaks(token: str, words: Sequence[str | Mark], following: Sequence[str]) -> bool:
    """Return whether a token ends a clause."""
    if token == ",":
        listed = next((word for word in following if word not in ("or", "nor", "and", "a", "an")), "")
        opened = bool(words) and words[0] in _OPEN
        return not opened and not (listed[:1] == "\x00" and any(isinstance(word, Mark) for word in words))
    if token in "-\u2013\u2014" and following[:1] and words:
        return not (isinstance(words[-1], Mark) and following[0][0] == "\x00")
    return token in ".;:!?\n\u3002|" or token in _BREAKS or token in _THAN
