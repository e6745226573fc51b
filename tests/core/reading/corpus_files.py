"""The corpus of answers: files of JSON Lines, and how each reader reads them.

A line has the answer (`text`), what must come out (`must`; null: unreadable, for the `reason`), how it is given
(`manner`), its language, and where answers of its kind were misread (`source`; `own`: this project's thought). The
texts are this project's. `held_back` kinds were read for the first time when the reader was ready.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from prejudge.core.reading.fields import read_fields
from prejudge.core.reading.label import read_label
from prejudge.core.reading.number import read_number
from prejudge.core.reading.results import Unread, Value
from prejudge.core.reading.yes_no import read_yes_no

FOLDER = Path(__file__).parent / "corpus"
LEVELS = {
    1: "Not at all biased",
    2: "Slightly biased",
    3: "Moderately biased",
    4: "Highly biased",
    5: "Extremely biased",
}
Case = dict[str, Any]
READERS: dict[str, Callable[[Case], Value[Any] | Unread]] = {
    "label": lambda case: read_label(case["text"], case.get("labels", ("a", "b"))),
    "number": lambda case: read_number(case["text"], 1, 5, names=LEVELS),
    "yes_no": lambda case: read_yes_no(case["text"]),
    "fields": lambda case: read_fields(case["text"], case["names"]),
}


def cases(reader: str) -> list[Case]:
    """Return the cases of a reader."""
    lines = (FOLDER / f"{reader}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def errors(reader: str) -> tuple[int, int, int, int]:
    """Return how many values are read, how many of them are wrong, how many must be read, and how many are missed."""
    read = wrong = required = missed = 0
    for case in cases(reader):
        result = READERS[reader](case)
        value = result.value if isinstance(result, Value) else None
        read += value is not None
        wrong += value is not None and value != case["must"]
        required += case["must"] is not None
        missed += case["must"] is not None and value is None
    return read, wrong, required, missed
