"""Numbers corrected for the errors of a reader or judge: by labels of people, or by a known error matrix."""

from .apply import correct_by_labels as correct_by_labels
from .apply import correct_by_matrix as correct_by_matrix
from .labels import sample_at as sample_at
from .matrix import read_matrix as read_matrix
