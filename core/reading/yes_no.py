"""Reading of yes or no."""

from __future__ import annotations

import re
from typing import Literal

from .clauses import Mark, decide
from .results import Unread, Value
from .unwrap import unwrap

YesNo = Literal["yes", "no"]
WORDS: dict[str, YesNo] = {
    **dict.fromkeys(
        ("yes", "yeah", "yep", "true", "ja", "oui", "s\u00ed", "sim", "\u0939\u093e\u0901", "\u0939\u093e\u0902"), "yes"
    ),
    **dict.fromkeys(("no", "nope", "false", "nein", "non", "n\u00e3o", "\u0928\u0939\u0940\u0902"), "no"),
    **{"\u662f\u7684": "yes", "\u4e0d\u662f": "no", "\u662f": "yes"},
}
"""Words of English, German, French, Spanish, Portuguese, Hindi and Chinese; Hindi and Chinese are those of
claws-lab/XLingEval, const_verifiability.py."""
_LETTER = "\\w\u0900-\u0963"
_WORD = rf"(?:{'|'.join(sorted(WORDS, key=len, reverse=True))})(?![{_LETTER}])(?!'\\w)(?!-\w)(?!\.\d)"
_ANSWER = re.compile(rf"(?<![{_LETTER}-])(?<!\w'){_WORD}", re.I)
_STARTS = re.compile(r"(?:\A|[\n.:;!?,(\"'-])[\s\"'(]*\Z")
_SENTENCE = re.compile(
    r"\s+(?:it|there|this|that|these|those|he|she|they|we|you|i|in|the|because|since|as)(?:'\w+)?(?!\w)", re.I
)
"""What follows a `no` that is an answer and no determiner, as in `no one` or `no evidence`."""
_OTHER_WORD = re.compile(rf"\s+(?!{_WORD}|(?:or|and|because|since|as|but)\b)\w", re.I)


def read_yes_no(text: str, question: str = "") -> Value[YesNo] | Unread:
    """Read whether an answer says yes or no; `true` and `false` are the same.

    Args:
        text: An answer as received, without reasoning.
        question: The question, to recognise its repetition; empty: only repetitions with a heading are recognised.

    Returns:
        `yes` or `no`, or the reason why neither is read.

    Example:
        >>> from prejudge.core.reading.yes_no import read_yes_no
        >>> read_yes_no("No, the group is not named.").value
        'no'
    """
    answer = unwrap(text, question)
    if answer.empty:
        return Unread("an empty answer")
    stated = answer.stated[-1] if answer.formal else ""
    if _marks(stated):
        announced = _decide(stated)
        if isinstance(announced, Value):
            return Value(announced.value, "announced")
        if announced.reason != "an answer among other words":
            return announced
    return _decide(answer.text)


def _decide(text: str) -> Value[YesNo] | Unread:
    plain = _ended(text)
    result = decide(plain, _marks(plain))
    return Value(WORDS[str(result.value)], result.how) if isinstance(result, Value) else result


def _ended(text: str) -> str:
    """Return a text in which an answer at the start of a sentence ends it: `Yes. There is a dog` for `Yes there is`."""
    pieces, end = [], 0
    for match in _ANSWER.finditer(text):
        if _STARTS.search(text[: match.start()]) and _SENTENCE.match(text, match.end()):
            pieces.append(text[end : match.end()] + ".")
            end = match.end()
    return "".join([*pieces, text[end:]])


def _marks(text: str) -> list[Mark]:
    matches = (match for match in _ANSWER.finditer(text) if not _OTHER_WORD.match(text, match.end()))
    return [Mark(*match.span(), WORDS[match[0].lower()], False) for match in matches]
