"""Anytime-valid inference: bounds that hold at every look, so that a run may end when its question is answered."""

from .betting import STEPS as STEPS
from .betting import Bounds as Bounds
from .betting import Mean as Mean
from .betting import bounds_by as bounds_by
from .betting import bounds_of as bounds_of
from .betting import evidence_on as evidence_on
from .units import Course as Course
from .units import Followed as Followed
from .units import course_of as course_of
from .units import ensure_means as ensure_means
from .units import in_order as in_order
