"""Data of textbooks, small enough to stand here."""

from __future__ import annotations

import polars as pl

SPRAYS = {
    "A": (10, 7, 20, 14, 14, 12, 10, 23, 17, 20, 14, 13),
    "B": (11, 17, 21, 11, 16, 14, 17, 17, 19, 21, 7, 13),
    "C": (0, 1, 7, 2, 3, 1, 2, 1, 3, 0, 1, 4),
    "D": (3, 5, 12, 6, 4, 3, 5, 5, 5, 5, 2, 4),
    "E": (3, 5, 3, 5, 3, 6, 1, 1, 3, 2, 6, 4),
    "F": (11, 9, 15, 22, 15, 16, 13, 10, 26, 26, 24, 13),
}
"""Insects on plots that were treated with six sprays (Beall 1942)."""
MAIZE = (
    *((23.5, 17.375), (12.0, 20.375), (21.0, 20.0), (22.0, 20.0), (19.125, 18.375), (21.5, 18.625), (22.125, 18.625)),
    *((20.375, 15.25), (18.25, 16.5), (21.625, 18.0), (23.25, 16.25), (21.0, 18.0), (22.125, 12.75), (23.0, 15.5)),
    (12.0, 18.0),
)
"""Heights of crossed and self-fertilised plants of fifteen pairs (Darwin 1876)."""
SLEEP = (
    (0.7, 1.9),
    (-1.6, 0.8),
    (-0.2, 1.1),
    (-1.2, 0.1),
    (-0.1, -0.1),
    (3.4, 4.4),
    (3.7, 5.5),
    (0.8, 1.6),
    (0.0, 4.6),
)
"""Hours of sleep that two drugs gave to nine patients (Student 1908, without the tenth)."""
WOMEN = ((58, 115), (59, 117), (60, 120), (61, 123), (62, 126), (63, 129), (64, 132), (65, 135), (66, 139), (67, 142))
"""Height in inches and weight in pounds (McNeil 1977)."""
HAIR = ((68, 119, 26, 7), (20, 84, 17, 94), (15, 54, 14, 10), (5, 29, 14, 16))
"""Eye colours by hair colours of students (Snee 1974)."""
SURVIVORS = ((203, 122), (118, 167), (178, 528), (212, 673))
"""Saved and lost by class, on the Titanic (Dawson 1995)."""


def sprays() -> pl.DataFrame:
    """Return the plots as answers, of which some are missing: a spray has twelve plots, a place has six."""
    rows = [(spray, f"{place:02}", float(count)) for spray, own in SPRAYS.items() for place, count in enumerate(own)]
    frame = pl.DataFrame(rows, schema=["spray", "place", "count"], orient="row").with_row_index("number")
    lost = pl.col("number") % 17 == 5
    return frame.select(
        pl.format("{}/{}", "spray", "place").alias("trial"),
        "spray",
        "place",
        pl.when(pl.col("number") % 2 == 0).then(pl.lit("even")).otherwise(pl.lit("odd")).alias("half"),
        pl.when(~lost).then(pl.col("count")).alias("count"),
        pl.when(~lost).then(pl.col("count") > 9).alias("many"),
        pl.when(~lost).then((pl.col("count") > 4) & (pl.col("count") < 10)).alias("between"),
        pl.col("spray").is_in(["A", "C", "E"]).alias("first"),
        pl.when(lost).then(pl.lit("refused")).otherwise(pl.lit("ok")).alias("status"),
    )


def pairs(data: tuple[tuple[float, float], ...], of: int) -> pl.DataFrame:
    """Return pairs as rows, so many in a block."""
    rows = [(f"{place:02}", f"block {place // of}", float(a), float(b), "ok") for place, (a, b) in enumerate(data)]
    return pl.DataFrame(rows, schema=["trial", "block", "one", "two", "status"], orient="row")
