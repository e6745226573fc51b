"""The cases of a golden file: the stated options of a study, every choice of its multiverse, and second values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from ...catalogue.golden import STATED
from ...contracts import Options
from ...contracts.effects import effects_declared
from .campaign import Campaign

ROLE = "role."
NOT_COMPUTED = ("measure", "group.", "model.")
"""Beginnings of choices that pick an estimate, or set a model's own setting, and compute nothing else."""
SHOWN_ONLY = frozenset({"examples", "bad_rows"})
"""Options that change no number of the answers at hand."""


class Case(msgspec.Struct, frozen=True):
    """What is set over the stated options, by name as the command line has it, and models of other roles."""

    name: str
    options: dict[str, Any] = {}
    roles: dict[str, str] = {}


def cases_of(campaign: Campaign) -> Iterator[tuple[Case, ...]]:
    """Yield the cases; of those in one tuple, the first that can be computed stands for all."""
    yield (Case(STATED),)
    for name, values in campaign.entry.multiverse.choices.items():
        if not name.startswith(NOT_COMPUTED):
            yield from ((_case(name, value),) for value in values if not _is_stated(campaign, name, value))
    for name, candidates in _second_values(campaign):
        yield tuple(_case(name, value) for value in candidates)


def _case(name: str, value: Any) -> Case:
    title = f"{name}={json.dumps(value, sort_keys=True, ensure_ascii=False)}"
    if name.startswith(ROLE):
        return Case(title, roles={name.removeprefix(ROLE): str(value)})
    return Case(title, options={name: value})


def _is_stated(campaign: Campaign, name: str, value: Any) -> bool:
    if name.startswith(ROLE):
        return campaign.study.roles.get(name.removeprefix(ROLE)) == str(value)
    return name in (stated := _stated(campaign)) and _encoded(stated[name][1]) == _encoded(value)


def _encoded(value: Any) -> bytes:
    """Return a value in which lists and tuples are equal."""
    return msgspec.json.encode(value)


def _stated(campaign: Campaign) -> dict[str, tuple[Options, Any]]:
    """Return the record and the value of each option by the name that the command line has for it."""
    instrument = campaign.bench.instrument
    metrics = ((f"{name}.", options) for name, (_, options) in instrument.metrics.items())
    records = chain([("", instrument.options)], metrics)
    return {f"{before}{name}": (r, getattr(r, name)) for before, r in records for name in r.__struct_fields__}


def _second_values(campaign: Campaign) -> Iterator[tuple[str, list[Any]]]:
    """Yield the values that each option may have besides its stated one, the most telling first."""
    for name, (record, value) in _stated(campaign).items():
        field = name.rpartition(".")[2]
        if field in SHOWN_ONLY or effects_declared(type(record)).get(field, "none") != "none":
            continue
        candidates = _values(get_type_hints(type(record))[field], value)
        if others := [other for other in candidates if _encoded(other) != _encoded(value)]:
            yield name, others


def _values(hint: Any, value: Any) -> Iterator[Any]:
    kinds = (hint, *get_args(hint))
    literals = [choice for kind in kinds if get_origin(kind) is Literal for choice in get_args(kind)]
    if isinstance(value, tuple | list):
        yield from _shorter(value)
        yield from ([choice] for kind in kinds for choice in _literals_within(kind))
    elif literals:
        yield from literals
    elif isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (value - 1, value + 1) if value > 1 else (value + 1,)
    elif isinstance(value, float):
        yield from (value / 2, value + 0.5)
    elif value is None:
        yield from (example for kind, example in ((int, 2), (float, 0.5)) if kind in kinds)


def _shorter(value: Sequence[Any]) -> Iterator[list[Any]]:
    if len(value) > 1:
        yield list(value[:-1])


def _literals_within(kind: Any) -> tuple[Any, ...]:
    return next((get_args(inner) for inner in get_args(kind) if get_origin(inner) is Literal), ())
