"""Reading of the label of an answer in words, clause by clause; every rule is the same for each label.

- A clause *states* a label if it says no more than that this is the answer: `Neutral`, `Label: neutral`, `so the
  hypothesis is neutral`. The one label that an answer states, be it first or last, is read, whatever the answer says of
  the others; an answer that states several has none.
- In an answer that states none, a label that is denied (`not entailment`) or only discussed (`whether it is neutral`)
  is not read, but two denied labels leave the third.
- Otherwise the one label that it names is read.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

import msgspec

from ...core.contracts import Unreadable
from .terms import LABELS

EMPTY, SEVERAL, DENIED, OTHER = "an empty answer", "several labels", "a label that is denied", "other words"
"""Kinds of unreadable answers."""
_STEMS = {"ent": LABELS[0], "con": LABELS[1], "neu": LABELS[2]}
_LABEL = r"(?:entail|contradict|neutral)[a-z]*"
_IS_LABEL = re.compile(_LABEL, re.I)
_THOUGHTS = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.S | re.I)
_REPEATED = re.compile(r"\A\W*premise\W*:.*?\bhypothesis\W*:[^\n]*\n", re.S | re.I)
_FURTHER = re.compile(r"\bpremise\W*:|\n\W*hypothesis\W*:", re.I)
_GLOSS = re.compile(r"\(the hypothesis[^)]*\)?", re.I)
"""Explanations of the labels in prompts 1 and 2. A model may repeat them, and one explanation names another label."""
_MARKUP = re.compile(r"\\boxed\b|\\text\w*|```\w*|[*`\"\[\]{}$#>=~]|_{2,}|(?<!\w)'|'(?!\w)")
_ANSWERED = re.compile(rf"\b({_LABEL})[\s:,|(\u2013\u2014-]*\b(?:(yes|true)|no|false)\b(?![ \t]*\w)", re.I)
_SHARE = re.compile(rf"\b{_LABEL}[\s:,|(\u2013\u2014-]*(?:\d+(?:\.\d+)?\s*%|[01]?\.\d+)", re.I)
_ITEM = re.compile(r"^(\W*[123])[.):]+(?=\s)", re.M)
_TOKEN = re.compile(r"[^\W_]+(?:[-'_][^\W_]+)*|\n|[^\w\s]")
_BREAKS = frozenset(
    "so therefore thus hence but because since however which given due based although though while whereas".split()
)
"""Words that begin a clause."""
_AS = frozenset("the there it no neither nothing nobody we she he they".split())
_AND = frozenset("is it thus so hence therefore not does do neither the this".split())
"""Words after `as` and `and` that make these begin a clause."""
_DENIALS = frozenset("not no non neither nor cannot never without nothing fails unlikely".split())
_OPEN = frozenset("if unless whether unclear unsure uncertain unknown requires require needs need means when".split())
"""A label beside one of these is discussed."""
_SAYS = frozenset(
    """answer label inference relation relationship classification conclusion prediction output result verdict judgment
    judgement choice option decision category status response type nli hypothesis premise statement sentence sentences
    pair text it it's this that's that these they i i'd i'll we is are be would must should does do did say think choose
    pick go get with classify classified label labelled labeled describe described considered as a an the of for between
    to towards and or nor either my your final correct right best most more likely probably clearly simply just overall
    perhaps maybe possibly actually indeed here is in conclusion summary makes leaving stands leads remains first second
    both number other one there 's case""".split()
)
"""Words that say no more than that a label is the answer."""


class Clause(msgspec.Struct, frozen=True):
    """Words in lower case, and what ends them."""

    words: tuple[str, ...]
    end: str = ""

    def labels(self, *, numbered: bool) -> list[tuple[int, str]]:
        """Return the labels with their places; numbers of labels only where they are the answer and nothing else is."""
        found = [(at, label) for at, word in enumerate(self.words) if (label := _label(word))]
        if numbered and not [word for word in self.words if not (_label(word) or word in _SAYS or word in "123")]:
            found += [(at, LABELS[int(word) - 1]) for at, word in enumerate(self.words) if word in ("1", "2", "3")]
        return found

    @property
    def denial(self) -> int | None:
        """Return the place of the first denial."""
        return next((at for at, word in enumerate(self.words) if word in _DENIALS or word.endswith("n't")), None)

    @property
    def bare(self) -> bool:
        """Return whether the clause says no more than that something is, or is not, the answer."""
        return all(_label(w) or w in _SAYS or w in _DENIALS or w.endswith("n't") or w in "123" for w in self.words)

    @property
    def heads(self) -> bool:
        """Return whether it is a label alone, as the heading of a text on this label."""
        return self.end == ":" and self.bare and self.denial is None


