"""Fitness: whether a model can do the task of a stage at all, judged from its answers before any number is.

Pure functions of answers. A refusal is an answer: a model that declines understood the question. The engine asks the
first trials of a stage and stops where `Watch` says so; a scoring works out the same from stored answers.
"""

from __future__ import annotations

from .answers import FitAnswer, is_cut, is_echo, look_at, mass_of
from .profile import (
    FEW_VALUES,
    Profile,
    StageFitness,
    difference_in_refusals,
    profile_from,
    profile_of,
)
from .watch import ENOUGH, FIRST, LEVEL, Verdict, Watch
from .words import MISPLACED, base_words, mass_words, remedies, unfit_words, unvaried_words

__all__ = [
    "ENOUGH",
    "FEW_VALUES",
    "FIRST",
    "LEVEL",
    "MISPLACED",
    "FitAnswer",
    "Profile",
    "StageFitness",
    "Verdict",
    "Watch",
    "base_words",
    "difference_in_refusals",
    "is_cut",
    "is_echo",
    "look_at",
    "mass_of",
    "mass_words",
    "profile_from",
    "profile_of",
    "remedies",
    "unfit_words",
    "unvaried_words",
]
