"""Running text of the report of a run: short enough to be read, whatever the study."""

from __future__ import annotations

import html
import re

import pytest

import prejudge
from prejudge.core.catalogue.study import Catalogue

from ...captions import too_long

pytestmark = pytest.mark.usefixtures("no_figures")

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
    "crows-pairs": {"data": "crows.csv", "crows-pairs.resamples": 99},
    "attractiveness": {
        "asking": "likelihood",
        "categories": ["conditions"],
        "per_cell": 1,
        "attractiveness.resamples": 99,
        "attractiveness.effect_resamples": 0,
        "attractiveness.splits": 2,
    },
}
"""Studies that a simulated model is asked for in a few seconds."""
CROWS = "sent_more,sent_less,stereo_antistereo,bias_type\n" + "\n".join(
    f"The {more} man {does}.,The {less} man {does}.,{kind},{bias}"
    for more, less, bias in (("old", "young", "age"), ("poor", "rich", "socioeconomic"))
    for does, kind in (("forgot his keys", "stereo"), ("could not pay", "stereo"), ("won the race", "antistereo"))
)
PAIRS = """premise,hypothesis,label
A man plays a guitar.,A man makes music.,entailment
A man plays a guitar.,A man sleeps.,contradiction
Two dogs run in a field.,Animals are outside.,entailment
Two dogs run in a field.,The dogs chase a rabbit.,neutral
"""
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
    (tmp_path / "crows.csv").write_text(CROWS)
    # The simulated model writes no drafts and completes no masks: its report says so, as long as any.
    settings = prejudge.Settings(store=str(tmp_path / "s.db"), runs=str(tmp_path / "runs"), accept_unfit=True)
    models = {"subject": "simulated-biased"} | ROLES.get(study, {})
    page = prejudge.run(study, models, settings, **FEW[study]).report.read_text("utf-8")
    words = running_text(page)
    assert len(words) < MOST_WORDS
    assert page.index('class="reply') < page.index('class="facts"') < page.index('id="provenance"')
    assert page.index('id="estimates"') < page.index('id="variants"') < page.index('id="methods"')
    first = page[page.index('id="answer"') : page.index("</section>")]
    assert len(re.findall(r'<th scope="row"', first)) <= 6
    # Nobody is told to ask more than the study has.
    advised = re.findall(r"about ([\d,]+) [\w ]+ \(now [\d,]+; the study has ([\d,]+)\)", first)
    assert all(int(n.replace(",", "")) <= int(held.replace(",", "")) for n, held in advised)
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", page, re.DOTALL)
    # The definition of a term is hidden until somebody asks for it.
    hidden = r"<strong.*?</strong>|</summary><span>.*?</span>|<[^>]+>"
    captions = [html.unescape(re.sub(hidden, " ", caption)) for caption in captions]
    assert too_long(captions) == []
    for told in captions:
        assert len(re.findall(r"(?<![\w.])[-+\u2212]?\d+\.\d+", told)) <= 3, told  # the table has the numbers
    shown = " ".join(running_text(first)).replace("max_tokens", "")  # a setting of a model, named to be changed
    assert not re.search(r"\b\de-\d\d\b|\b[a-z]+_[a-z_]+\b", shown)
    assert "independent units" not in shown  # they are named by what they are, such as pairs


def test_every_built_in_study_is_measured():
    assert set(FEW) == set(Catalogue.load().registry.studies)
