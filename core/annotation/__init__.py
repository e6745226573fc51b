"""What people label: samples of answers, what labels say of a reader or judge, and the numbers they correct."""

from .correct import corrected_run as corrected_run
from .samples import Sample as Sample
