"""What a study holds, beside what a run of a part of it asked."""

from __future__ import annotations

import polars as pl
import pytest

from prejudge.core.catalogue.study import Catalogue
from prejudge.core.scoring.held import grown, levels_held

HELD = pl.DataFrame(
    [
        {"axis": axis, "tone": tone, "template": f"{axis} {tone} {i}", "word": f"{tone} {i % 3}"}
        for axis in ("height", "skin")
        for tone in ("praise", "blame", "plain")
        for i in range(10)
    ]
)
ASKED = HELD.filter(pl.col("template").str.ends_with("0") | pl.col("template").str.ends_with("1"))


def test_levels_are_those_of_the_group_and_of_the_kind_that_is_compared():
    judged = ASKED.filter((pl.col("axis") == "skin") & (pl.col("tone") != "plain"))
    assert levels_held(HELD, ASKED, judged["template"], {"axis": "skin"}) == 20
    assert levels_held(HELD, ASKED, judged["word"], {"axis": "skin"}) == 6
    assert levels_held(HELD, ASKED, ASKED["template"], {}) == 60
    assert levels_held(HELD, ASKED, pl.Series(["unit 1"]), {}) is None
    assert levels_held(None, ASKED, ASKED["template"], {}) is None


@pytest.mark.parametrize("shared", [True, False])
def test_larger_design_has_as_many_levels_on_each_side(shared):
    units = pl.DataFrame(
        [
            {"metric": "m", "unit": f"{s} {r} {c}", "cluster": f"c{c}", "row": f"r{r}" if shared else f"{s} {r}"}
            | {"sign": s, "value": 1.0, "status": "ok", "ways": "template x word"}
            for s in (1, -1)
            for r in range(4)
            for c in range(3)
            if (r + c) % 2
        ]
    )
    larger = grown(units, {"row": 20 if shared else 40, "cluster": 9})
    assert larger.schema == units.schema and larger["unit"].is_unique().all()
    for side in larger.partition_by("sign"):
        assert (side["row"].n_unique(), side["cluster"].n_unique()) == (20, 9)
        assert side.height == pytest.approx(20 * 9 / 2, abs=1)


def test_whole_study_has_no_limit():
    catalogue = Catalogue.load()
    whole = catalogue.study("bistereo-nli", {}, {})
    assert catalogue.whole(whole) == whole
    for part in ({"per_cell": 2}, {"limit": 20}, {"quick": True}):
        assert catalogue.whole(catalogue.study("bistereo-nli", {}, part)) == whole
