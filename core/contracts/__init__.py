"""What plugins may import of the core besides statistics and charts: records, errors, adapter, probe, metric."""

from .adapter import Identity, Limits, ModelAdapter
from .effects import OptionEffect, harmless
from .estimates import Chart, Estimate, Example, Listing
from .metric import CROSSED, DESIGN_COLUMNS, PROMPT_KEY, REASONING, UNIT_COLUMNS, Metric
from .options import Options
from .presentation import HEADLINE, Presentation
from .probe import Follows, Imported, Probe, Stage, Trial, Unreadable

__all__ = [
    "Chart",
    "CROSSED",
    "DESIGN_COLUMNS",
    "Estimate",
    "Example",
    "Follows",
    "harmless",
    "HEADLINE",
    "Identity",
    "Imported",
    "Limits",
    "Listing",
    "Metric",
    "ModelAdapter",
    "OptionEffect",
    "Options",
    "Presentation",
    "Probe",
    "PROMPT_KEY",
    "REASONING",
    "Stage",
    "Trial",
    "UNIT_COLUMNS",
    "Unreadable",
]
