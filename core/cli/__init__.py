"""The command line. Each command is imported only when it is called, so that `prejudge --help` is quick."""

from .main import main

__all__ = ["main"]
