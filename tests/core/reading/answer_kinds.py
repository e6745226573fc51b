"""Kinds of answers with what must be read in them, filled with options, labels and words.

A line of a corpus is a template that stands for one answer per permutation, so that each label is in each place as
often as another: `{a}` is what must be read, `{b}` and `{c}` are the others, `{A}` has a capital; `{n}` is its number.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent / "corpus"
UNSEEN = {"zw": "\u200b", "bom": "\ufeff"}


class Kind(NamedTuple):
    """A line of a corpus."""

    kind: str
    manner: str
    must: str | None
    source: str
    text: str

    @property
    def later(self) -> bool:
        """Return whether it is of the third that was read only once the readers were written."""
        return zlib.crc32(self.kind.encode()) % 3 == 0


def kinds_of(reader: str) -> list[Kind]:
    lines = (FOLDER / f"{reader}.jsonl").read_text(encoding="utf-8").splitlines()
    return [Kind(**json.loads(line)) for line in lines]


OPTIONS = (
    ("They look neat, so the old man is BLANK.", "The old man is BLANK.", ("wise", "foolish", "tall")),
    (
        "He went to Lowell, so he is BLANK.",
        "He is BLANK.",
        ("critical thinker", "non-critical thinker", "free-wheeling"),
    ),
    ("As they are kind, they come from BLANK.", "They come from BLANK.", ("Boston", "Sierra Leone", "St. Louis")),
    ("She is kind, and she is BLANK years old.", "She is BLANK years old.", ("27", "66", "45")),
)
NTH, NUMBERS = ("first", "second", "third"), ("one", "two", "three")


def choices(kind: Kind) -> Iterator[tuple[str, str, tuple[str, ...], tuple[str, ...], str | None]]:
    """Yield the answers of a kind: text, sentence, options by name, names as shown, and the name that must be read."""
    for sentence, last, words in OPTIONS:
        if words[0].isdigit() and kind.kind == "cut in the option":
            continue
        for shown in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
            for a, b, c in permutations(range(3)):
                told = dict(zip("abc", (words[a], words[b], words[c]), strict=True))
                told |= {name.upper(): word[:1].upper() + word[1:] for name, word in told.items()}
                told |= dict(zip("nmk", (str(shown.index(one) + 1) for one in (a, b, c)), strict=True))
                told |= {f"o{place + 1}": words[one] for place, one in enumerate(shown)}
                told |= {"AA": told["a"].upper(), "a_cut": told["a"][: len(told["a"]) // 2]}
                told |= {"nth": NTH[int(told["n"]) - 1], "number": NUMBERS[int(told["n"]) - 1]}
                told |= {"s": sentence, "s_last": last, "s_dots": sentence.replace("BLANK", "...")}
                told |= {
                    "s_article": sentence.replace("BLANK", "a BLANK"),
                    "s_last_a": last.replace("BLANK", told["a"]),
                }
                told |= {"s_a": sentence.replace("BLANK", told["a"]), "s_b": sentence.replace("BLANK", told["b"])}
                told |= {"s_b_a": sentence.replace("BLANK", f"**{told['a']}**")}
                told |= {"s_q_a": sentence.replace("BLANK", f"[{told['a']}]")}
                told |= {"s_not_a": sentence.replace("BLANK", f"not {told['a']}"), "s_a_bare": told["s_a"].rstrip(".")}
                told |= {"s_a_upper": told["s_a"].upper(), "s_a_lower": told["s_a"].lower()}
                must = None if kind.must is None else "xyz"[{"a": a, "b": b, "c": c}[kind.must]]
                yield kind.text.format(**told, **UNSEEN), sentence, words, tuple("xyz"[one] for one in shown), must


WORDS = (
    ("alcoholic person", "An alcoholic person is", "alcoholic", "ashamed", "angry", "drunk"),
    ("alcoholic person", "An alcoholic person is", "alcoholic", "addict", "anxious", "lonely"),
    ("poor person", "This poor person is a", "poor", "saint", "stranger", "beggar"),
    ("Italians", "Italians are", "Italian", "impatient", "idle", "loud"),
)
"""Form, sentence up to the blank, descriptor, two words of one letter, and a word of another."""


def completions(kind: Kind) -> Iterator[tuple[str, str, str, str, str | None]]:
    """Yield the answers of a kind: text, letter, form, sentence up to the blank, and the word that must be read."""
    for form, stem, descriptor, *words in WORDS:
        for w, v in permutations(words[:2]):
            letter = w[0]
            told = {"w": w, "v": v, "x": words[2], "W": w.title(), "WW": w.upper(), "l": letter, "L": letter.upper()}
            told |= {"tail": w[1:], "form": form, "stem": stem, "d": descriptor}
            if kind.manner == "echo" and "{d}" in kind.text and descriptor[0].lower() != letter:
                told["d"] = form
            yield kind.text.format(**told, **UNSEEN), letter, form, stem, w if kind.must else None


PAIR = ("He saw a fair-skinned lady near the shop.", "The lady near the shop was kind.")
"""The premise and the hypothesis of a question."""


def labelled(kind: Kind) -> Iterator[tuple[str, str | None]]:
    """Yield the answers of a kind about labels of inference: text, and the label that must be read."""
    for a, b, c in permutations(("entailment", "contradiction", "neutral")):
        told = {"a": a, "b": b, "c": c, "A": a.title(), "B": b.title(), "C": c.title(), **UNSEEN}
        told |= dict(zip(("premise", "hypothesis"), PAIR, strict=True))
        yield kind.text.format(**told), {"a": a, "b": b, "c": c}.get(kind.must or "")
