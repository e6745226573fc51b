"""Names shared by the probe and the metric of IndiCASA."""

from __future__ import annotations

STEREOTYPE, ANTI = KINDS = ("stereotype", "anti-stereotype")
"""Classes of known texts."""
COMPLETION, VERDICT = "completion", "verdict"
"""Further kinds of rows: a completion, or a published class instead of it."""
LOST = ("refused", "filtered", "unreadable", "failed")
"""Statuses of completions without a sentence, and the columns that count them."""
REFUSED_FIRST = "refused_first"
"""How many completions were refused when they were asked for the first time."""
ENCODER = ("encoder_ss", "encoder_sa", "encoder_as", "encoder_aa")
"""Held-out sentences by class: true, then predicted by the encoder (s: stereotype, a: anti-stereotype)."""
SEVERAL = "encoder_several"
"""What they were compared with: one text of each type (`pair`), or which cosine was used with several."""
PAIR = "pair"
