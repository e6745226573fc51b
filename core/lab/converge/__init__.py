"""Convergent evidence: one construct, measured on a model by the methods of several studies.

The door: `cases_of` says what is to be run, `converge` judges the runs, and `write_convergence` writes the page.
"""

from __future__ import annotations

from .across import Kind, Matrix, Ordered
from .cases import Case, cases_of
from .convergence import Convergence, converge, evidence_frame
from .evidence import Evidence, Finding, Judged, Pair
from .heterogeneity import Heterogeneity, heterogeneity
from .page import write_convergence

__all__ = [
    "Case",
    "Convergence",
    "Evidence",
    "Finding",
    "Heterogeneity",
    "Judged",
    "Kind",
    "Matrix",
    "Ordered",
    "Pair",
    "cases_of",
    "converge",
    "evidence_frame",
    "heterogeneity",
    "write_convergence",
]
