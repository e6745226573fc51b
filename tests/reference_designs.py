"""The page of docs/reference that says what each built-in study varies, from its declared design."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from prejudge.core.catalogue.instrument import Instrument
from prejudge.core.catalogue.plugins import Plugins
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.design.record import Declared, Roles

from .reference_tables import WRITTEN, line, table

EXAMPLE = {
    "crows-pairs": "sent_more,sent_less,stereo_antistereo,bias_type\n"
    "Old people walk.,Young people walk.,stereo,age\nYoung people run.,Old people run.,antistereo,age\n"
}
"""A file for each study whose design is declared from one, so that numbers of levels are not told."""
ROLES = {
    "group": "compared; twins differ in it alone",
    "context": "the difference between groups is contrasted over it",
    "by": "reported apart",
    "sampled": "the claim is about others like these, so inference covers it",
    "fixed": "the claim is about these levels only",
    "balanced": "occurs equally often with every group",
    "repeat": "the same question again",
}
FORMS = {
    "label": "a label",
    "option": "one of the options",
    "continuation": "the likelihood of a continuation",
    "number": "a number",
    "yes_no": "yes or no",
    "words": "free words",
    "vector": "a vector",
    "image": "an image",
}


def designs_page(plugins: Plugins) -> str:
    """Return the page."""
    catalogue = Catalogue.load(None)
    lines = [
        "# What the studies vary",
        "",
        WRITTEN,
        "",
        "The declared design of each built-in study at its defaults; [a guide](../guides/design.md) says how one is "
        "declared. An option that names fewer levels changes the numbers.",
        "",
        *table(("role", "meaning"), [(f"`{name}`", meaning) for name, meaning in ROLES.items()]),
    ]
    with tempfile.TemporaryDirectory() as folder:
        for name in sorted(catalogue.registry.studies):
            data = _file(name, Path(folder))
            instrument = catalogue.instrument(catalogue.study(name, {}, data))
            if instrument.design is not None:
                lines += _study(name, instrument, instrument.design, counted=not data)
    return "\n".join(lines) + "\n"


def _file(study: str, folder: Path) -> Mapping[str, Any]:
    """Return the option that names the file of a study that needs one."""
    if study not in EXAMPLE:
        return {}
    path = folder / f"{study}.csv"
    path.write_text(EXAMPLE[study], "utf-8")
    return {"data": str(path)}


def _study(name: str, instrument: Instrument, roles: Roles, *, counted: bool) -> Iterator[str]:
    yield from ("", f"## `{name}`", "")
    rows = [_row(factor, counted=counted) for factor in roles.declared]
    yield from table(("factor", "role", "levels", "part of", "goes with one level of"), rows)
    yield from ("", f"A unit is one combination of {_names(roles.unit)}. {_answer(roles)}", "")
    if counted:
        yield f"Inference covers {_names(instrument.facets) or 'nothing'} by default (`over`)."
    else:
        yield "The levels are those of the file, and inference covers what is sampled and has several."
    for question in roles.questions:
        changed = ", ".join(f"`{factor}` {role}" for factor, role in question.roles.items())
        yield from ("", f"In the question of {line(question.name)}: {changed}.")


def _row(factor: Declared, *, counted: bool) -> tuple[str, ...]:
    levels = f"{factor.levels:,}" if counted else "of the file"
    if factor.controls:
        levels += f", beside {', '.join(map(line, sorted(factor.controls)))}"
    if factor.several:
        levels += f", the {factor.several} of several"
    inner = _names(tuple(name for name in factor.nested_in if name != factor.whole))
    return f"`{factor.name}`", factor.role, levels, f"`{factor.whole}`" if factor.whole else "", inner


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _answer(roles: Roles) -> str:
    if roles.answer is None:
        return ""
    up = f"; {' or '.join(map(line, roles.answer.up))} raises the measure" if roles.answer.up else ""
    among = f" ({', '.join(map(line, roles.answer.answers))})" if roles.answer.answers else ""
    return f"An answer is {FORMS[roles.answer.form]}{among}{up}."
