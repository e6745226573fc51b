"""A metric: the mean length of readable answers, by group."""

import polars as pl

import prejudge


class Length(prejudge.Metric):
    """Mean length."""

    needs = frozenset({"group", "length", "status"})

    def compute(self, observations, options):
        """Return one estimate per group."""
        return [_estimate(group, part) for (group,), part in observations.sort("group").group_by("group")]


def _estimate(group, part):
    ok = part.filter(pl.col("status") == "ok")
    missing = prejudge.Missing(dict(part.filter(pl.col("status") != "ok").group_by("status").len().iter_rows()))
    return prejudge.Estimate(
        metric="length", group={"group": group}, value=ok["length"].mean(), n=ok.height, missing=missing
    )
