"""`Instrument`: a probe and metrics with their options, and what they ask and vary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec

from ..contracts import REASONING, Metric, Options, Probe, Stage
from ..contracts.adapter import ModelAdapter
from ..contracts.errors import PrejudgeError, UsageError
from ..contracts.options import choices_of
from ..contracts.probe import StatesMethod
from ..contracts.records import Generate, Likelihood, Request
from ..design import DesignedStage, Facet, Roles
from .limiting import Limit, limit_stages, main_of
from .refusal_stage import RefusalStage, last_measured, with_refusals

STAGE = "stage"
"""The column that names the stage of an observation, if those of several stages are stacked."""
ALWAYS = ("status", "reason", "key")
"""Columns of every observation besides factors and outcomes."""
FEWEST_LEVELS = 6
"""With fewer levels nothing is significant at 5 % where all agree: p is 2 ** (1 - levels) then."""
FIRST = "first"
"""The column of a stage that asks again: the status of the first answer."""


class EveryOption(msgspec.Struct, frozen=True):
    """The options that a run was made with, defaults included."""

    probe: dict[str, Any]
    metrics: dict[str, dict[str, Any]]


class Instrument(msgspec.Struct, frozen=True, dict=True):
    """A probe and metrics with their options. Stages are made once, because some read or generate a whole data set."""

    probe: Probe
    options: Options
    metrics: dict[str, tuple[Metric, Options]]
    roles: frozenset[str] = frozenset()
    """Roles that have a model."""
    limit: Limit | None = None
    """What part of the study is asked."""
    recorded: Roles | None = None
    """What a run recorded of its design."""
    refusals: type[RefusalStage] = RefusalStage
    """How a model of the role `refusal` is asked."""

    @cached_property
    def design(self) -> Roles | None:
        """Return what the study declares that it varies; None where it declares nothing.

        Raises:
            DataError: a file of the study that says so cannot be read.
        """
        if self.recorded is not None or type(self.probe).design is Probe.design:
            return self.recorded
        declared = self.probe.design(self.options)
        return None if declared is None else declared.record()

    @property
    def by_likelihood(self) -> str:
        """Return the assignment that has the study ask by likelihood; empty: it cannot, or does so already."""
        for follows in self.probe.follows:
            way = next((value for value, operation in follows.values if operation is Likelihood), None)
            if way is not None and getattr(self.options, follows.option) != way:
                return f"{follows.option}={way}"
        if any(stage.operation is Likelihood for stage in self._unlimited):
            return ""
        return next(self._other_ways(Likelihood), "")

    def _other_ways(self, operation: type[Request]) -> Iterator[str]:
        """Yield each assignment of a choice among a few with which the probe asks by an operation."""
        for name, values in choices_of(type(self.options)).items():
            for value in values:
                try:
                    stages = self.probe.stages(msgspec.structs.replace(self.options, **{name: value}))
                except PrejudgeError:
                    continue  # this option does not go with the others
                if main_of(stages).operation is operation:
                    yield f"{name}={value}"

    @property
    def facets(self) -> tuple[str, ...]:
        """Return the columns that an inference is over: all that is sampled, but what lies within another such.

        What has fewer than `FEWEST_LEVELS` is left out: the claim is for these levels. Of facets whose levels go
        together one to one, the first counts.
        """
        sampled = () if self.design is None else self.design.facets()
        facets = {facet.name: facet for facet in sampled if facet.levels >= FEWEST_LEVELS}
        order = {name: place for place, name in enumerate(facets)}

        def covered(inner: Facet) -> bool:
            wholes = [facets[name] for name in inner.nested_in if name in facets]
            return any(inner.name not in w.nested_in or order[w.name] < order[inner.name] for w in wholes)

        return tuple(name for name, facet in facets.items() if not covered(facet))

    def ensure_sampled(self, over: Mapping[str, str | Sequence[str]]) -> None:
        """Refuse facets of the option `over`, by metric, that the study declares in another role than a sample's.

        Raises:
            UsageError: one is such.
        """
        if not any(over.values()) or self.design is None:
            return
        questions = ("", *(question.name for question in self.design.questions))
        sampled = dict.fromkeys(facet.name for question in questions for facet in self.design.facets(question))
        fixed = {factor.name: factor.role for factor in self.design.declared if factor.name not in sampled}
        for metric, names in over.items():
            for name in (names,) if isinstance(names, str) else names:
                if name in fixed:
                    raise UsageError(
                        f"{metric}.over names {name!r}, which is {fixed[name]} in this study: no claim goes beyond its "
                        f"levels. Name facets that are sampled: {', '.join(sampled)}.",
                        code="options.facet",
                        facets=tuple(sampled),
                    )

    @property
    def every_option(self) -> EveryOption:
        """Return every option of the probe and of each metric."""
        metrics = {name: msgspec.to_builtins(options) for name, (_, options) in self.metrics.items()}
        return EveryOption(msgspec.to_builtins(self.options), metrics)

    @property
    def needs_reasoning(self) -> bool:
        """Return whether a metric reads what models wrote before their answers."""
        return any(REASONING in metric.columns(options) for metric, options in self.metrics.values())

    def stages(self) -> list[Stage]:
        """Return the stages, in order, without optional ones whose role has no model."""
        return [stage for stage in self.every_stage() if not stage.rules.optional or stage.role in self.roles]

    def methods(self) -> Iterator[str]:
        """Yield how answers become outcomes and numbers, in sentences."""
        yield from filter(None, (stage.method() for stage in self.stages() if isinstance(stage, StatesMethod)))
        yield from (metric.methods(options) for metric, options in self.metrics.values())

    def every_stage(self) -> list[Stage]:
        """Return the stages, in order."""
        return list(self._stages)

    @property
    def main_stage(self) -> Stage:
        """Return the first stage that is not auxiliary: its trials are what a study is sized by."""
        return main_of(self.every_stage())

    @cached_property
    def _unlimited(self) -> tuple[Stage, ...]:
        return with_refusals(self.probe.stages(self.options), self.refusals)

    @cached_property
    def _stages(self) -> tuple[Stage, ...]:
        return limit_stages(self._unlimited, self.limit)

    @property
    def designed(self) -> DesignedStage | None:
        """Return the first stage with a declared design, as if all of it were asked; None: there is none."""
        return next((stage for stage in self._unlimited if isinstance(stage, DesignedStage)), None)

    def place(self, adapters: Mapping[str, ModelAdapter]) -> None:
        """Let the model that is asked the declared design know its cells, before its identity is read.

        The table is made only for a model that reads it, and of all cells, so that every part of the study asks the
        same model.

        Args:
            adapters: The models by role.
        """
        stage = self.designed
        if stage is not None and (adapter := adapters.get(stage.role)) is not None:
            adapter.services = msgspec.structs.replace(adapter.services, cells=lambda: stage.located)

    def files(self) -> list[str]:
        """Return the paths of the files that options of the metrics name."""
        named = (getattr(options, name) for metric, options in self.metrics.values() for name in sorted(metric.files))
        return [str(path) for path in named if path]

    def check(self) -> None:
        """Refuse a metric that needs columns which its stages do not have.

        Raises:
            UsageError: the probe and the metric do not fit together.
        """
        stages = self.every_stage()
        for name, (metric, options) in self.metrics.items():
            columns = set(ALWAYS) | ({STAGE} if metric.every_stage else set())
            for stage in stages if metric.every_stage else [last_measured(self.stages())]:
                columns |= {*stage.factors, *stage.outcomes, *([REASONING] if stage.operation is Generate else [])}
            lacking = sorted(metric.columns(options) - columns)
            if lacking and self.design is not None:
                parts = {part.name for part in self.design.declared}
                lacking = [column for column in lacking if column not in parts]
            if lacking:
                gives = ", ".join(sorted(columns))
                raise UsageError(
                    f"metric {name!r} needs {', '.join(lacking)}; the probe gives {gives}.", code="study.metric-columns"
                )
