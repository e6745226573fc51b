"""Warnings of a run with very many estimates."""

from __future__ import annotations

import time
from types import SimpleNamespace

from prejudge.core.contracts.estimates import Caveat, Estimate
from prejudge.core.scoring.warnings import _uneven


def test_warnings_of_many_estimates_take_time_in_their_number_only():
    plain = [Estimate.from_flat(metric="m", group={"item": str(i)}, value=float(i % 7), n=9) for i in range(20_000)]
    whole = Estimate.from_flat(metric="m", group={}, value=3.0, p=0.01, n=9, caveats=(Caveat.UNEVEN_MISSING,))
    began = time.process_time()
    found = list(_uneven(SimpleNamespace(estimates={"metric": [*plain, whole]})))
    assert len(found) == 1 and "0.0%" in found[0].replace(" %", "%") and "p 0.010" in found[0]
    # Every estimate against every other is 400 million comparisons.
    assert time.process_time() - began < 10
