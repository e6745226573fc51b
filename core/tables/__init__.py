r"""Tables from outside: one reader for every file that a user hands in.

The content of a file tells its format, not its name: CSV with any separator, JSON, JSON Lines, Parquet or a workbook.
`from prejudge import tables` is for authors of studies. `__init__.pyi` lists what is promised to stay, and where each
name is from; a name is loaded on first use.

Example:
    >>> from pathlib import Path
    >>> from prejudge import tables
    >>> path = Path("words.csv")
    >>> _ = path.write_text("sep=;\nWord;Kind\nkind;positive\nrude; Negative\n")
    >>> [row.choice("kind", ("positive", "negative")) for row in tables.read_rows(str(path), ["word", "kind"])]
    ['positive', 'negative']
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
