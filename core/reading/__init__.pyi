# ruff: noqa: I001
# The names of `prejudge.reading`: type checkers, editors and `__init__.py` read them here.

from .results import Value as Value
from .results import Unread as Unread
from .results import REASONS as REASONS
from .label import read_label as read_label
from .number import read_number as read_number
from .yes_no import read_yes_no as read_yes_no
from .fields import read_fields as read_fields
from .choice import Choice as Choice
from .choice import read_choice as read_choice
from .stated import Labels as Labels
from .stated import read_stated as read_stated
from .words import Blank as Blank
from .words import read_word as read_word
