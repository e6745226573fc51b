"""Compare runs: paired differences by unit, and agreement of the ranks of models across studies.

The door: `compare` runs of one study, `rank_runs` of several, and write either with `write_comparison`.
"""

from __future__ import annotations

from .check import Different, differences_between
from .compare import compare, compare_scores, score_all
from .differences import Difference
from .ranks import rank_runs, ranks_possible
from .records import CompareOptions, Comparison
from .write import differences_frame, write_comparison

__all__ = [
    "CompareOptions",
    "Comparison",
    "Difference",
    "Different",
    "compare",
    "compare_scores",
    "differences_between",
    "differences_frame",
    "rank_runs",
    "ranks_possible",
    "score_all",
    "write_comparison",
]
