"""Digests of whole designs: `python -m tests.baseline.designs` writes them, a test compares them.

A digest covers id and question of every trial of the first stage. Each option with a closed set of values takes each of
them, one option at a time.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts.canonical import encode, question_of

from .cases import CASES, Write

FILE = Path(__file__).parent / "designs.json"
DATA: dict[str, Write] = {case.study: case.data for case in CASES if case.data is not None}
STAND_IN = "simulated-fair"
OF_A_FILE = {"bad_rows"}
"""Options that change no design of a file that has no bad row."""


def studies() -> list[str]:
    """Return the studies of the baseline."""
    return sorted({case.study for case in CASES})


def option_sets(catalogue: Catalogue, study: str) -> Iterator[dict[str, Any]]:
    """Yield the options of each design of a study: those by default, and every closed value that differs."""
    options = catalogue.plugins.load("probe", catalogue.registry.study(study).probe).options
    yield {}
    for field in msgspec.structs.fields(options):
        for value in _values(msgspec.inspect.type_info(field.type)):
            if value != field.default and field.name not in OF_A_FILE:
                yield {field.name: value}


def _values(kind: msgspec.inspect.Type) -> tuple[Any, ...]:
    match kind:
        case msgspec.inspect.LiteralType(values=values):
            return tuple(sorted(values, key=str))
        case msgspec.inspect.BoolType():
            return (False, True)
        case msgspec.inspect.CollectionType(item_type=msgspec.inspect.LiteralType(values=values)):
            return tuple([value] for value in sorted(values, key=str))
    return ()


def design_of(catalogue: Catalogue, study: str, options: Mapping[str, Any], folder: Path) -> tuple[int, str]:
    """Return the number of trials of the main stage, and the digest of their ids and questions."""
    if (write := DATA.get(study)) is not None:
        write(1, folder / "data.csv")
        options = {**options, "data": str(folder / "data.csv")}
    roles = {case.study: ("subject", *case.roles) for case in CASES}[study]
    instrument = catalogue.instrument(catalogue.study(study, dict.fromkeys(roles, STAND_IN), options))
    digest, trials = hashlib.sha256(), 0
    for trial in instrument.main_stage.trials({}):
        digest.update(trial.id.encode() + b"\0" + encode(question_of(trial.request)) + b"\n")
        trials += 1
    return trials, digest.hexdigest()


def designs() -> Iterator[tuple[str, Catalogue, str, dict[str, Any]]]:
    """Yield all designs: name, catalogue, study and options."""
    catalogue = Catalogue.load(None)
    for study in studies():
        for options in option_sets(catalogue, study):
            name = " ".join([study, *(f"{key}={json.dumps(value)}" for key, value in options.items())])
            yield name, catalogue, study, options


def digest_of(catalogue: Catalogue, study: str, options: Mapping[str, Any]) -> list[Any]:
    """Return trials and digest of a design; of one that cannot be asked, 0 and the code of its error."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            return [*design_of(catalogue, study, options, Path(folder))]
        except Exception as error:
            return [0, str(getattr(error, "code", "") or type(error).__name__)]


if __name__ == "__main__":
    found = {name: digest_of(*design) for name, *design in designs()}
    FILE.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", "utf-8")
