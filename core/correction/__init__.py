"""Numbers corrected for the errors of a reader or judge: by labels of people, or by a known error matrix."""

from .apply import corrected_run as corrected_run
from .apply import frame as frame
