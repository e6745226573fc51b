"""The observations that the tests of metrics use too."""

from ...metrics.conftest import observed, study

__all__ = ["observed", "study"]
