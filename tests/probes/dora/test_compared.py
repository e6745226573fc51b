"""Two models that were asked the same: what differs is tested descriptor by descriptor."""

from __future__ import annotations

import asyncio

from prejudge.core.catalogue.plugins import Plugged, Registered
from prejudge.core.catalogue.registry import ModelEntry, StudyEntry
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.compare import CompareOptions, compare
from prejudge.core.engine.runs import RunOptions, execute

from .models import Scripted

PEOPLE = ("nurse", "farmer", "baker", "pilot", "sailor", "tailor", "judge")
OPTIONS = {"letters": "ab", "samples": 1, "settings": ["singular", "plural"]}
WORDS = {"kind": {"a": "able", "b": "brave"}, "harsh": {"a": "awful", "b": "brutal"}}


def adapter(words):
    """Return the class of a model that always says these words, the harsh ones of the plural only."""

    def say(text, image, sample):
        letter = text[text.index("_") - 1]
        return WORDS[words if " are " in text else "kind"][letter]

    def label(text):
        bad = text in WORDS["harsh"].values()
        return {"positive": float(not bad), "negative": float(bad)}

    return type(words.title(), (Scripted,), {"words": staticmethod(say), "labels": staticmethod(label)})


def test_difference_of_two_models_is_tested_by_descriptor_where_there_is_one(store, tmp_path):
    people = tmp_path / "people.csv"
    people.write_text("\n".join(["dimension,singular,plural", *(f"work,{p},{p}s" for p in PEOPLE)]), encoding="utf-8")
    catalogue = Catalogue.load()
    for name in WORDS:
        catalogue.plugins.offers["adapter"][name] = Registered(Plugged(name, adapter(name)), "tests")
        catalogue.registry.models[name] = ModelEntry(adapter=name, settings={"model": name})
    measured = {"dora-associations": {"method": "all", "resamples": 99}}
    catalogue.registry.studies["mine"] = StudyEntry(probe="dora-t2t", metrics=measured)
    options = {"data": str(people), **OPTIONS}
    studies = [catalogue.study("mine", {"subject": name, "sentiment": "kind"}, options) for name in WORDS]
    runs = [asyncio.run(execute(catalogue, study, store, RunOptions())) for study in studies]
    quick = CompareOptions(assignments={"paired-difference.resamples": 999})
    found = [d.estimate for d in compare(catalogue, store, runs, quick).differences]
    each = {
        e.group["setting"]: e for e in found if e.metric == "negative_per_descriptor" and "dimension" not in e.group
    }
    assert (each["singular"].value, each["plural"].value) == (0, 100)
    assert each["plural"].p < 0.05 < each["singular"].p and each["plural"].clusters == len(PEOPLE)
    assert all(e.p is None for e in found if e.metric == "negative")
