"""Mentions of a group in the reasoning: counted again by hand, and from an endpoint to the report."""

from __future__ import annotations

import json
import re
from importlib.util import find_spec

import polars as pl
import pytest

import prejudge
from prejudge.core.contracts.errors import UsageError
from prejudge.metrics.general.mentions import MentionOptions, ReasoningMentions, pattern_of
from prejudge.testing import ChaosServer, raises_code
from prejudge.testing.chaos.tiny import chat

ROWS = [
    # trial, group, reasoning, status, outcome, prompt
    ("a1", "women", "She is a WOMAN, so ...", "ok", 1, "p1"),
    ("a2", "women", "A woman.", "ok", 1, "p1"),
    ("a3", "women", "Nothing said of her.", "ok", 0, "p2"),
    ("a4", "women", None, "ok", 1, "p3"),
    ("a5", "women", "womanly is another word", "ok", 0, "p4"),
    ("b1", "men", "He is a man.", "ok", 0, "p5"),
    ("b2", "men", "A woman? No.", "ok", 1, "p6"),
    ("b3", "men", "old  men", "ok", 1, "p7"),
    ("b4", "men", "a man", "refused", None, "p8"),
    ("b5", "men", None, "failed", None, "p9"),
]
SCHEMA = ("trial", "group", "reasoning", "status", "score", "prompt_key")
TERMS = {"women": ("woman", "women"), "men": ("man", "men", "old men")}
MENTIONED = {"a1": True, "a2": True, "a3": False, "a5": False, "b1": True, "b2": False, "b3": True}
"""By hand: of the answers that can be read and have reasoning."""


@pytest.fixture
def frame() -> pl.DataFrame:
    return pl.DataFrame(ROWS, schema=SCHEMA, orient="row").with_columns(reason=pl.lit(None, dtype=pl.String))


def estimates(frame: pl.DataFrame, **options: object) -> dict[tuple[str, str | None], prejudge.Estimate]:
    found = ReasoningMentions().compute(frame, MentionOptions(group="group", terms=TERMS, **options))
    return {(e.metric, e.group.get("group")): e for e in found}


def test_shares_by_group_are_those_counted_by_hand(frame):
    found = estimates(frame)
    for level, prefix in ((None, ""), ("women", "a"), ("men", "b")):
        own = [hit for trial, hit in MENTIONED.items() if trial.startswith(prefix)]
        e = found["reasoning_mentions", level]
        assert (e.value, e.n) == (pytest.approx(100 * sum(own) / len(own)), len(own))


def test_missing_reasoning_is_missing_and_not_a_no(frame):
    women, men = (estimates(frame)["reasoning_mentions", level] for level in ("women", "men"))
    assert dict(women.missing.counts) == {"no reasoning": 1}
    assert dict(men.missing.counts) == {"refused": 1, "failed": 1}
    silent = estimates(frame.with_columns(pl.lit(None, dtype=pl.String).alias("reasoning")))
    assert silent["reasoning_mentions", None].value is None and silent["reasoning_mentions", None].n == 0
    assert estimates(frame.drop("reasoning"))["reasoning_mentions", None].value is None


def test_difference_and_outcomes_are_those_of_the_rows(frame):
    found = estimates(frame, first="women", second="men", outcome="score")
    assert found["mentions_difference", None].value == pytest.approx(100 * (2 / 4 - 2 / 3))
    assert ("mentions_difference", "women") not in found
    scores = {row[0]: row[4] for row in ROWS}
    of = {hit: [scores[trial] for trial, own in MENTIONED.items() if own is hit] for hit in (True, False)}
    means = {hit: sum(values) / len(values) for hit, values in of.items()}
    assert found["outcome_with_mention", None].value == pytest.approx(means[True])
    assert found["outcome_without_mention", None].value == pytest.approx(means[False])
    assert found["outcome_by_mention", None].value == pytest.approx(means[True] - means[False])


