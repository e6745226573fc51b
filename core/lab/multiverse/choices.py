"""The universes of a study: every combination of the choices that it declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

import msgspec

from ...catalogue.registry import Multiverse
from ...catalogue.study import SUBJECT, Catalogue, Study
from ...catalogue.variants import variant, written
from ...contracts.errors import UnknownNameError, UsageError

MEASURE, ROLE, GROUP, MODEL = "measure", "role.", "group.", "model."
MOST = 1000
"""Universes that are computed at most."""


class MultiverseOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the study file does not say, or says otherwise."""

    measure: str = ""
    group: Mapping[str, Any] = {}
    choices: Mapping[str, Sequence[Any]] = {}
    """More choices than those of the study file, or other values of these."""


class Universe(msgspec.Struct, frozen=True, kw_only=True):
    """One combination of choices."""

    chosen: Mapping[str, Any]
    study: Study
    """With the choices that decide what is asked; its metrics have their own options."""
    scoring: Mapping[str, Any]
    """`METRIC.option`, and options of the probe that only change how answers are read."""
    measure: str
    group: Mapping[str, Any]

    @property
    def asked(self) -> str:
        """Return what tells apart universes that ask something else."""
        return repr((self.study.options, self.study.roles))


def declared(catalogue: Catalogue, base: Study, options: MultiverseOptions) -> Multiverse:
    """Return the choices of a study, with those of the options.

    Settings that the study file varies are left out where the model has none of that name.

    Raises:
        UsageError: there is none, one has a single value or a value twice, or no measure is named.
    """
    name = base.name
    entry = catalogue.registry.study(name)
    own = entry.multiverse
    settings = {f"{MODEL}{field}" for field in _settings_of(catalogue, base)}
    stated = {key: values for key, values in own.choices.items() if not key.startswith(MODEL) or key in settings}
    choices = stated | {key: list(values) for key, values in options.choices.items()}
    first = next((question.measure for question in entry.questions), "")
    measure = options.measure or (str(choices[MEASURE][0]) if choices.get(MEASURE) else own.measure or first)
    if not choices:
        raise UsageError(
            f"study {name!r} declares no choices. Write [multiverse.choices] in the study file, or give them: "
            "--choice METRIC.option=A,B.",
            code="multiverse.choices",
        )
    if not measure:
        raise UsageError(f"study {name!r} has no question. Name a measure with --measure.", code="multiverse.measure")
    for key, values in choices.items():
        if len(values) < 2 or len({repr(value) for value in values}) < len(values):  # a choice is of two
            raise UsageError(
                f"the choice {key!r} has the values {values}. Give two or more, each once, the study's own first.",
                code="multiverse.choices",
            )
    if (count := prod(len(values) for values in choices.values())) > MOST:
        raise UsageError(f"{count:,} universes are more than {MOST:,}. Give fewer choices.", code="multiverse.many")
    return Multiverse(measure=measure, group=own.group | dict(options.group), choices=choices)


def universes(
    catalogue: Catalogue,
    name: str,
    models: Mapping[str, str],
    assignments: Mapping[str, Any],
    options: MultiverseOptions,
) -> list[Universe]:
    """Return every combination of the choices that a study declares and those of `options`, the study's own first.

    Raises:
        UsageError: there are no choices, one is no option of the study, or a value is none of the option.
    """
    name = catalogue.adopt(name)
    base = catalogue.study(name, models, assignments)
    made = declared(catalogue, base, options)
    probe = catalogue.plugins.load("probe", base.probe).options
    rereads, own = probe.rereads, probe.__struct_fields__
    _ensure_known(made, base, own, _settings_of(catalogue, base))
    found, asked = [], dict[str, Study]()
    for values in product(*made.choices.values()):
        chosen = dict(zip(made.choices, values, strict=True))
        asking = {key: v for key, v in chosen.items() if key in own and key not in rereads}
        roles = {key.removeprefix(ROLE): str(v) for key, v in chosen.items() if key.startswith(ROLE)}
        settings = {key.removeprefix(MODEL): v for key, v in chosen.items() if key.startswith(MODEL)}
        roles |= _varied(catalogue, {**base.roles, **roles}, settings)
        scoring = {key: v for key, v in chosen.items() if key in rereads or key.partition(".")[0] in base.metrics}
        key = repr((asking, roles))
        if key not in asked:
            asked[key] = catalogue.study(base.name, {**models, **roles}, {**assignments, **asking})
        group = {k.removeprefix(GROUP): v for k, v in chosen.items() if k.startswith(GROUP)}
        found.append(
            Universe(
                chosen=chosen,
                study=asked[key],
                scoring=scoring,
                measure=str(chosen.get(MEASURE, made.measure)),
                group={**made.group, **group},
            )
        )
    return found


def _settings_of(catalogue: Catalogue, study: Study) -> tuple[str, ...]:
    """Return the names of the settings of the model that is studied."""
    model = study.roles.get(SUBJECT)
    return () if model is None else catalogue.options_of(model).__struct_fields__


def _varied(catalogue: Catalogue, roles: Mapping[str, str], settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the model that is studied with other settings; none where it has them already.

    So the runs of the model itself are those of its own values.
    """
    model = roles.get(SUBJECT)
    if model is None or not settings:
        return {}
    options = catalogue.options_of(model)
    texts = {name: _text_of(value) for name, value in settings.items()}
    other = {name: text for name, text in texts.items() if text != _text_of(getattr(options, name, None))}
    return {SUBJECT: variant(model, other)} if other else {}


def _text_of(value: Any) -> str:
    """Return a value as the settings of a variant are written."""
    plain = not isinstance(value, str) or value.isprintable()
    return written(value) if plain else msgspec.json.encode(value).decode()


def _ensure_known(made: Multiverse, base: Study, own: Sequence[str], settings: Sequence[str]) -> None:
    for key in made.choices:
        metric, dot, _ = key.partition(".")
        of_model = key.startswith(MODEL) and key.removeprefix(MODEL) in settings
        known = of_model or key in own or key == MEASURE or key.startswith((ROLE, GROUP))
        if not known and not (dot and metric in base.metrics):
            names = [*own, *(f"{name}.OPTION" for name in base.metrics), f"{ROLE}ROLE", f"{GROUP}FACTOR", MEASURE]
            names += [f"{MODEL}{name}" for name in settings]
            raise UnknownNameError("choice", key, names, code="multiverse.choices")
