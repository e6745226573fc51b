"""A table of outcomes that a user hands in, measured as a study of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..catalogue.registry import read_registry
from ..catalogue.study import Catalogue
from .published import score_published
from .score import Scores


def measure_table(catalogue: Catalogue, path: str, declared: Mapping[str, Any], model: str = "") -> Scores:
    """Measure a table; its study is named after the outcome, so that tables can be compared, and is known here alone.

    Args:
        catalogue: where the probe of tables and the metrics are.
        path: the file.
        declared: what is said of its columns.
        model: name of the model that gave the outcomes; empty: not stated.

    Raises:
        DataError: the file cannot be used.
        UsageError: what is said of it contradicts itself.
    """
    probe = catalogue.plugins.load("probe", catalogue.registry.defaults["table"])()
    fields = dict(probe.study_of_table(path, declared))
    name = f"table-{re.sub(r'[^a-z0-9]+', '-', str(declared['outcome']).lower()).strip('-')}"
    catalogue.registry.studies[name] = read_registry({"studies": {name: fields}}, path).studies[name]
    return score_published(catalogue, catalogue.study(name, {}, {}), path, model)
