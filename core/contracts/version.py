"""The version of the package."""

VERSION = __version__ = "0.1.0"
