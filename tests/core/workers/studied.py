"""A study that workers are given."""

import asyncio

from prejudge.core.catalogue.study import Catalogue
from prejudge.core.engine.runs import execute
from prejudge.core.store import Store


def asked(settings, model="slow", *, per_cell=10, **options):
    """Run the study, unscored, of the registry at hand; return the name of the run."""
    catalogue = Catalogue.load("registry.toml")
    study = catalogue.study("bistereo-pairs", {"subject": model}, {"per_cell": per_cell, **options})
    with Store(settings.store) as store:
        return asyncio.run(execute(catalogue, study, store, settings.run_options))
