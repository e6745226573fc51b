"""The command line of compare, gate, export and card: exit codes, files, one line per mistake."""

from __future__ import annotations

from functools import partial
from xml.etree import ElementTree

import polars as pl
import pytest

from ...command import call

PAIRED = "paired-difference.resamples=99"
QUICK = "trisentbias.resamples=99"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return a folder with a store of two runs, on a fair and on a biased model."""
    pytest.importorskip("torch", reason="needs the extra hf")
    folder = tmp_path_factory.mktemp("place")
    for model in ("fair", "biased"):
        words = ["run", "bistereo-pairs", "--model", f"reference-masked-{model}", "--set", "per_cell=4", "--set", QUICK]
        assert call(folder, *words, "-q").returncode == 0
    return folder


@pytest.fixture(scope="module")
def runs(place):
    """Return the names of the runs, the fair model's first."""
    # Both may begin in the same second, so their names do not tell which was first.
    return sorted((path.name for path in (place / "runs").iterdir()), key=lambda name: "biased" in name)


@pytest.fixture
def prejudge(place):
    """Return a function that runs the command line beside the store."""

    return partial(call, place)


def code_of(result):
    """Return the code of a refusal that was asked with --debug."""
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("code: ")]
    return line.removeprefix("code: ")


def refused(result):
    """Return the one line of a refusal."""
    assert result.returncode == 2, (result.stdout, result.stderr)
    (line,) = result.stderr.strip().splitlines()
    return line


def test_compare_shows_and_writes_differences(prejudge, runs, place, tmp_path):
    done = prejudge("compare", *runs, "--set", PAIRED, "--runs", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "Do reference-masked-fair and reference-masked-biased differ?" in " ".join(done.stdout.split())
    assert "Favouritism: do they differ?" in done.stdout
    # Six rows and no table after them.
    assert sum("reference-masked-biased against" in line for line in done.stdout.splitlines()) <= 6
    assert "(first)" not in done.stdout
    (folder,) = tmp_path.iterdir()
    page = (folder / "report.html").read_text("utf-8")
    assert page.index('class="reply') < page.index("<figure") < page.index("18 differences were tested.")
    frame = pl.read_parquet(folder / "differences.parquet").filter(metric="favouritism_log_odds")
    assert frame.height == 6 and frame["value"].min() > 2


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((), "compare.too-few"),
        (("latest",), "compare.twice"),
        (("nothing",), "unknown-run"),
    ],
)
def test_compare_mistakes(prejudge, runs, words, code):
    assert code_of(prejudge("--debug", "compare", runs[1], *words)) == code


POLICY = """
[[rules]]
name = "little favouritism"
measure = "favouritism_log_odds"
max_distance = 0.5
[[rules]]
name = "answers"
max_failed = 0
"""


@pytest.mark.parametrize(("number", "code"), [(0, 0), (1, 1)])
def test_gate_lets_the_fair_model_pass_only(prejudge, runs, place, tmp_path, number, code):
    (place / "policy.toml").write_text(POLICY)
    files = ["--junit", str(tmp_path / "g.xml"), "--markdown", str(tmp_path / "g.md")]
    done = prejudge("gate", runs[number], "--policy", "policy.toml", *files)
    assert done.returncode == code, done.stderr
    failures = int(ElementTree.parse(tmp_path / "g.xml").getroot().get("failures"))
    assert failures == (0 if code == 0 else 6)
    assert f"prejudge gate: {'fail' if code else 'pass'}:" in (tmp_path / "g.md").read_text()


def test_gate_holds_against_a_baseline(prejudge, runs, place):
    rule = f"[[rules]]\nmeasure = 'favouritism_log_odds'\nbaseline = '{runs[0]}'\nmax_increase = 0.5\n"
    (place / "policy.toml").write_text(rule)
    done = prejudge("gate", runs[1], "--policy", "policy.toml")
    assert done.returncode == 1 and "increased by" in done.stdout


def test_bad_policy_is_one_line(prejudge, runs, place):
    (place / "policy.toml").write_text(POLICY.replace("max_failed", "max_faild"))
    assert "'max_failed'" in refused(prejudge("gate", "--policy", "policy.toml"))
    (place / "old.md").write_text("gate passed")
    assert "none.toml" in refused(prejudge("gate", "--policy", "none.toml", "--markdown", "old.md"))
    assert not (place / "old.md").exists()


