"""McNemar's exact test, against statsmodels."""

from __future__ import annotations

import pytest

from prejudge.core.statistics.matched import mcnemar_p


@pytest.mark.parametrize(("b", "c"), [(10, 3), (0, 4), (7, 7), (1, 0)])
def test_mcnemar_exact_agrees_with_statsmodels(b, c):
    tables = pytest.importorskip("statsmodels.stats.contingency_tables")
    assert mcnemar_p(b, c) == pytest.approx(tables.mcnemar([[5, b], [c, 9]], exact=True).pvalue)


def test_mcnemar_without_change_is_undefined():
    assert mcnemar_p(0, 0) is None
