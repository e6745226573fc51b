"""Compute all numbers that tests compare, and print what differs: `make numbers`.

With a reason, `make numbers REASON="..."`, they are written anew, and the reason becomes a line of `CHANGELOG.md`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from prejudge.core.catalogue.filed import FOLDER
from prejudge.core.catalogue.golden import SUFFIX, is_close
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.lab.calibration.certify import Recipe
from prejudge.core.lab.calibration.golden import compute, stated_campaign
from prejudge.core.lab.calibration.golden_file import differences, read, settle
from prejudge.core.lab.calibration.numbers import AUTOMATIC, rewrite

from . import battery

ROOT = Path(__file__).parents[2]
CHANGELOG = ROOT / "CHANGELOG.md"


def golden_files() -> dict[str, Path]:
    """Return the golden files of the built-in studies that are calibrated, by study."""
    studies = Catalogue.load().registry.studies
    paths = {path.stem: path.parent / FOLDER / f"{path.stem}{SUFFIX}" for path in sorted(ROOT.glob("probes/*/*.toml"))}
    return {name: path for name, path in paths.items() if name in studies and not studies[name].calibration.none}


def changed_numbers(study: str, path: Path) -> Iterator[str]:
    """Yield what differs between a golden file and what is computed now."""
    if not path.is_file():
        yield "there is no golden file"
        return
    before = read(path)
    with stated_campaign(Recipe.load(study, {})) as stated:
        after = settle(before, compute(stated, before))
    yield from map(str, differences(before, after))


def changed_battery() -> Iterator[str]:
    """Yield what differs between the battery of statistics and what is computed now."""
    before, after = (battery.stored() if battery.FILE.is_file() else {}), battery.battery()
    for name in sorted({*before, *after}):
        old, new = (_by_case(rows.get(name, [])) for rows in (before, after))
        for case in sorted({*old, *new}):
            if not is_close(old.get(case), new.get(case)):
                yield f"{name}: {case}: {old.get(case)} -> {new.get(case)}"


def _by_case(rows: Sequence[Sequence[object]]) -> dict[str, object]:
    return {json.dumps(row[:3]): row[3] for row in rows}


def add_line(text: str, reason: str) -> str:
    """Return a changelog with a line for a change of numbers, under its first section."""
    head, section, body = text.partition("\n## ")
    title, newline, entries = body.partition("\n")
    return f"{head}{section}{title}{newline}\n- Numbers: {reason}\n{entries.lstrip(chr(10))}"


def main(reason: str) -> int:
    """Print every number that differs, and write all with a reason; else return 1 if any differs."""
    count = 0
    for line in changed_battery():
        count += 1
        print(f"battery: {line}")
    for study, path in golden_files().items():
        for line in changed_numbers(study, path):
            count += 1
            print(f"{study}: {line}")
    if not count:
        print("No number has changed.")
        return 0
    if not reason or os.environ.get(AUTOMATIC):
        why = f"{AUTOMATIC} is set" if os.environ.get(AUTOMATIC) else 'no reason is given: make numbers REASON="..."'
        print(f"{count:,} numbers differ. Nothing is written, since {why}")
        return 1
    battery.write(battery.battery())
    for study, path in golden_files().items():
        rewrite(Recipe.load(study, {}), path, reason)
    CHANGELOG.write_text(add_line(CHANGELOG.read_text("utf-8"), reason), "utf-8")
    print(f"{count:,} numbers are written anew, and {CHANGELOG.name} says why. Certificates of these no longer hold.")
    return 0


if __name__ == "__main__":
    sys.exit(main(" ".join(sys.argv[1:])))
