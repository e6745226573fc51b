# ruff: noqa: I001
# The names of `prejudge.reading`: type checkers, editors and `__init__.py` read them here.

from .results import Value as Value
from .results import Unread as Unread
from .results import REASONS as REASONS
from .label import read_label as read_label
from .number import read_number as read_number
from .yes_no import read_yes_no as read_yes_no
from .fields import read_fields as read_fields
