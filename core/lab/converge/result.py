"""`ConvergenceResult`: constructs measured by several methods, in Python."""

from __future__ import annotations

import polars as pl

from ...report.result import Result
from .convergence import Convergence, evidence_frame
from .words import conclusion


class ConvergenceResult(Result, frozen=True):
    """Constructs measured by several methods.

    Example:
        >>> import prejudge
        >>> prejudge.ConvergenceResult.estimates.__doc__.split(":")[0]
        'Return a row per construct, model and method'
    """

    convergence: Convergence
    """The constructs, what each method found, and how they were judged."""

    @property
    def title(self) -> str:
        """Return the constructs and models, in a line."""
        constructs = ", ".join(construct.name for construct in self.convergence.constructs)
        return f"{constructs}: {', '.join(self.convergence.models)}"

    @property
    def conclusion(self) -> str:
        """Return the conclusions on all constructs and models, a line each."""
        return "\n".join(self.conclusions.values())

    @property
    def conclusions(self) -> dict[tuple[str, str], str]:
        """Return the conclusion by construct and model."""
        return {
            (judged.construct, judged.model): conclusion(self.convergence, judged) for judged in self.convergence.judged
        }

    @property
    def estimates(self) -> pl.DataFrame:
        """Return a row per construct, model and method: its own value, the common scale, p, or what it lacks."""
        return evidence_frame(self.convergence)