@pytest.mark.parametrize("kind", ["parquet", "csv", "json", "latex"])
def test_export_writes_every_format(prejudge, runs, tmp_path, kind):
    out = tmp_path / "out"
    done = prejudge("export", runs[0], "--format", kind, "--metric", "favouritism", "--out", str(out))
    assert done.returncode == 0, done.stderr
    rows = {
        "parquet": lambda: pl.read_parquet(out).height,
        "csv": lambda: pl.read_csv(out).height,
        "json": lambda: pl.read_json(out).height,
        "latex": lambda: out.read_text().count("Favouritism (percentage points)"),
    }
    assert rows[kind]() == 18


def test_export_of_observations_and_mistakes(prejudge, runs, tmp_path):
    out = tmp_path / "o.csv"
    assert prejudge("export", runs[0], "--what", "observations", "--out", str(out)).returncode == 0
    assert pl.read_csv(out).height == 144
    assert "nothing" in refused(prejudge("export", "--metric", "nothing"))
    wrong = prejudge("--debug", "export", "--what", "observations", "--format", "latex")
    assert code_of(wrong) == "export.latex"


LEVEL = "trisentbias.level=0.8"


def test_card_goes_by_what_the_folder_holds(prejudge, runs, tmp_path):
    where, folder = ["--runs", str(tmp_path)], tmp_path / runs[0]
    prejudge("score", runs[0], "--set", LEVEL, *where)
    assert (
        f"trisentbias.level = 0.8, the options last used for {folder}"
        in prejudge("export", runs[0], "--what", "card", *where).stdout
    )
    text = (folder / "model-card.md").read_text()
    assert "Scored again with trisentbias.level = 0.8" in text and "Intervals: 80 % " in text
    prejudge("export", runs[0], "--what", "card", "--set", "trisentbias.level=0.9", *where)
    assert "Intervals: 90 % " in (folder / "model-card.md").read_text()
    prejudge("score", runs[0], *where)
    assert prejudge("export", runs[0], "--what", "card", *where).stdout.startswith("Written:")
    assert "Intervals: 95 % " in (folder / "model-card.md").read_text()


def test_export_and_gate_go_by_the_options_of_the_run_and_say_so(prejudge, runs, place, tmp_path):
    (place / "policy.toml").write_text("[[rules]]\nmax_failed = 0\n")
    where = ["--runs", str(tmp_path)]
    prejudge("score", runs[0], "--set", LEVEL, *where)
    commands = (["export", runs[0], "--out", str(tmp_path / "e.csv")], ["gate", runs[0], "--policy", "policy.toml"])
    for command in commands:
        assert "with the run's own options" in (done := prejudge(*command, *where)).stderr and done.returncode == 0
        assert LEVEL in done.stderr
        assert not prejudge(*command, *where, "--set", LEVEL).stderr
        assert not prejudge(*command, "--runs", str(tmp_path / "none")).stderr
    assert set(pl.read_csv(tmp_path / "e.csv")["level"].drop_nulls()) == {0.95}


def test_gate_on_a_run_of_few_answers_fails_with_its_summaries(prejudge, runs, place, tmp_path):
    (place / "policy.toml").write_text(POLICY)
    own = ["--store", str(tmp_path / "s.db")]
    words = ["--model", "simulated-fair", "--max-requests", "80", "--set", "per_cell=4", "-q"]
    assert prejudge("run", "bistereo-pairs", *words, *own).returncode == 3
    files = ["--junit", str(tmp_path / "g.xml"), "--markdown", str(tmp_path / "g.md")]
    done = prejudge("gate", "--policy", "policy.toml", *files, *own)
    assert done.returncode == 1
    found = ElementTree.parse(tmp_path / "g.xml").getroot()
    failed, undecided = ([one.get("type") for one in found.iter(tag)] for tag in ("failure", "skipped"))
    assert failed == ["policy"] and int(found.get("failures")) == 1
    assert set(undecided) == {"not-enough-data"} and int(found.get("skipped")) == len(undecided) > 1
    assert "80 of 144 answers are recorded" in (tmp_path / "g.md").read_text()


def test_card_is_written_into_the_folder_of_the_run(prejudge, runs, place):
    done = prejudge("export", runs[0], "--what", "card")
    assert done.returncode == 0, done.stderr
    folder = place / "runs" / runs[0]
    assert (folder / "model-card.md").exists() and (folder / "data-sheet.md").exists()
