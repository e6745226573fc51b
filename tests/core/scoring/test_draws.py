"""One draw per prompt: which rows stay."""

from __future__ import annotations

import polars as pl

from prejudge.core.scoring.draws import one_draw


class Named:
    def __init__(self, name, *factors):
        self.name, self.factors = name, factors


FIRST = Named("first", "item", "cell", "sample")


def rows(*cells, **more):
    """Return rows of (item, cell, sample, prompt, status)."""
    names = ("item", "cell", "sample", "prompt_key", "status")
    frame = pl.DataFrame([dict(zip(names, one, strict=True)) for one in cells])
    keys = [f"{one[3]}/{place}".encode() for place, one in enumerate(cells)]
    return frame.with_columns(key=pl.Series(keys, dtype=pl.Binary), **more)


def kept(frame, stage=FIRST):
    (found,) = one_draw({stage.name: frame}, [stage], [stage.name]).values()
    return [(row["item"], row["cell"], row["sample"]) for row in found.iter_rows(named=True)]


def test_first_readable_draw_of_each_prompt_stays():
    frame = rows(*((item, "a", sample, f"p{item}", "ok") for item in range(3) for sample in range(4)))
    assert kept(frame) == [(0, "a", 0), (1, "a", 0), (2, "a", 0)]
    gone = (pl.col("item") == 1) & (pl.col("sample") < 2)
    lost = frame.with_columns(status=pl.when(gone).then(pl.lit("failed")).otherwise("status"))
    assert kept(lost) == [(0, "a", 0), (1, "a", 2), (2, "a", 0)]
    none = frame.with_columns(status=pl.lit("refused"))
    assert kept(none) == kept(frame), "a prompt without a readable answer stays, as missing"


def test_prompt_that_two_cells_ask_stays_in_both():
    cells = [(item, "a", sample, f"p{item}", "ok") for item in range(4) for sample in range(3)]
    cells += [(9, "b", sample, "p0", "ok") for sample in range(3)]
    assert kept(rows(*cells)) == [*((item, "a", 0) for item in range(4)), (9, "b", 0)]


def test_samples_that_no_factor_numbers_are_one():
    stage = Named("first", "item")
    frame = rows(*((item, "a", 0, f"p{item}", "ok") for item in range(3) for _ in range(4)))
    assert len(kept(frame, stage)) == 3


def test_stages_that_do_not_repeat_are_left_alone():
    frame = rows(*((0, "a", sample, "p", "ok") for sample in range(4)))
    assert one_draw({"first": frame}, [FIRST], [])["first"].equals(frame)
    single = frame.drop("prompt_key")
    assert one_draw({"first": single}, [FIRST], ["first"])["first"].equals(single)


def test_rows_of_a_later_stage_stay_with_their_draw():
    first = rows(*((item, "a", sample, f"p{item}", "ok") for item in range(2) for sample in range(3)))
    second = Named("second", "item", "sample", "label")
    later = pl.DataFrame(
        [{"item": item, "sample": s, "label": one} for item in range(2) for s in range(3) for one in "xy"]
    ).with_columns(pl.col("item").cast(pl.Int32))
    found = one_draw({"first": first, "second": later}, [FIRST, second], ["first"])["second"]
    assert found.rows() == [(0, 0, "x"), (0, 0, "y"), (1, 0, "x"), (1, 0, "y")]
    empty = one_draw({"first": first, "second": later[:0]}, [FIRST, second], ["first"])
    assert empty["second"].is_empty() and empty["first"].height == 2
