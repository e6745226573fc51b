"""What plugins may import of the core besides statistics and charts: records, errors, adapter, probe, metric."""

from .adapter import Identity, Limits, ModelAdapter
from .effects import OptionEffect, harmless
from .estimates import Chart, Estimate, Example, Listing
from .metric import (
    DESIGN_COLUMNS,
    FACET,
    PROMPT_KEY,
    REASONING,
    UNIT_COLUMNS,
    Metric,
    facet_columns,
    factors_of,
    last_facet,
)
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
    "DESIGN_COLUMNS",
    "FACET",
    "HEADLINE",
    "PROMPT_KEY",
    "REASONING",
    "UNIT_COLUMNS",
    "Chart",
    "Counting",
    "Estimate",
    "Example",
    "Follows",
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
    "Stage",
    "StageRules",
    "Trial",
    "Unreadable",
    "facet_columns",
    "factors_of",
    "last_facet",
    "harmless",
]
