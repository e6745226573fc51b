"""Types of arrays, and division in which undefined values stay undefined."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def ratio(above: Array, below: Array) -> Array:
    """Divide; NaN where the divisor is not above 0."""
    empty = np.full(np.broadcast_shapes(np.shape(above), np.shape(below)), np.nan)
    quotient: Array = np.divide(above, below, out=empty, where=np.asarray(below) > 0)
    return quotient
