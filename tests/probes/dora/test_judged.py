"""What the judge is asked about is what the metric counts, whichever method chooses; what was not drawn is missing."""

from __future__ import annotations

import pytest

from prejudge.core.engine.observations import stack
from prejudge.metrics.dora.counts import gather
from prejudge.metrics.dora.metric import DoraAssociations, DoraAssociationsOptions
from prejudge.probes.dora.associations import PAIR

from .models import run_study

PEOPLE = ("nurse", "farmer", "baker", "pilot")
WORDS = ("lamp", "table", "window", "garden", "river", "mountain", "bottle")
MODELS = dict.fromkeys(("subject", "describer", "sentiment", "judge"), "scripted")


@pytest.fixture
def described(store, tmp_path):
    """Return a function that runs dora-t2i with options: every image has its number in its bytes, some are lost."""
    lines = [f"work,{name},{name}s" for name in PEOPLE] + ["age,nurse,nurses"]
    (tmp_path / "people.csv").write_text("\n".join(["dimension,singular,plural", *lines]), encoding="utf-8")

    def image(request):
        if request.seed % 5 == 0:
            return None
        whom = next(place for place, name in enumerate(PEOPLE) if name in request.prompt)
        return bytes([whom]) + request.seed.to_bytes(4, "big") if request.seed % 5 > 1 else bytes([whom])

    def words(text, image, sample):
        if text.startswith("How problematic"):
            return "3"
        data = store.blob(image)
        own, number = WORDS[data[0]], int.from_bytes(data[1:], "big")
        # Twice in one text, and in three texts about one image: occurrences are not documents.
        return f"The {own} and the {own}." if number % 3 else f"A {WORDS[number % 7]}."

    def run(**options):
        given = {"data": str(tmp_path / "people.csv"), "samples": 12, "variants": [1, 2, 3], "judgements": 1, **options}
        return run_study(store, "dora-t2i", MODELS, given, words=words, image=image)

    return run


@pytest.mark.parametrize("method", ["tf-idf", "fisher", "log-odds", "pmi"])
def test_the_judge_is_asked_about_the_associations_that_count(described, method):
    # A level at which every method keeps some pairs and drops others.
    level = {"tf-idf": 0.4, "fisher": 0.2, "log-odds": 0.5}.get(method, 0.05)
    found = described(salience=method, salience_level=level)
    frame = stack(found)
    counted = gather(frame, DoraAssociationsOptions(method=method, salience_level=level))
    asked = sorted(found["levels"].select(PAIR).unique().rows())
    assert asked == sorted(counted.kept.select(PAIR).rows()) and len(asked) < counted.every.height
    assert asked or method == "pmi"


def test_drawings_that_were_lost_are_missing_by_reason(described):
    found = described(numbers=["singular"])
    estimates = DoraAssociations().compute(stack(found), DoraAssociationsOptions(resamples=99))
    drawings = found["drawings"]
    (lost,) = [e for e in estimates if e.metric == "missing" and e.group == {"stage": "drawings"}]
    assert set(drawings["status"]) == {"ok", "filtered", "unreadable"}
    assert lost.missing.counts == dict(drawings.filter(drawings["status"] != "ok")["status"].value_counts().rows())
    kinds = {e.group["kind"] for e in estimates if e.metric == "unreadable" and e.group["stage"] == "drawings"}
    assert kinds == {"an image drawn before"}