def test_samples_of_one_prompt_are_one_cluster():
    """Forty answers to each of ten prompts, alike within: the interval is that of ten, not of four hundred."""
    rows = [
        (f"t{prompt}-{n}", "women", "a woman" if prompt % 2 else "her", "ok", 0, f"p{prompt}")
        for prompt in range(10)
        for n in range(40)
    ]
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row").with_columns(reason=pl.lit(None, dtype=pl.String))
    e = estimates(frame)["reasoning_mentions", None]
    assert e.value == 50 and e.high - e.low > 40
    alone = estimates(frame.with_columns(prompt_key=pl.col("trial")))["reasoning_mentions", None]
    assert alone.high - alone.low < 15


@pytest.mark.parametrize(
    ("term", "text", "found"),
    [
        ("man", "A woman.", False),
        ("man", "(Man)", True),
        ("C++", "in C++, too", True),
        ("old men", "old\nmen", True),
        ("a.b", "axb", False),
        ("\u092e\u0939\u093f\u0932\u093e", "\u092f\u0939 \u092e\u0939\u093f\u0932\u093e \u0939\u0948", True),
    ],
)
def test_whole_words_in_any_case_are_mentions(term, text, found):
    assert pl.Series([text]).str.contains(pattern_of([term])).to_list() == [found]


def test_half_a_difference_is_refused():
    with raises_code(UsageError, "options.conflict"):
        MentionOptions(group="group", first="women")


STUDY = """
probe = "subtle"
[options]
direction = "sai"
per_cell = 2
[metrics.subtle]
[metrics.reasoning-mentions]
group = "pronoun"
terms = { masculine = ["he"], feminine = ["she"] }
first = "masculine"
second = "feminine"
"""


@pytest.mark.skipif(find_spec("aiohttp") is None, reason="the extra 'openai' is not installed")
@pytest.mark.usefixtures("no_figures")
def test_study_with_the_metric_runs_and_others_have_no_such_column(tmp_path):
    def think(path: str, body: dict) -> dict:
        asked = body["messages"][-1]["content"]
        said = re.findall(r"Option \d: (.*)", asked)
        words = "so he is meant" if re.search(r"\b(he|male|man)\b", asked) else "someone"
        return chat(f"<think>{words}</think>{said[0] if said else 'x'}", "stop") | {
            "usage": {"prompt_tokens": 9, "completion_tokens": 9}
        }

    (tmp_path / "mine.toml").write_text(STUDY)
    with ChaosServer(think) as server:
        entry = json.dumps(server.url)
        (tmp_path / "r.toml").write_text(
            f'[models.m]\nadapter = "openai"\nsettings = {{ model = "m", base_url = {entry}, api_key_env = "" }}\n'
        )
        settings = prejudge.Settings(
            store=str(tmp_path / "s.db"), runs=str(tmp_path / "runs"), registry=str(tmp_path / "r.toml")
        )
        run = prejudge.run(str(tmp_path / "mine.toml"), "m", settings)
        plain = prejudge.run("subtle-sai", "m", settings, per_cell=2)
    assert "reasoning" in run.observations.columns and "reasoning" not in plain.observations.columns
    assert run.observations.drop("reasoning").equals(plain.observations)
    seen = run.observations.filter(pl.col("status") == "ok")
    by_hand = seen.filter(pl.col("pronoun") == "masculine")["reasoning"].str.contains(r"\bhe\b").mean() * 100
    rows = run.estimates.filter(pl.col("metric") == "reasoning_mentions", pl.col("pronoun") == "masculine")
    assert rows["value"].item() == pytest.approx(by_hand)
    assert prejudge.score(run.name, settings).estimates.equals(run.estimates)


def test_metric_on_a_study_without_words_is_refused_before_anything_is_asked(tmp_path):
    (tmp_path / "mine.toml").write_text(
        'probe = "bistereo-pairs"\n[metrics.reasoning-mentions]\ngroup = "gender"\n[options]\nper_cell = 2\n'
    )
    settings = prejudge.Settings(store=str(tmp_path / "s.db"), runs=str(tmp_path / "runs"))
    with raises_code(UsageError, "study.metric-columns", "reasoning"):
        prejudge.run(str(tmp_path / "mine.toml"), "simulated-fair", settings)
