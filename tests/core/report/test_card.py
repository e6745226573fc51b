"""Model card and data sheet: complete, and what a run says is escaped."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import msgspec
import pytest
from fakes import FakeModel
from hostile import HOSTILE as HOSTILE_ANSWERS
from markdown_it import MarkdownIt

from prejudge.core.contracts import Estimate
from prejudge.core.contracts.adapter import Identity
from prejudge.core.contracts.errors import PermanentError
from prejudge.core.report.card import data_sheet, model_card, write_card
from prejudge.core.scoring.score import score

HOSTILE = "<script>alert(1)</script> | [x](javascript:y) @team"


@pytest.fixture
def scores(run_study, catalogue, store):
    FakeModel.script = lambda request, seen: PermanentError(HOSTILE) if "q 3" in str(request) else None
    run_study()
    return score(catalogue, store, "latest")


def test_model_card_says_who_what_and_how_sure(scores):
    text = model_card(scores)
    for heading in ("Model details", "Intended use", "Requests", "Results", "Missing answers", "Limits"):
        assert f"## {heading}" in text
    assert "# Model card: fake in Counting" in text
    assert "The mean length is 3.0." in text
    assert "| mean\\_length | whole study | 3.000 |" in text and "| count | failed | 1 | 10.0 % |" in text


def test_times_can_be_copied(scores):
    for text in (model_card(scores), data_sheet(scores)):
        moment = datetime.fromtimestamp(scores.run.started, UTC).isoformat(timespec="seconds")
        assert moment in text


def test_data_sheet_lists_every_column(scores):
    text = data_sheet(scores)
    for column in scores.last.columns:
        assert f"| {column} |" in text
    assert "| parity | factor | String | 2 |" in text and "| length | outcome |" in text


def test_card_of_published_scores_has_no_model(scores):
    scores = msgspec.structs.replace(
        scores, manifest=msgspec.structs.replace(scores.manifest, identities={}, notes=("columns swapped",))
    )
    assert "columns swapped" in model_card(scores)


def test_what_a_run_says_is_escaped_everywhere(scores):
    study = msgspec.structs.replace(
        scores.manifest.study, title=HOSTILE, summary=HOSTILE, source=HOSTILE, limits=(HOSTILE,), deviations=(HOSTILE,)
    )
    identity = Identity(adapter=HOSTILE, version=HOSTILE, model=HOSTILE, settings={HOSTILE: HOSTILE})
    manifest = msgspec.structs.replace(
        scores.manifest, study=study, identities={HOSTILE: identity}, notes=(HOSTILE,), data={HOSTILE: HOSTILE}
    )
    estimate = Estimate.from_flat(
        metric=HOSTILE, group={HOSTILE: HOSTILE}, value=1.0, missing={HOSTILE: 1}, unit=HOSTILE
    )
    scores = msgspec.structs.replace(
        scores,
        manifest=manifest,
        estimates={"m": [estimate]},
        headline=(),
        conclusions={"m": HOSTILE},
        methods=(HOSTILE,),
    )
    for text in (model_card(scores), data_sheet(scores)):
        assert "<script" not in text and "@team" not in text and "[x](" not in text
        assert "&lt;script&gt;" in text


@pytest.mark.parametrize("said", HOSTILE_ANSWERS)
def test_cards_of_hostile_answers_have_no_markup_of_theirs(scores, said):
    said = said[:300]
    study = msgspec.structs.replace(scores.manifest.study, title=said, summary=said, limits=(said,))
    manifest = msgspec.structs.replace(scores.manifest, study=study, notes=(said,), data={said: said})
    estimate = Estimate.from_flat(metric=said, group={said: said}, value=1.0, missing={said: 1}, unit=said)
    hostile = msgspec.structs.replace(
        scores, manifest=manifest, estimates={"m": [estimate]}, headline=(), conclusions={"m": said}, methods=(said,)
    )
    for text in (model_card(hostile), data_sheet(hostile)):
        page = MarkdownIt("commonmark").enable("table").render(text)
        assert not re.search("<(script|img|svg|a|iframe|base|meta|form|i|link|style|title)\\b", page)


def test_data_sheet_names_no_folder(scores):
    manifest = msgspec.structs.replace(scores.manifest, data={"/home/somebody/pairs.csv": "ab12"})
    text = data_sheet(msgspec.structs.replace(scores, manifest=manifest))
    assert "| pairs.csv | ab12 |" in text and "somebody" not in text


def test_card_is_written(scores, tmp_path):
    paths = write_card(scores, tmp_path / "new")
    assert [path.name for path in paths] == ["model-card.md", "data-sheet.md"]
    assert all(path.read_text().startswith("# ") for path in paths)


def test_every_heading_and_list_stands_alone(scores):
    for text in (model_card(scores), data_sheet(scores)):
        lines = text.splitlines()
        starts = [n for n, line in enumerate(lines) if n and (line.startswith("## ") or line.startswith("| --- |"))]
        assert starts and all(not lines[n - (1 if lines[n].startswith("#") else 2)] for n in starts)
