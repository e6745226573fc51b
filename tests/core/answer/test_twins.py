"""The pair beside a finding: chosen by a rule, from twins alone, and recomputed here by loops."""

from __future__ import annotations

from collections import defaultdict
from statistics import mean

import pytest
from msgspec.structs import replace

import prejudge
from prejudge.core.answer.twins import twin_pair

STUDIES = {
    "bistereo-pairs": ({"per_cell": 4, "axes": ["height"]}, "side", ("desirable", "undesirable")),
    "subtle-sai": ({"per_cell": 6}, "given", ("negative", "positive")),
}


@pytest.fixture(scope="module", params=STUDIES)
def chosen(request, tmp_path_factory):
    options, factor, levels = STUDIES[request.param]
    store = tmp_path_factory.mktemp("twins") / "store.db"
    run = prejudge.run(request.param, "simulated-biased", settings=prejudge.Settings(store=str(store)), **options)
    return run, twin_pair(run.scores), factor, levels


def outcome(row):
    return row["log_probability"] if "log_probability" in row else float(row["chosen"] == "positive")


def sets_of(rows, factor):
    """Return the answers by what twins have in common, written down here by hand for each study."""
    if factor == "side":
        names = ("template", "attribute", "gender", "noun", "descriptors")
        rows = [row for row in rows if row["sentiment"] == "positive"]
    else:
        names = ("order", "template", "pronoun", "domain")
    sets = defaultdict(dict)
    for row in rows:
        sets[tuple(row[name] for name in names)].setdefault(row[factor], row)
    return sets


def test_pair_is_the_one_nearest_to_the_mean_of_all(chosen):
    run, pair, factor, (left, right) = chosen
    both = [own for own in sets_of(run.observations.to_dicts(), factor).values() if {left, right} <= own.keys()]
    apart = [(outcome(own[left]) - outcome(own[right]), own[left]["trial"], own[right]["trial"]) for own in both]
    centre = mean(difference for difference, *_ in apart)
    differing = [one for one in apart if one[0]]
    side = [one for one in differing if one[0] * centre > 0]
    nearest = min(side or differing, key=lambda one: (round(abs(one[0] - centre), 9), one[1]))
    assert (pair.factor, pair.levels) == (factor, (left, right))
    assert (pair.pairs, pair.differ) == (len(both), len(differing)) and pair.differ > 0
    assert pair.trials == nearest[1:]


def test_keys_are_those_of_the_trials(chosen):
    run, pair, *_ = chosen
    keys = dict(run.observations.select("trial", "key").iter_rows())
    assert tuple(keys[trial] for trial in pair.trials) == pair.keys


def test_no_pair_without_a_design_or_a_difference(chosen):
    run, _, factor, levels = chosen
    scores = run.scores
    bare = replace(scores, manifest=replace(scores.manifest, design=None))
    assert twin_pair(bare) is None
    for level in levels:  # one side was never answered
        stage = scores.stages[-1].name
        frame = scores.lazy(stage).collect()
        frames = type(scores.frames)({stage: frame.filter(frame[factor] == level)})
        assert twin_pair(replace(scores, observations=frames)) is None


def test_page_hides_the_pair_until_it_is_opened_and_marks_what_differs(chosen):
    run, pair, *_ = chosen
    page = run.report.read_text(encoding="utf-8")
    start = page.index('<details class="twins">')
    block = page[start : page.index("</details>", start)]
    assert f"{pair.differ:,} of {pair.pairs:,} such pairs are answered differently" in block
    assert block.count("<mark>") >= 2 and all(level in block for level in pair.levels)
