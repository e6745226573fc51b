"""`DecisionResult`: a run that ended when its policy was decided, in Python."""

from __future__ import annotations

import msgspec
import polars as pl

from ..contracts import Chart
from ..report.result import Result
from ..report.results import Run
from .checks import State, worst
from .judge import Verdict


class DecisionResult(Result, frozen=True):
    """A run that ended when its policy was decided, and the verdicts.

    Example:
        >>> import prejudge
        >>> list(prejudge.DecisionResult.__struct_fields__)
        ['run', 'verdicts', 'report']
    """

    run: Run
    """The run, with the estimates of the answers that were asked for."""
    verdicts: tuple[Verdict, ...]
    """The result of each rule."""

    @property
    def title(self) -> str:
        """Return the run's name, in a line."""
        return self.run.title

    @property
    def conclusion(self) -> str:
        """Return the result, and after how many answers it was reached."""
        last = self.looks.row(-1, named=True)
        return f"{self.state} after {last['units']} units and {last['trials']:,} requests, at look {self.looks.height}."

    @property
    def notes(self) -> list[str]:
        """Return what limits the conclusions of the run."""
        return self.run.notes

    @property
    def state(self) -> State:
        """Return `pass`, `fail` or `not enough data`, of all rules together."""
        return worst(verdict.state for verdict in self.verdicts)

    @property
    def estimates(self) -> pl.DataFrame:
        """Return the estimates of the run."""
        return self.run.estimates

    @property
    def charts(self) -> tuple[Chart, ...]:
        """Return the figures of the run."""
        return self.run.charts

    @property
    def looks(self) -> pl.DataFrame:
        """Return a row per look: units and trials that were asked by then, and the result."""
        ending = self.run.manifest.ending
        assert ending is not None
        return pl.DataFrame([msgspec.structs.asdict(look) for look in ending.looks])

    @property
    def checks(self) -> pl.DataFrame:
        """Return a row per check: the rule, what was checked, what must hold, what was found, and the result."""
        rows = [
            {"rule": v.rule, "subject": o.subject, "check": o.check, "found": o.found, "state": str(o.state)}
            for v in self.verdicts
            for o in v.outcomes
        ]
        return pl.DataFrame(rows)
