"""Every documented way of asking answers the questions of its study, in a trained model with a bias."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest

from prejudge.core.answer import answer_of
from prejudge.core.answer.replies import questions_over
from prejudge.core.catalogue.study import SUBJECT, Catalogue
from prejudge.core.contracts.options import choices_of
from prejudge.core.contracts.probe import stage_need
from prejudge.core.contracts.sizes import WORDS, State
from prejudge.core.scoring.score import Scores, score
from prejudge.core.store import Store

from .command import call

ROOT = Path(__file__).resolve().parents[1]
CATALOGUE = Catalogue.load()
STUDIES = {name: entry for name, entry in CATALOGUE.registry.studies.items() if not entry.calibration.none}
WAYS = ("asking", "scoring", "contrast", "labels")
"""Options of a probe that change what is asked, or how labels are compared."""
METHODS = ("method",)
"""Options of a metric that change what is counted."""
CORRELATIONS = ("spearman", "kendall")
"""Kinds of a correlation that a user's own measures may have, tried with these."""
MODELS = ("reference-answering-biased-2", "reference-vlm-biased-2")
"""Asked where the biased model of a study's calibration cannot answer in some way."""
SIMULATED = {("crows-pairs", "choice"): "simulated-biased"}
"""Asked in the ways, by study and option, that no trained model can answer: their words have no numbers."""
ROLES = {"indicasa": {"encoder": "reference-encoder-biased"}}
DATA = {"attractiveness", "crows-pairs", "dora-i2t", "dora-t2i", "dora-t2t"}
"""Studies that are asked with the data that their calibration draws: the trained models know few words and faces."""
SMALLER = {
    "attractiveness": {"seeds": [0], "limit": 40, "attractiveness.resamples": 99},
    "bistereo-nli": {"per_cell": 6},
    "bistereo-pairs": {"per_cell": 6},
    "subtle-asa": {"per_cell": 6},
    "subtle-sai": {"per_cell": 6},
    "dora-t2i": {"per_dimension": 2, "samples": 2, "wordings": 2},
    "dora-i2t": {"per_dimension": 2, "samples": 2, "wordings": 2},
}


def ways(study: str) -> Iterator[dict[str, Any]]:
    """Yield each combination of the options that say how a study asks."""
    choices = choices_of(CATALOGUE.plugins.load("probe", STUDIES[study].probe).options)
    names = [name for name in WAYS if name in choices]
    for values in itertools.product(*(choices[name] for name in names)):
        way = dict(zip(names, values, strict=True))
        # Labels are compared by likelihood alone.
        if way.get("asking") != "likelihood":
            way.pop("labels", None)
        yield way


def methods(study: str) -> Iterator[dict[str, Any]]:
    """Yield each value of an option that says how a metric counts."""
    for metric in STUDIES[study].metrics:
        choices = choices_of(CATALOGUE.plugins.load("metric", metric).options)
        yield from ({f"{metric}.{name}": value} for name in METHODS for value in choices.get(name, ()))


def biased(study: str, options: dict[str, Any], roles: dict[str, str]) -> str:
    """Return a trained biased model that can be asked with these options."""
    if chosen := SIMULATED.get((study, str(options.get("scoring")))):
        return chosen
    for model in (*(name for name, bias in STUDIES[study].calibration.real.items() if bias), *MODELS):
        stages = CATALOGUE.instrument(CATALOGUE.study(study, {SUBJECT: model} | roles, options)).stages()
        if all(CATALOGUE.is_suited(model, stage_need(stage)) for stage in stages if stage.role == SUBJECT):
            return model
    raise AssertionError(f"no biased model answers {study} with {options}")


def settings(options: dict[str, Any]) -> list[str]:
    return [word for name, value in options.items() for word in ("--set", f"{name}={json.dumps(value)}")]


def ask(folder: Path, study: str, way: dict[str, Any]) -> str:
    """Run a study in one way, with the design of its calibration, and return what it printed."""
    own = STUDIES[study].calibration
    roles = own.roles | own.trained.roles | ROLES.get(study, {})
    options = own.options | own.trained.options | SMALLER.get(study, {}) | way
    if study in DATA:
        resolve_name(own.trained.data)(0, folder / "items.csv")
        options["data"] = str(folder / "items.csv")
    models = {SUBJECT: biased(study, options, roles)} | roles
    words = [word for role, model in models.items() for word in ("--model", f"{role}={model}")]
    ended = call(folder, "run", study, "--quiet", "--leave-out", "examples", *words, *settings(options))
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def scored(folder: Path, assignments: dict[str, Any] | None = None) -> Scores:
    with Store(folder / "prejudge.db", writable=False) as store:
        return score(Catalogue.load(), store, "latest", assignments)


def check(scores: Scores) -> None:
    """Every question has a number, and every judged number of the headline belongs to a question or is named."""
    answer = answer_of(scores)
    unanswered = [reply.asks for reply in answer.replies if reply.state is State.NOTHING]
    assert answer.replies and not unanswered
    shown = {(row.estimate.metric, tuple(row.estimate.group)) for row in answer.rows}
    asked = {question.measure for question in scores.manifest.study.questions}
    for e in questions_over(scores.estimates, scores.headline):
        if e.verdict is not None and e.value is not None and (e.metric, tuple(e.group)) not in shown:
            assert e.metric in asked or e.label in answer.also, f"{e.metric} is judged, and shown nowhere"


CASES = [(study, way) for study in STUDIES for way, _ in itertools.groupby(ways(study))]


@pytest.mark.parametrize(
    ("study", "way"), CASES, ids=lambda value: value if isinstance(value, str) else json.dumps(value)
)
def test_every_way_of_asking_answers_the_questions_of_its_study(
    tmp_path: Path, study: str, way: dict[str, Any]
) -> None:
    printed = ask(tmp_path, study, way)
    assert WORDS[State.NOTHING] not in printed
    check(scores := scored(tmp_path))
    applying = [
        one for one in scores.manifest.study.questions if one.asks in {r.asks for r in answer_of(scores).replies}
    ]
    assert applying, "the questions are of another way of asking"
    for method in methods(study):
        check(scored(tmp_path, method))


def test_every_documented_way_of_asking_is_tried() -> None:
    texts = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "probes").glob("*/*.toml")]
    pattern = re.compile(r"\b(asking|scoring|method)(?:=| = \")([a-z][a-z-]*)")
    documented = {found for path in texts for found in pattern.findall(path.read_text("utf-8"))}
    documented -= {("method", name) for name in CORRELATIONS}
    tried = {(name, value) for _, way in CASES for name, value in way.items()}
    tried |= {(n.rpartition(".")[2], v) for study in STUDIES for method in methods(study) for n, v in method.items()}
    assert {name for name, _ in documented} == {"asking", "scoring", "method"}
    assert documented <= tried, documented - tried
