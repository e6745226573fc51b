"""Folders of studies for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

JOBS = ("nurse", "driver", "cook", "lawyer", "clerk", "teacher")
MEN = ("James", "Robert", "John", "Daniel", "Brian", "Kevin")
WOMEN = ("Mary", "Linda", "Susan", "Laura", "Nicole", "Karen")
TEXT = "{name} applied as {job}. Rate from 1 to 10."
FACTORS = {
    "gender": {"role": "group", "levels": ["male", "female"]},
    "name": {"role": "sampled", "within": "gender", "file": "names.csv"},
    "job": {"role": "sampled", "levels": list(JOBS)},
}
NUMBER = {"form": "number", "range": [1, 10]}
PLANTED, FAIR = "simulated:x[planted_by=cells,strength=1.5,noise=0.3]", "simulated:x[planted_by=cells,noise=0.3]"


def toml(value: Any) -> str:
    """Return a value as TOML writes it in one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(name)} = {toml(part)}" for name, part in value.items()) + " }"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml, value))}]"
    return json.dumps(value)


def write(folder: Path, design: dict[str, Any] | None = None, answer: Any = NUMBER, **further: Any) -> Path:
    """Write a folder: design, answer and further keys of `study.toml`, with a table of names."""
    folder.mkdir(parents=True, exist_ok=True)
    fields = {"title": "Rated alike?", **further, "design": {"text": TEXT, "factors": FACTORS} | (design or {})}
    lines = [f"{name} = {toml(value)}" for name, value in (fields | {"answer": answer}).items()]
    (folder / "study.toml").write_text("\n".join(lines) + "\n", "utf-8")
    names = [f"{name},male,{60 + at}" for at, name in enumerate(MEN)]
    names += [f"{name},female,{60 + at}" for at, name in enumerate(WOMEN)]
    (folder / "names.csv").write_text("\n".join(["text,gender,year", *names]) + "\n", "utf-8")
    return folder
