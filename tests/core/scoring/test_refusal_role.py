"""A model of the role `refusal` decides about answers in words that no reader could read, in any study that asks so."""

from __future__ import annotations

import asyncio
import itertools
from typing import ClassVar

import pytest
from fakes import FakeModel, FakeOptions, text_of

from prejudge.core.catalogue.plugins import Plugged, Registered
from prejudge.core.catalogue.registry import ModelEntry
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts.adapter import Identity, Limits, ModelAdapter
from prejudge.core.contracts.errors import UnknownNameError
from prejudge.core.contracts.records import Classification, Classify, Generation
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.scoring.score import score
from prejudge.core.store import Store

POLITE = "Preferiría no opinar sobre las personas de esta manera."
UNCLEAR = "Hace buen tiempo en la ciudad."
STUDIES = {
    "bistereo-nli": ({"asking": "generate", "per_cell": 4}, "dark", ("entailment", "contradiction", "neutral")),
    "subtle-asa": (
        {"asking": "generate", "domains": ["ageism"], "pronouns": ["feminine"], "per_cell": 12},
        "woman",
        ("1", "2", "3"),
    ),
}
"""Options, a word in questions about one group, and answers."""


class Classifier(ModelAdapter):
    """Only classifies: by the words that the texts of refusals have."""

    options = FakeOptions
    labels: ClassVar[tuple[str, str]] = ("REJECTION", "NORMAL")
    seen: ClassVar[list[str]] = []

    def __init__(self, options: FakeOptions) -> None:
        self.identity = Identity(adapter="classifier", version="1", model=options.model)
        self.limits = Limits(batch_items=8)

    async def classify(self, request: Classify) -> Classification:
        Classifier.seen.append(request.text)
        share = 0.9 if "no opinar" in request.text else 0.2
        return Classification(probabilities=dict(zip(Classifier.labels, (share, 1 - share), strict=True)))


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """Return a function that runs a study on a model that declines about one group in Spanish."""

    def run(study, refusal=None, **choices):
        options, word, answers = STUDIES[study]
        turns = itertools.cycle(answers)

        def script(request, seen):
            text = text_of(request)
            if "Answer with yes or no only" in text:
                return Generation(text="yes" if "no opinar" in text else "no", finish_reason="stop")
            if word in text.lower():
                return Generation(text=POLITE if next(turns) != answers[0] else UNCLEAR, finish_reason="stop")
            return Generation(text=next(turns), finish_reason="stop")

        monkeypatch.setattr(FakeModel, "script", script)
        monkeypatch.setattr(Classifier, "seen", [])
        catalogue = Catalogue.load(None)
        for name, kind in {"fake": FakeModel, "classifier": Classifier}.items():
            catalogue.plugins.offers["adapter"][name] = Registered(Plugged(name, kind), "tests")
            catalogue.registry.models[name] = ModelEntry(adapter=name, settings={"model": name})
        roles = {"subject": "fake"} | ({} if refusal is None else {"refusal": refusal})
        with Store(tmp_path / "store.db") as store:
            chosen = catalogue.study(study, roles, options | choices)
            name = asyncio.run(execute(catalogue, chosen, store, RunOptions(keep_going=refusal is None)))
            return score(catalogue, store, name), score(catalogue, store, name)

    return run


def _subject(scores):
    return scores.observations[next(name for name in scores.observations if name != "refusals")]


@pytest.mark.parametrize("study", STUDIES)
def test_without_the_role_what_cannot_be_read_is_unreadable(measured, study):
    scores, _ = measured(study)
    assert set(_subject(scores)["status"]) == {"ok", "unreadable"} and "refusals" not in scores.observations


@pytest.mark.parametrize("refusal", ["classifier", "fake"])
@pytest.mark.parametrize("study", STUDIES)
def test_a_classifier_or_a_judge_decides_about_unread_answers_only(measured, study, refusal):
    before = _subject(measured(study)[0])
    scores, again = measured(study, refusal)
    rows = _subject(scores)
    decisions = scores.observations["refusals"]
    assert rows.filter(status="ok").height == before.filter(status="ok").height
    assert decisions.height == before.filter(status="unreadable").height
    declined = rows.filter(status="refused")
    assert 0 < declined.height == decisions.filter(refuses="yes").height < decisions.height
    assert declined["reason"].null_count() == declined.height
    assert rows.filter(status="unreadable").height == decisions.filter(refuses="no").height
    assert _subject(again).equals(rows)
    if refusal == "classifier":
        assert set(Classifier.seen) == {POLITE, UNCLEAR}


def test_estimates_are_those_of_the_study_and_not_of_the_decisions(measured):
    """Metrics of the last stage read the study's answers, though decisions come later."""
    without, _ = measured("bistereo-nli")
    scores, _ = measured("bistereo-nli", "classifier")
    counts = [
        {(e.metric, *sorted(e.group.items())): e.n for group in found.estimates.values() for e in group}
        for found in (without, scores)
    ]
    assert counts[0].keys() == counts[1].keys() and scores.last.equals(_subject(scores))


@pytest.mark.parametrize("labels", [("POSITIVE", "NEGATIVE"), ("Refusal", "Rejection")])
def test_labels_that_do_not_name_one_refusal_decide_nothing(measured, monkeypatch, labels):
    monkeypatch.setattr(Classifier, "labels", labels)
    scores, _ = measured("bistereo-nli", "classifier")
    assert set(scores.observations["refusals"]["status"]) == {"unreadable"}
    assert "refused" not in set(_subject(scores)["status"])


def test_a_label_against_refusals_is_none(measured, monkeypatch):
    monkeypatch.setattr(Classifier, "labels", ("Refusal", "Non-refusal"))
    scores, _ = measured("bistereo-nli", "classifier")
    assert set(scores.observations["refusals"]["status"]) == {"ok"}
    assert "refused" in set(_subject(scores)["status"])


def test_a_study_by_likelihood_has_no_such_role(measured):
    with pytest.raises(UnknownNameError):
        measured("bistereo-nli", "classifier", asking="likelihood")
