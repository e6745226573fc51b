"""Variance components of a measure over its facets, the reliability of its headline, and the decision study."""

from .outcome import VarianceOptions as VarianceOptions
from .page import charts as charts
from .page import write_variance as write_variance
from .variance import Variance as Variance
from .variance import component_rows as component_rows
from .variance import design_rows as design_rows
from .variance import variance as variance
from .words import conclusion as conclusion
