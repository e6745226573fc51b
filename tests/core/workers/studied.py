"""A study that workers are given."""

import asyncio
import shutil
from pathlib import Path

import pytest

from prejudge import Settings
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts.errors import BudgetError
from prejudge.core.engine.manifest import manifest_of
from prejudge.core.engine.runs import execute
from prejudge.core.store import Store, get_run

from . import uneven


def asked(settings, model="slow", *, per_cell=10, **options):
    """Run the study, unscored, of the registry at hand; return the name of the run."""
    catalogue = Catalogue.load("registry.toml")
    study = catalogue.study("bistereo-pairs", {"subject": model}, {"per_cell": per_cell, **options})
    with Store(settings.store) as store:
        return asyncio.run(execute(catalogue, study, store, settings.run_options))


def exceeded(limit, batch, engine, workers):
    """Run a study of long and short answers, and check that its workers stop within a batch of a limit.

    The study comes from the folder at hand, as a user's does.
    """
    shutil.copy(uneven.__file__, "uneven.py")
    Path("registry.toml").write_text(uneven.REGISTRY)
    catalogue = Catalogue.load("registry.toml")
    settings = Settings(store=f"{engine}.db", engine=engine, workers=workers, **limit)
    with Store(settings.store) as store:
        study = catalogue.study("uneven", {"subject": "uneven"}, {})
        with pytest.raises(BudgetError):
            asyncio.run(execute(catalogue, study, store, settings.run_options))
        (record,) = manifest_of(get_run(store, "latest")).stages.values()
    known = record.counts
    spent = {"max_tokens": known["input_tokens"] + known["output_tokens"], "max_cost": known["cost"]}
    ((name, most),) = limit.items()
    most_of_one = {"max_tokens": uneven.LONGEST, "max_cost": uneven.MOST / 1000}
    assert most <= spent[name] <= most + batch * most_of_one[name], spent
    assert known["asked"] > uneven.SHORT, "the long ones were reached while many calls were in flight"
