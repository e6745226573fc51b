# ruff: noqa: I001
# The names of `prejudge.tables`: type checkers, editors and `__init__.py` read them here.

from .rows import Row as Row
from .reading import Table as Table
from .reading import Parsed as Parsed
from .understanding import Form as Form
from .understanding import Codes as Codes
from .options import TableOptions as TableOptions
from .repeats import Repeats as Repeats
from .faults import LeftOut as LeftOut
from .faults import RowError as RowError
from .reading import parse_file as parse_file
from .reading import read_rows as read_rows
from .reading import read_table as read_table
from .writing import csv_text as csv_text
