# ruff: noqa: I001
# The names of the door, once each, in the groups of docs/reference/api.md: type checkers, editors and `__init__.py`
# read them here. A verb that asks models has a twin that is awaited: `arun` for `run`.

# Ask models
from .core.api.running import run as run
from .core.api.running import arun as arun
from .core.api.asking import vary as vary
from .core.api.asking import avary as avary
from .core.api.asking import decide as decide
from .core.api.asking import adecide as adecide
from .core.api.asking import converge as converge
from .core.api.asking import aconverge as aconverge
from .core.api.settings import Settings as Settings

# Plan a study
from .core.api.planning import plan as plan
from .core.api.planning import smallest_effects as smallest_effects

# Score and analyse stored runs
from .core.api.scoring import score as score
from .core.api.scoring import load as load
from .core.api.scoring import import_scores as import_scores
from .core.api.scoring import measure as measure
from .core.api.scoring import corrected as corrected
from .core.api.scoring import draw_sample as draw_sample
from .core.api.analysing import compare as compare
from .core.api.analysing import variance as variance
from .core.api.analysing import multiverse as multiverse

# Read what a run stored
from .core.api.reading import observe as observe
from .core.api.reading import exchanges as exchanges
from .core.api.reading import write_table as write_table

# Results
from .core.report.result import Result as Result
from .core.report.results import Run as Run
from .core.compare.result import ComparisonResult as ComparisonResult
from .core.lab.converge.result import ConvergenceResult as ConvergenceResult
from .core.gate.result import DecisionResult as DecisionResult
from .core.lab.variance.result import VarianceResult as VarianceResult
from .core.lab.multiverse.result import MultiverseResult as MultiverseResult
from .core.api.planning import DetectableEffects as DetectableEffects
from .core.api.reading import Observations as Observations
from .core.annotation.samples import Sample as Sample

# Write a plugin
from .core.contracts.plugin import hookimpl as hookimpl
from .core.contracts.plugin import Plugged as Plugged
from .core.contracts.options import Options as Options
from .core.contracts.effects import OptionEffect as OptionEffect
from .core.contracts.effects import harmless as harmless
from .core.contracts.version import __version__ as __version__

# Write an adapter
from .core.contracts.adapter import ModelAdapter as ModelAdapter
from .core.contracts.adapter import Identity as Identity
from .core.contracts.adapter import Limits as Limits
from .core.contracts.adapter import Services as Services
from .core.contracts.adapter import Remark as Remark
from .core.contracts.adapter import RemoteEndpoint as RemoteEndpoint
from .core.contracts.abilities import Abilities as Abilities
from .core.contracts.adapter import Worker as Worker
from .core.contracts.canonical import wire_seed as wire_seed

# Write a probe
from .core.contracts.probe import Probe as Probe
from .core.contracts.probe import Stage as Stage
from .core.contracts.probe import Trial as Trial
from .core.contracts.probe import Unreadable as Unreadable
from .core.contracts.probe import StageRules as StageRules
from .core.contracts.probe import Counting as Counting

# Write a metric
from .core.contracts.metric import Metric as Metric
from .core.contracts.estimates import Estimate as Estimate
from .core.contracts.estimates import Missing as Missing

# Modules of further names
from .core import design as design
from .core import reading as reading
from .core import statistics as statistics
from .core import tables as tables
from .core.contracts import estimates as estimates
from .core.contracts import records as records
from .core.contracts import errors as errors
