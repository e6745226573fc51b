"""What plugins may import of the core besides statistics and charts: records, errors, adapter, probe, metric."""

from .adapter import Identity, Limits, ModelAdapter
from .effects import OptionEffect, harmless
from .estimates import Chart, Estimate, Example, Listing
from .metric import CROSSED, DESIGN_COLUMNS, PROMPT_KEY, REASONING, UNIT_COLUMNS, Metric
from .options import Options
from .presentation import HEADLINE, Presentation
from .probe import (
    Counting,
    Follows,
    Imported,
    LargeStage,
    MatchedStage,
    Probe,
    Stage,
    StageRules,
    Trial,
    Unreadable,
)

__all__ = [
    "Chart",
    "Counting",
    "CROSSED",
    "DESIGN_COLUMNS",
    "Estimate",
    "Example",
    "Follows",
    "harmless",
    "HEADLINE",
    "Identity",
    "Imported",
    "LargeStage",
    "Limits",
    "Listing",
    "MatchedStage",
    "Metric",
    "ModelAdapter",
    "OptionEffect",
    "Options",
    "Presentation",
    "Probe",
    "PROMPT_KEY",
    "REASONING",
    "Stage",
    "StageRules",
    "Trial",
    "UNIT_COLUMNS",
    "Unreadable",
]
