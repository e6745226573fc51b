"""The version, in its one place."""

VERSION = __version__ = "0.1.0"
