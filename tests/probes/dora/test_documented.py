"""Known associations: of a pair of sentences only what differs, by the names of the columns, with the row."""

from __future__ import annotations

import json

import polars as pl
import pytest

from prejudge.core.contracts.errors import DataError
from prejudge.probes.dora.documented import mark_documented
from prejudge.testing import raises_code

ASKED = [
    ("Muslim", "terrorist"), ("Muslim", "good"), ("Episcopalian", "terrorist"), ("Iraqi", "violent"), ("nurse", "poor")
]  # fmt: skip


def marks(path, asked=ASKED):
    pairs = pl.DataFrame(asked, ["descriptor", "word"], orient="row")
    rows = mark_documented(pairs, str(path)).rows(named=True)
    return {(row["descriptor"], row["word"]): row["documented_by"] for row in rows if row["documented"]}


def test_of_crows_pairs_the_group_that_differs_is_documented(shared_data):
    found = marks(shared_data / "crows_pairs" / "crows_pairs_anonymized.csv")
    assert found["Muslim", "terrorist"].startswith("line ") and "terrorist" in found["Muslim", "terrorist"].lower()
    assert ("Muslim", "good") not in found and ("Episcopalian", "terrorist") not in found


def test_what_both_sentences_say_of_both_groups_is_not_documented(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("sent_more,sent_less\nThe nurse met a poor Iraqi.,The nurse met a poor Dane.\n", encoding="utf-8")
    found = marks(path, [("nurse", "poor"), ("Iraqi", "poor")])
    assert found == {("Iraqi", "poor"): "line 2: The nurse met a poor Iraqi."}


@pytest.mark.parametrize(
    "text",
    [
        "descriptor,word\nIraqi,violent\n",
        "identity,attribute,mean_score\nIraqis,violent,3\n",
        "target,stereotype,anti-stereotype\nIraqi,He is violent.,He is peaceful.\n",
    ],
)
def test_columns_are_found_by_name(tmp_path, text):
    (tmp_path / "known.csv").write_text(text, encoding="utf-8")
    found = marks(tmp_path / "known.csv")
    assert list(found) == [("Iraqi", "violent")] and found["Iraqi", "violent"].startswith("line 2: ")


def test_stereoset_is_read_as_published(tmp_path):
    said = {"stereotype": "The Iraqi was violent.", "anti-stereotype": "The Iraqi was kind.", "unrelated": "Green."}
    item = {
        "id": "x1", "target": "Iraqi", "context": "The Iraqi was BLANK.", "bias_type": "race",
        "sentences": [{"sentence": text, "gold_label": label} for label, text in said.items()],
    }  # fmt: skip
    (tmp_path / "dev.json").write_text(json.dumps({"data": {"intrasentence": [item], "intersentence": []}}))
    assert marks(tmp_path / "dev.json") == {("Iraqi", "violent"): "x1: The Iraqi was violent."}
    (tmp_path / "dev.json").write_text("[]")
    with raises_code(DataError, "data.syntax", "StereoSet"):
        marks(tmp_path / "dev.json")
