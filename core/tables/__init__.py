"""Tables from outside: one reader for every file that a user hands in.

The content of a file tells its format, not its name: CSV with any separator, JSON, JSON Lines, Parquet or a workbook.
"""

from .faults import BadRows, LeftOut, RowError
from .options import TableOptions
from .reading import Parsed, Table, parse_file, read_rows, read_table
from .rows import Row
from .understanding import Codes, Form
from .writing import csv_text

__all__ = [
    "BadRows",
    "Codes",
    "Form",
    "LeftOut",
    "Parsed",
    "Row",
    "RowError",
    "Table",
    "TableOptions",
    "csv_text",
    "parse_file",
    "read_rows",
    "read_table",
]
