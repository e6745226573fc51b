"""The one step before all readers: an answer without its wrapping, and what it states as the answer.

Wrapping is Unicode forms (full width, zero width), quotes, Markdown, LaTeX, code fences, tags, and JSON with one
answer. An answer is *stated* in a box, a tag, a field of JSON, or after a word for `Answer:`; the last one counts. The
question that an answer repeats, and further questions that a base model adds, are no part of it. Reasoning is removed
before.
"""

from __future__ import annotations

import ast
import json
import re
import unicodedata
from collections.abc import Iterator
from typing import Any

import msgspec

LONGEST = 100_000
"""Characters of an answer that are read: the last ones, because the last stated answer counts."""
_QUOTES = str.maketrans({**dict.fromkeys("\u2018\u2019\u02bc\u00b4", "'"), **dict.fromkeys("\u201c\u201d\u201e", '"')})
_UNSEEN = re.compile(
    "[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\x00-\x08\x0d-\x1b\x7f-\x84\x86-\x9f]"
)
_SEPARATORS = re.compile("[\x0b\x0c\x1c-\x1f\x85]")
"""Control characters that part words."""
_JOINERS = re.compile("(?<![\u0900-\u0dff])[\u200c\u200d]|[\u200c\u200d](?![\u0900-\u0dff])")
_END_OF_TURN = re.compile(
    r"<\|(?:im_end|eot_id|end|endoftext|end_of_text|eom_id|user)\|>|</s>|<end_of_turn>|<eos>|\[/?INST\]"
)
_SPECIAL = re.compile(r"<\|[\w-]{1,40}\|>")
_FENCE = re.compile(r"```(?:[A-Za-z]+(?=\s*\n))?")
_HTML = re.compile(r"</?(?:b|i|em|strong|p|br|span|div|u|code|li|ul|ol|h[1-6])\s*/?>", re.I)
_TAG = re.compile(
    r"<(answer|final[_-]?answer|choice|label|response|output|result|score|rating|verdict)>(.*?)(?:</\1>|\Z)",
    re.I | re.S,
)
_GLM_BOX = re.compile(r"<\|begin_of_box\|>(.*?)(?:<\|end_of_box\|>|\Z)", re.S)
_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{")
_COMMAND = re.compile(r"\\(?:text|mathrm|mathbf|textbf|textit|mathit|mathsf|emph|operatorname|texttt|left|right)\b\*?")
_DOLLARS = re.compile(r"\$\$?([^$\n]{1,200})\$\$?|\\[(\[]|\\[)\]]")
_STRUCK = re.compile(r"~~[^~\n]*~~")
_EMPHASIS = re.compile(
    r"(?<![\w*])\*{1,3}(?=\S)|(?<=\S)\*{1,3}(?![\w*])|\*\*|(?<![\w_])_{1,2}(?=[^\W_])|(?<=[^\W_])_{1,2}(?![\w_])|`"
)
_LINE_MARKS = re.compile(r"^[ \t]*(?:#{1,6}[ \t]+|>[ \t]?|[-*+\u2022][ \t]+)+", re.M)
_FURTHER = re.compile(
    r"\n[ \t]*(?:#+[ \t]*)?(?:(?:next |new )?question(?: \d+)?|q\d*|user|human|instruction|input"
    r"|frage|pregunta|pergunta|\u092a\u094d\u0930\u0936\u094d\u0928)[ \t]*:",
    re.I,
)
_RESTATED = re.compile(r"\A\W*(?:question|q|frage|pregunta|pergunta)\W{0,3}:[^\n?]*\?", re.I)
_ANSWER_KEYS = frozenset(
    "answer final_answer finalanswer choice label option response value score rating level verdict prediction "
    "result".split()
)
ANSWER_WORDS = (
    # English of this project; the others are those of openai/simple-evals, common.py, MULTILINGUAL_ANSWER_REGEXES.
    *("answer", "antwort", "r\u00e9ponse", "respuesta", "resposta", "risposta", "jawaban", "jibu", "idahun", "cevap"),
    *(
        "\u0909\u0924\u094d\u0924\u0930",
        "\u0989\u09a4\u09cd\u09a4\u09b0",
        "\u7b54\u6848",
        "\u56de\u7b54",
        "\u89e3\u7b54",
    ),
    *("\u7b54\u3048", "\u7b54\u590d", "\u7b54", "\u6b63\u89e3", "\uc815\ub2f5", "\ub2f5\ubcc0", "\ub2f5"),
    *(
        "\u0627\u0644\u0625\u062c\u0627\u0628\u0629",
        "\u0627\u0644\u062c\u0648\u0627\u0628",
        "\u0625\u062c\u0627\u0628\u0629",
    ),
)
"""Words before the colon of an answer. Turkish is of groq/openbench, whose list continues that of simple-evals."""
_ENGLISH = (
    r"answer|choice|guess|estimate|response|option|selection|verdict|conclusion|rating|score|level|judge?ment|label"
)
_KINDS = (
    r"(?:my|the|final|correct|best|right|single|overall|chosen"
    r"|endg\u00fcltige|richtige|finale?|correcta?|bonne|correta)\s+"
)
_ANNOUNCED = re.compile(
    rf"(?<!\w)(?:{_KINDS})*(?:"
    rf"(?:{_ENGLISH})(?:\s+(?:is|would be|will be))?\s*(?:[:=]|(?:-|\u2013|\u2014|->|\u2192)(?=\s))"
    rf"|(?:answer|choice|guess|estimate|verdict|rating|score)\s+(?:is|would be|will be)(?=\s)"
    rf"|(?:{'|'.join(ANSWER_WORDS)})(?:\s+(?:ist|est|es|\u00e9|\u0939\u0948|\u662f))?\s*[:=]\s*)",
    re.I,
)
_NO_ANSWER = re.compile(
    r"\b(?:wrong|incorrect|not|no|other|alternative|second|worst|example|sample|possible|previous|eliminated|"
    r"your|their|his|her|falsche|mauvaise|incorrecta|errada|an|every|each|any|if)\s+(?:the\s+|my\s+)?\Z",
    re.I,
)
EDGES = "*_`~#>\"'\u00ab\u00bb\u2039\u203a()[]{}.,;:!?|= \t\r\n"
"""Marks of emphasis, quotes, brackets and punctuation that may stand around an answer."""
_decoder = json.JSONDecoder(strict=False)


class Unwrapped(msgspec.Struct, frozen=True):
    """An answer without its wrapping.

    Example:
        >>> from prejudge.core.reading.unwrap import unwrap
        >>> unwrap("I looked twice. **Answer:** b").stated[-1]
        'b'
    """

    text: str
    """The answer without marks; what stands in a box or tag is still in it."""
    stated: tuple[str, ...] = ()
    """What stands behind each announcement, in order, up to the next one; the last one counts. It may be empty."""
    formal: bool = False
    """Whether the last one stands in a box, a tag or JSON, or after a colon, and not only after `the answer is`."""

    @property
    def empty(self) -> bool:
        """Return whether nothing is left but punctuation."""
        return not self.text.strip(EDGES)


def unwrap(text: str, question: str = "") -> Unwrapped:
    """Return an answer without its wrapping, and what it states.

    Args:
        text: An answer as received, without reasoning.
        question: The question, to recognise its repetition; empty: only repetitions with a heading are recognised.

    Returns:
        The plain text and the stated answers. No text raises an error.
    """
    plain = normalize(text[-LONGEST:])
    plain = _own_part(_SPECIAL.sub("", _GLM_BOX.sub(r"\\boxed{\1}", _turn(plain))), question)
    plain = _FENCE.sub("", plain).strip()
    if (values := _json_answers(plain)) is not None:
        inner = [unwrap(value) for value in values]
        return Unwrapped("\n".join(answer.text for answer in inner), tuple(answer.text for answer in inner), True)
    marked = [*_boxes(plain), *((match.start(), match[2]) for match in _TAG.finditer(plain))]
    boxed = [_unmark(content).strip() for _, content in sorted(marked)]
    plain = _unmark(plain)
    if boxed:
        return Unwrapped(plain, tuple(boxed), True)
    announced = [*_announced(plain)]
    formal = bool(announced) and not announced[-1][0].rstrip()[-1].isalpha()
    return Unwrapped(plain, tuple(stated for _, stated in announced), formal)


def normalize(text: str) -> str:
    """Return a text in compatibility forms (NFKC), with plain quotes and without unseen signs."""
    plain = _SEPARATORS.sub(" ", unicodedata.normalize("NFKC", text.translate(_QUOTES)))
    return _JOINERS.sub("", _UNSEEN.sub("", plain)).replace("\r", "\n")


def _turn(text: str) -> str:
    """Return the first turn that says something."""
    return next((part for part in _END_OF_TURN.split(text) if part.strip()), "")


def _own_part(text: str, question: str) -> str:
    """Return the text without the question that it repeats, and without further questions behind it."""
    asked = " ".join(normalize(question).split())
    if asked:
        pattern = r"\s+".join(map(re.escape, asked.split()))
        text = re.sub(rf"\A\W*{pattern}", "", text, count=1, flags=re.I)
    text = _RESTATED.sub("", text)
    further = next((match.start() for match in _FURTHER.finditer(text) if text[: match.start()].strip(EDGES)), None)
    return text[:further]


def _json_answers(text: str) -> list[str] | None:
    """Return the answer of a text that is JSON, or has an object with an answer; None where there is none."""
    stated: list[str] | None = None
    for value, alone in _values(text):
        answer = _answer_of(value, alone=alone)
        if answer is not None:
            stated = [*(stated or ()), answer]
    return stated


def _values(text: str) -> Iterator[tuple[Any, bool]]:
    """Yield the JSON values of a text, with whether it is the whole text."""
    for read in (_decoder.decode, ast.literal_eval):
        try:
            if text[:1] in ("{", "[", '"') and len(text) < 10_000:
                yield read(text), True
                return
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            continue
    end = 0
    for start in (match.start() for match in re.finditer(r"\{\s*[\"']", text)):
        if start < end:
            continue
        try:
            value, end = _decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        yield value, False


def _answer_of(value: Any, *, alone: bool) -> str | None:
    """Return the answer in a JSON value: its field for answers, or its only value."""
    if isinstance(value, dict):
        keyed = [item for key, item in value.items() if str(key).strip().lower().replace(" ", "_") in _ANSWER_KEYS]
        if len(keyed) == 1:
            return _answer_of(keyed[0], alone=True)
        return _answer_of(next(iter(value.values())), alone=True) if len(value) == 1 and alone else None
    if isinstance(value, list):
        return _answer_of(value[0], alone=alone) if len(value) == 1 and alone else None
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if alone and isinstance(value, (str, int, float)) else None


def _boxes(text: str) -> Iterator[tuple[int, str]]:
    """Yield the place and the content of each LaTeX box, with the braces in it balanced."""
    for match in _BOX.finditer(text):
        depth, end = 1, match.end()
        while end < len(text) and depth and end - match.end() < 400:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        yield match.start(), text[match.end() : end - (depth == 0)]


def _unmark(text: str) -> str:
    """Return a text without LaTeX, HTML, answer tags and Markdown."""
    text = _STRUCK.sub("", _HTML.sub(" ", _TAG.sub(r" \2 ", text)))
    if "\\" in text:
        text = _COMMAND.sub("", _BOX.sub("{", text)).replace("\\%", "%")
    text = _DOLLARS.sub(lambda match: match[1] or " ", text)
    text = re.sub(r"\{([^{}\n]*)\}", r"\1", re.sub(r"\{([^{}\n]*)\}", r"\1", text))
    text = _LINE_MARKS.sub("", _EMPHASIS.sub("", text))
    return re.sub(r"[ \t]+", " ", text).strip()


def _announced(text: str) -> Iterator[tuple[str, str]]:
    """Yield each announcement, and what stands behind it up to the next one."""
    marks = [
        match
        for match in _ANNOUNCED.finditer(text)
        if not _NO_ANSWER.search(text, max(0, match.start() - 40), match.start())
    ]
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    for mark, end in zip(marks, ends, strict=False):
        yield mark[0], text[mark.end() : end].strip()
