"""A policy: a TOML file of rules, each with a selector of estimates and the checks that all of them must pass."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from ..contracts.errors import UsageError
from ..contracts.inputs import load_toml, read_text
from ..contracts.options import build_options

FINISHED = "the run is finished"
"""Name of the rule that every policy has unless it says `finished = false`."""
SHARES = ("max_refused", "max_filtered", "max_unreadable", "max_failed", "max_missing")
LIMITS = ("max", "min", "between", "max_distance", "equivalent_within", "max_increase")


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What must be true of every estimate that the selector matches. Each key that is set is one check."""

    name: str = ""
    measure: str = ""
    """Name of the measure, or its label on a report; `*` and `?` match as in file names. Empty: the answers themselves,
    for shares only."""
    group: dict[str, Any] = {}
    """Levels by factor, with `*` and `?`; empty for estimates without the factor. One not named may have any level.
    Without it: the estimates that answer the study's question, or else those of the fewest factors."""
    on: Literal["value", "low", "high", "bound_low", "bound_high"] | None = None
    """What `max`, `min`, `between` and `max_distance` look at: by default the value with its whole interval, where it
    has one; `value` is the value alone. For `max_increase`, by default `high`."""
    max: float | None = None
    min: float | None = None
    between: tuple[float, float] | None = None
    max_distance: float | None = None
    """Largest allowed distance from the neutral value, in either direction."""
    equivalent_within: float | None = None
    """The whole interval must lie within this distance of the neutral value."""
    baseline: str = ""
    """A run to compare with, for `max_increase`."""
    max_increase: float | None = None
    """Largest allowed increase of the distance from neutral since the baseline."""
    max_refused: float | None = None
    """Largest allowed share of refused answers, from 0 to 1; the next fields are shares too."""
    max_filtered: float | None = None
    max_unreadable: float | None = None
    max_failed: float | None = None
    max_missing: float | None = None
    """Largest allowed share of missing answers, all statuses together."""

    @property
    def shares(self) -> dict[str, float]:
        """Return the largest share by status; `missing` stands for all."""
        found = {name.removeprefix("max_"): getattr(self, name) for name in SHARES}
        return {status: most for status, most in found.items() if most is not None}

    @property
    def limits(self) -> tuple[str, ...]:
        """Return the checks of values that are set."""
        return tuple(name for name in LIMITS if getattr(self, name) is not None)


class Narrowed(Rule, frozen=True, kw_only=True):
    """A rule without a group, with the estimates of a study that it is about."""

    keys: frozenset[Any] = frozenset()
    """Keys of the estimates."""


class Until(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How `run --until decided` asks: whole units in random order, until the rules are decided."""

    unit: str = ""
    """The factor whose levels are the units; empty: the declared one with the most levels."""
    level: Annotated[float, msgspec.Meta(gt=0.5, lt=1)] = 0.95
    """Of the bounds, over all looks."""
    seed: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Of the order."""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """A valid policy."""

    name: str = "prejudge"
    study: str = ""
    """The study it is for; empty: any."""
    finished: bool = True
    """Whether an unfinished run fails."""
    chosen_from: str = ""
    """Run that the limits were chosen from; that it passes them shows nothing."""
    until: Until = Until()
    rules: tuple[Rule, ...]
    text: str = ""
    """As it was written."""

    @property
    def names(self) -> list[str]:
        """Return the names of all rules, in order."""
        return [*([FINISHED] if self.finished else []), *(rule.name for rule in self.rules)]


class _File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str = "prejudge"
    study: str = ""
    finished: bool = True
    chosen_from: str = ""
    until: dict[str, Any] = {}
    rules: list[dict[str, Any]] = []


def read_policy(path: str | Path) -> Policy:
    """Read a policy from a TOML file.

    Raises:
        DataError: the file cannot be read, or is no TOML.
        UsageError: an invalid key or value; the message names the rule and the nearest known key.
    """
    return parse_policy(read_text(path, "the policy"), str(path))


def parse_policy(text: str, where: str = "the policy") -> Policy:
    """Read a policy; `where` names it in errors. Raises as `read_policy` does."""
    data = load_toml(text, where)
    file = build_options(where, _File, data, strict=True, noun="key")
    if not file.rules:
        raise UsageError(
            f"{where} has no rules, so it would let everything pass. Write [[rules]].", code="policy.no-rules"
        )
    rules = tuple(_rule(values, f"rule {number} in {where}", number) for number, values in enumerate(file.rules, 1))
    names = [rule.name for rule in rules]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UsageError(
            f"{where}: two rules are called {twice[0]!r}. Give each a name of its own.", code="policy.rule-twice"
        )
    until = build_options(f"[until] in {where}", Until, file.until, strict=True, noun="key")
    head = {name: getattr(file, name) for name in ("name", "study", "finished", "chosen_from")}
    return Policy(**head, until=until, rules=rules, text=text)


def _rule(values: dict[str, Any], where: str, number: int) -> Rule:
    for name in (*LIMITS, *SHARES):
        _check_numbers(name, values.get(name), where)
    rule = build_options(where, Rule, values, strict=True, noun="key")
    _check(rule, where)
    selector = " ".join([rule.measure or "answers", *(f"{k}={v}" for k, v in rule.group.items())])
    return msgspec.structs.replace(rule, name=rule.name or f"rule {number}: {selector}")


def _check_numbers(name: str, given: Any, where: str) -> None:
    """Refuse a threshold that is a text or a boolean."""
    if name == "between" and given is not None and not isinstance(given, list):
        raise UsageError(f"{where}: between is {given!r}. Give both ends, such as [0, 10].", code="policy.number")
    for number in given if isinstance(given, list) else [given]:
        if isinstance(number, bool) or not isinstance(number, int | float | None):
            shown = str(given).lower() if isinstance(given, bool) else repr(given)
            raise UsageError(f"{where}: {name} is {shown}. Give a number, without quotes.", code="policy.number")


def _check(rule: Rule, where: str) -> None:
    """Refuse a rule that can never fail or never pass."""
    if not rule.limits and not rule.shares:
        raise UsageError(
            f"{where} checks nothing. Set one of {', '.join((*LIMITS, *SHARES))}.", code="policy.rule-empty"
        )
    if rule.limits and not rule.measure:
        raise UsageError(
            f'{where} has {rule.limits[0]}, but names no measure. Set measure; "*" is every measure.',
            code="policy.no-metric",
        )
    for name in (*rule.limits, *(f"max_{status}" for status in rule.shares)):
        given = getattr(rule, name)
        numbers = given if isinstance(given, tuple) else (given,)
        if not all(math.isfinite(number) for number in numbers):
            raise UsageError(f"{where}: {name} is {given}. Give a finite number.", code="policy.number")
    if rule.between is not None and not rule.between[0] <= rule.between[1]:
        raise UsageError(f"{where}: between is {list(rule.between)}. Give the lower end first.", code="policy.range")
    for name in ("max_distance", "equivalent_within"):
        if (getattr(rule, name) or 0) < 0:
            raise UsageError(f"{where}: {name} is {getattr(rule, name)}. A distance is 0 or more.", code="policy.range")
    if wrong := [status for status, most in rule.shares.items() if not 0 <= most <= 1]:
        raise UsageError(
            f"{where}: max_{wrong[0]} is {rule.shares[wrong[0]]}. A share is from 0 to 1.", code="policy.range"
        )
    if bool(rule.baseline) != (rule.max_increase is not None):
        raise UsageError(
            f"{where}: baseline and max_increase belong together; only one of them is set.", code="policy.baseline"
        )
