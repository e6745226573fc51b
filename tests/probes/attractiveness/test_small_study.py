"""Six photographs, asked of a model that sees none of them: what an auditor reads of it, and how large it is."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import prejudge
from prejudge.core.cli.main import cli

pytestmark = pytest.mark.usefixtures("no_figures")

Image = pytest.importorskip("PIL.Image")
MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def six(tmp_path_factory):
    """Return a folder of six people without ratings, as photographs that carry no effect."""
    folder, rng, rows = tmp_path_factory.mktemp("six"), np.random.default_rng(0), []
    for number in range(6):
        for variant in ("original", "filtered"):
            name = f"{number}-{variant}.jpg"
            Image.fromarray(rng.integers(0, 255, (32, 24, 3), dtype=np.uint8)).save(folder / name)
            person = {"gender": "female" if number % 2 else "male", "age_group": "", "race": "", "source": "own"}
            rows.append({"face_id": f"p{number}", "file": name, "variant": variant, **person})
    with (folder / "metadata.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return folder


@pytest.fixture(scope="module")
def run(six):
    settings = prejudge.Settings(store=str(six / "s.db"), runs=str(six / "runs"))
    quick = {"attractiveness.resamples": 999, "attractiveness.effect_resamples": 0, "seeds": [0]}
    return prejudge.run("attractiveness", "simulated-halo", settings, data=str(six), **quick)


def test_report_of_six_faces_is_small_and_begins_with_the_judgements_that_change_most(run):
    page = Path(run.report)
    # 0.3 of it lead from each number to the answers behind it, also without a script.
    assert page.stat().st_size < 1.6 * MEGABYTE
    text = page.read_text(encoding="utf-8")
    answer = text.index("The judgements that change most with the filter:")
    first, conclusion = text.index('class="forest"'), text.index("No significant halo effect")
    assert first < answer < conclusion < text.index(">Estimates of")
    assert "at least 57 would have to change" in text


def test_notes_say_what_the_photographs_and_their_number_do_not_show(run):
    few, rated, seen = run.manifest.notes
    assert "6 faces" in few and "0.031" in few and "91 scenarios" in few
    assert "rating_attractiveness" in rated
    assert seen.startswith("12 images: ") and "planted" in seen
    page = Path(run.report).read_text(encoding="utf-8")
    assert "shows no planted effect" in page and page.index("shows no planted effect") < page.index(">Estimates of")


def test_plan_says_what_six_faces_cannot_show(six):
    said = CliRunner().invoke(cli, ["plan", "attractiveness", "--data", str(six)]).output
    words = " ".join(said.split())
    assert "With 6 faces no p of a paired test can be below 0.031" in words and "rating_attractiveness" in words
