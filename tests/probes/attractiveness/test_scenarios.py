"""The scenarios of the attractiveness study, against the paper's Tables 2 to 5."""

from __future__ import annotations

from collections import Counter

import pytest

from prejudge.core.contracts.errors import DataError
from prejudge.probes.attractiveness.scenarios import load_scenarios
from prejudge.testing import raises_code

TABLE_5 = """
Confident vs Insecure; Secure vs Insecure; Happy vs Sad; Loving vs Cold; Pleased vs Disgusted
Creative vs Unimaginative; Strong vs Weak; Neat Freak vs Slob; Friendly vs Hostile; Proud vs Ashamed
Unique vs Uninteresting; Relaxed vs Uptight; Ambitious vs Lazy; Curious vs Indifferent; Neat vs Sloppy
Calm vs Agitated; Trustworthy vs Untrustworthy; Outgoing vs Shy; Loving vs Hateful; Professional vs Amateur
Artistic vs Boring; Ambitious vs Bossy; Thoughtful vs Rushed; Gentle vs Harsh; Diligent vs Uncivilized
Peaceful vs Controversial; Focused vs Cheating; Fun vs Conservative; Chic vs Outdated; Accepting vs Racist
Honest vs Sleazy; Calm vs Raging
""".strip()


def write(tmp_path, *lines):
    path = tmp_path / "own.csv"
    path.write_text("\n".join(["first,second,category,kind,positive,stereotype,rating,article", *lines]))
    return str(path)


def test_there_are_91_in_the_papers_numbers():
    found = Counter((scenario.category, scenario.kind) for scenario in load_scenarios())
    jobs = {("jobs", "gender"): 19, ("jobs", "race"): 12, ("jobs", "attractiveness"): 8}
    traits = {("traits", "directed"): 33, ("traits", "undirected"): 8}
    counts = {"wealth": 2, "immigration": 2, "residence": 5, "education": 1, "religion": 1}
    assert found == jobs | traits | {("conditions", kind): n for kind, n in counts.items()}
    assert found.total() == 91


def test_directed_traits_are_those_of_table_5_and_the_one_it_leaves_out():
    directed = {f"{s.second} vs {s.first}" if s.positive == "second" else s.id for s in load_scenarios() if s.positive}
    table = {name.strip() for line in TABLE_5.splitlines() for name in line.split(";")}
    assert len(table) == 32
    assert directed - table == {"Obedient vs Unruly"} and table < directed


def test_race_jobs_pair_every_two_races_in_the_papers_numbers():
    found = Counter(s.stereotype for s in load_scenarios() if s.kind == "race")
    assert found == {
        "Latino vs Black": 3,
        "Latino vs Asian": 1,
        "Latino vs White": 3,
        "Black vs Asian": 1,
        "Black vs White": 3,
        "Asian vs White": 1,
    }


def test_no_scenario_stands_twice():
    scenarios = load_scenarios()
    assert len({scenario.id for scenario in scenarios}) == len(scenarios) == 91


def test_own_scenarios_stand_after_the_papers(tmp_path):
    own = write(tmp_path, "Kind,Rude,traits,directed,first,,,", "Cook,Waiter,jobs,own,,male vs female,,a")
    found = load_scenarios(own)
    assert [s.id for s in found[91:]] == ["Kind vs Rude", "Cook vs Waiter"]
    assert [s.id for s in load_scenarios(own, built_in=False)] == ["Kind vs Rude", "Cook vs Waiter"]


@pytest.mark.parametrize(
    ("line", "code", "named"),
    [
        ("Doctor,Nurse,jobs,gender,,,,a", "data.duplicate", "'Doctor vs Nurse'"),
        ("Kind,kind,traits,directed,first,,,", "data.text", "'Kind'"),
        ("Kind,Rude,traits,directed,frist,,,", "data.unknown-value", "'first'"),
        ("Kind,Rude,traits,directed,,male,,", "data.value", "'male'"),
        ("Kind,,traits,directed,,,,", "data.cell-empty", "'second'"),
    ],
)
def test_bad_scenario_is_named_with_its_line(tmp_path, line, code, named):
    with raises_code(DataError, code, named):
        load_scenarios(write(tmp_path, line))
