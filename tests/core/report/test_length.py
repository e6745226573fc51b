"""Running text of the report of a run: short enough to be read, whatever the study."""

from __future__ import annotations

import html
import re

import pytest

import prejudge

FEW = {
    "bistereo-pairs": {"per_cell": 2, "axes": ["height"], "trisentbias.resamples": 99},
    "bistereo-nli": {"per_cell": 1, "bistereo-nli.resamples": 99},
    "bistereo-tuples": {"bistereo-tuples.resamples": 99},
    "subtle-sai": {"per_cell": 1, "subtle.resamples": 99},
    "subtle-asa": {"per_cell": 1, "subtle.resamples": 99},
    "dora-t2t": {"per_dimension": 1, "samples": 1, "dimensions": ["age"], "letters": "ab"},
    "indicasa": {"samples": 1, "indicasa.resamples": 99},
    "bistereo-tuples-draft": {"dimensions": ["height"]},
    "bistereo-nli-prompts": {"data": "pairs.csv", "bistereo-nli-prompts.resamples": 99},
    "dora-t2i": {"limit": 9, "samples": 1},
    "dora-i2t": {"limit": 9, "samples": 1},
}
PAIRS = """premise,hypothesis,label
A man plays a guitar.,A man makes music.,entailment
A man plays a guitar.,A man sleeps.,contradiction
Two dogs run in a field.,Animals are outside.,entailment
Two dogs run in a field.,The dogs chase a rabbit.,neutral
"""
"""Studies that a simulated model is asked for in a few seconds."""
ROLES = {
    "indicasa": {"encoder": "simulated-biased"},
    "dora-t2i": {"describer": "simulated-biased", "sentiment": "simulated-biased"},
    "dora-i2t": {"drawer": "simulated-biased"},
}
MOST_WORDS = 3_000
NOT_READ = (
    r"<(style|script|table|svg)\b.*?</\1>",
    r'<details class="example".*?</details>',
    r'<dl class="nested".*?</dl>',
)
"""Tables, examples and the record of provenance are looked up, not read."""


def running_text(page):
    """Return the words of a page that are read from top to bottom."""
    for part in NOT_READ:
        page = re.sub(part, " ", page, flags=re.DOTALL)
    return html.unescape(re.sub("<[^>]+>", " ", page)).split()


@pytest.mark.parametrize("study", FEW)
def test_report_is_short_and_begins_with_the_answer(study, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pairs.csv").write_text(PAIRS)
    settings = prejudge.Settings(store=str(tmp_path / "s.db"), runs=str(tmp_path / "runs"))
    models = {"subject": "simulated-biased"} | ROLES.get(study, {})
    page = prejudge.run(study, models, settings, **FEW[study]).report.read_text("utf-8")
    words = running_text(page)
    assert len(words) < MOST_WORDS
    assert page.index('class="reply') < page.index('class="facts"') < page.index('id="provenance"')
    first = page[page.index('id="answer"') : page.index("</section>")]
    assert len(re.findall(r'<th scope="row"', first)) <= 6