def read_words(text: str, *, numbered: bool) -> str | Unreadable:
    """Return the label of an answer; `numbered` says whether the prompt numbers the labels from 1 to 3."""
    answer = _answer(text)
    if not answer:
        return Unreadable(EMPTY)
    if len({_label(found[0]) for found in _SHARE.finditer(answer)}) > 1:
        return Unreadable(SEVERAL)
    stated, denied, open_, named = _sorted([*_clauses(_TOKEN.findall(answer))], numbered=numbered)
    if len(stated) == 1:
        return stated.pop()
    if stated:
        return Unreadable(SEVERAL)
    if len(denied) == 2 and not open_ and not named:
        return next(label for label in LABELS if label not in denied)
    if denied or open_:
        return Unreadable(DENIED)
    if named:
        return named.pop() if len(named) == 1 else Unreadable(SEVERAL)
    return Unreadable(OTHER)


def _answer(text: str) -> str:
    """Return the answer without thoughts, a repetition of the question, the examples that a base model adds, markup."""
    plain = unicodedata.normalize("NFKC", text).translate({0x2018: "'", 0x2019: "'", 0x201C: '"', 0x201D: '"'})
    plain = _REPEATED.sub("", _THOUGHTS.sub("", plain).strip())
    plain = _MARKUP.sub(" ", _GLOSS.sub("", _FURTHER.split(plain, maxsplit=1)[0]))
    answered = _ANSWERED.sub(lambda found: f"\n{'' if found[2] else 'not '}{found[1]}\n", plain)
    return _ITEM.sub(r"\1 ", answered).strip()


def _sorted(clauses: Sequence[Clause], *, numbered: bool) -> tuple[set[str], set[str], set[str], set[str]]:
    """Return the labels that are stated, denied, only discussed, and only named."""
    stated: set[str] = set()
    denied: set[str] = set()
    discussed: set[str] = set()
    named: set[str] = set()
    first, several = True, sum(clause.heads and bool(clause.labels(numbered=False)) for clause in clauses) > 1
    for clause in clauses:
        found, denial = clause.labels(numbered=numbered), clause.denial
        if not found:
            continue
        labels = {label for _, label in found}
        if clause.end == "?" or not _OPEN.isdisjoint(clause.words):
            discussed |= labels
        elif denial is not None:
            (denied if clause.bare and all(at > denial for at, _ in found) else discussed).update(labels)
        elif clause.bare and not (clause.heads and (several or not first)):
            stated |= labels
        else:
            named |= labels
        first = False
    return stated, denied, discussed, named


def _clauses(tokens: Sequence[str]) -> Iterator[Clause]:
    words: list[str] = []
    for at, token in enumerate(tokens):
        following = [word.lower() for word in tokens[at + 1 : at + 4]]
        if not _breaks(token, words, tokens[at - 1] if at else "", following):
            words += [token.lower()] if token[0].isalnum() else []
            continue
        yield Clause(tuple(words), token)
        words = _begun(token.lower())
    yield Clause(tuple(words))


def _begun(token: str) -> list[str]:
    """Return the first words of a clause that a token begins."""
    if token in ("rather", "instead"):
        return ["not"]
    return [] if token in _BREAKS or token in ("as", "and") or not token[0].isalnum() else [token]


def _breaks(token: str, words: Sequence[str], before: str, following: Sequence[str]) -> bool:
    """Return whether a token ends a clause, or begins another."""
    word, after = token.lower(), following[0] if following else ""
    if token == ",":
        listed = next((one for one in following if one not in ("or", "nor", "and", "a", "an")), "")
        return not (words and words[0] in _OPEN) and not (_label(listed) and any(map(_label, words)))
    if not word[0].isalnum():
        return True
    if word in _BREAKS or (word in ("rather", "instead") and after in ("than", "of")):
        return True
    if (word == "as" and after.partition("'")[0] in _AS) or (word == "and" and after in _AND):
        return True
    return bool(_label(before)) and token.istitle() and not _label(token) and words[-1:] == [before.lower()]


def _label(word: str) -> str | None:
    return _STEMS[word[:3].lower()] if _IS_LABEL.fullmatch(word) else None
