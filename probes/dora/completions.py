"""Reading of a completion: one word that begins with the requested letter, or the kind of an unreadable answer."""

from __future__ import annotations

import re
import unicodedata

from ...core.contracts import Unreadable
from ...core.reading.refusals import behind_refusal

BLANK, VERB_BLANK = "_____", "____ing"
"""Source: the paper, Figure 8."""
_MARKS = str.maketrans({"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"', "`": "'"})
_EDGES = " \t\n.,;:!?\"'*()[]<>"
_WORD = re.compile(r"[^\W\d_]+(?:[-'][^\W\d_]+)*")
_ASIDE = re.compile(r"\s*[(\[][^()\[\]]*[)\]]\W*\Z")
"""A remark in brackets after the word."""
_REMARK = re.compile(r"\n\s*\n|\n\s*(?=(?:explanation|reason|note|because|this|the word)\b)", re.I)
"""What stands between a word and a text about it."""
_LEAD = re.compile(
    r"(?:(?:the|my|one)\s+)?(?:(?:missing|completed)\s+)?(?:word|answer|completion)\s*(?:is|:|would be)[:\s]*", re.I
)
_ARTICLE = re.compile(r"an?\s+(?=\S{2})", re.I)


def read_word(text: str, letter: str, form: str, verb: bool, stem: str = "") -> str | Unreadable:
    """Return the word that completes a sentence, in lower case, or the kind of an unreadable answer.

    Args:
        text: the answer: the word, or the whole sentence with the word.
        letter: first letter of the word.
        form: the descriptor in the sentence, by which a repeated sentence is recognised.
        verb: whether the word must end in `ing`.
        stem: the sentence up to the blank, which an answer may repeat.
    """
    lines = unicodedata.normalize("NFC", text).translate(_MARKS).replace("**", "").strip()
    # A single word is an answer, also "sorry".
    if len(lines.split()) > 1 and not behind_refusal(lines.split("\n", 1)[0]):
        return Unreadable("a refusal")
    answer = _plain(_REMARK.split(lines, maxsplit=1)[0])
    if not answer:
        return Unreadable("an empty answer")
    rest = _LEAD.sub("", _told_again(answer, form, stem), count=1).strip(_EDGES)
    rest = re.sub(rf"{letter}\s*:\s*(?=\S)", "", rest, count=1, flags=re.I)
    rest = _filled_in(_ARTICLE.sub("", rest, count=1), letter)
    if "__" in rest:
        return Unreadable("the blank, not filled in")
    if _WORD.fullmatch(rest) is None:
        return Unreadable(_kind(rest))
    return _checked(rest.lower(), letter, verb)


def _plain(answer: str) -> str:
    """Return an answer in one line without a remark in brackets after it, quotes and full stops."""
    line = " ".join(answer.split())
    return (_ASIDE.sub("", line) or line).strip(_EDGES)


def _told_again(answer: str, form: str, stem: str) -> str:
    """Return the text after the sentence, if the answer repeats it."""
    about = rf"(?:(?:an?|the|this|these)\s+)?{re.escape(form)}\s+(?:is|are)"
    found = re.match(rf"(?:{re.escape(stem)}|{about})\s+(.*)" if stem else rf"{about}\s+(.*)", answer, re.I | re.S)
    return found[1] if found else answer


def _filled_in(rest: str, letter: str) -> str:
    """Return the whole word where only what stands after the blank was said, as `a_____shamed` or `___shamed`."""
    found = re.fullmatch(rf"(?:{letter})?[ ]?(?:_+|\.\.\.|\u2026)[ ]?([^\W\d_]{{2,}})", rest, re.I)
    return rest if found is None else found[1] if found[1].lower().startswith(letter) else letter + found[1]


def _kind(rest: str) -> str:
    if not re.search(r"[^\W\d_]", rest):
        return "no word"
    return "several words" if re.search(r"[\s,;/]", rest) else "a word with other signs"


def _checked(word: str, letter: str, verb: bool) -> str | Unreadable:
    if unicodedata.normalize("NFKD", word)[0] != letter:
        return Unreadable("another letter")
    if len(word) == 1:
        return Unreadable("the letter alone")
    if verb and not word.endswith("ing"):
        return Unreadable("no form in -ing")
    return word
