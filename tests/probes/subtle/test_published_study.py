"""The subtle-bias studies, by the command line, on the published answers and on the counts behind the tables."""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
import scipy.stats

from prejudge.core.catalogue.study import Catalogue
from prejudge.probes.subtle.data_files import DOMAIN_OF

from ...command import call

FAST = ("--set", "subtle.resamples=99")
COUNTS = "003_v1_tables4-9_counts.csv"
LIKELIHOODS = ("PPL", "PNL", "PNuL", "NPL", "NNL", "NNuL")
PALM = {
    ("sai", "ageism"): "50.94 33.96 15.09 28.34 59.48 12.18",
    ("sai", "beauty"): "68.75 2.60 28.65 3.72 84.57 11.70",
    ("sai", "beauty profession"): "62.13 17.01 20.86 29.89 39.34 30.77",
    ("sai", "nationality"): "67.43 17.29 15.29 55.74 30.25 14.01",
    ("asa", "ageism"): "57.59 19.20 23.22 32.10 50.93 16.98",
    ("asa", "beauty"): "41.56 26.84 31.60 4.97 84.80 10.23",
    ("asa", "beauty profession"): "21.95 49.32 28.73 11.29 63.17 25.54",
    ("asa", "nationality"): "60.32 3.70 35.98 31.45 31.45 37.11",
}
"""Shares of the raw answers, rounded to the digits shown."""
TAU = {
    ("palm-2", "sai"): (5816, 0.338031, 4.95786e-133),
    ("palm-2", "asa"): (5175, 0.36708, 3.12266e-133),
    ("gpt_3.5", "sai"): (6287, 0.299494, 9.71767e-123),
    ("gpt_3.5", "asa"): (5174, 0.345237, 9.65164e-119),
}
"""Readable answers, tau-c and asymptotic p, as the authors' later reports publish them."""
TABLE_1 = {
    ("GPT-3.5", "sai"): (0.46286, 2.896e-230, 0.2618, 0.2561, 1.8e-82),
    ("GPT-3.5", "asa"): (0.17895, 6.997e-34, 0.2820, 0.2496, 8.6e-80),
    ("PaLM 2", "sai"): (0.12780, 3.086e-18, 0.3981, 0.3581, 1.4e-149),
    ("PaLM 2", "asa"): (0.01798, 0.2256, 0.3968, 0.3449, 1.5e-148),
}
"""tau-c and p as the printed table codes; tau-c, tau-b and p as the text describes."""


MISPRINTED = {
    ("ageism", "masculine", "PNuL"): (8.54, 8.45),
    ("beauty", "non-binary", "PPL"): (75.57, 75.78),
    ("beauty profession", "masculine", "NNL"): (29.75, 29.71),
    ("nationality", "feminine", "NNL"): (14.78, 14.18),
    ("nationality", "non-binary", "NPL"): (71.31, 71.33),
}
"""Cells of Table 5: as printed, and as they must be."""


def estimates(folder: Path, study: str) -> pl.DataFrame:
    """Return the estimates of the last run of a study in a folder."""
    last = max(folder.glob(f"runs/*{study}*/estimates.parquet"), key=lambda path: path.stat().st_mtime)
    return pl.read_parquet(last)


def one(frame: pl.DataFrame, metric: str, **group: str) -> dict[str, object]:
    """Return the one estimate of this name and group."""
    for name in ("domain", "pronoun", "coding"):
        if name in frame.columns:
            frame = frame.filter(pl.col(name).eq_missing(pl.lit(group.get(name), pl.String)))
    return frame.filter(pl.col("metric") == metric).row(0, named=True)


@pytest.fixture(scope="module")
def answers(shared_data, tmp_path_factory):
    """Return a function that imports a model's raw answers to one direction, once, and gives its folder."""
    done: dict[tuple[str, str], Path] = {}

    def imported(model: str, direction: str) -> Path:
        if (model, direction) not in done:
            folder = done[model, direction] = tmp_path_factory.mktemp("imported")
            outputs = shared_data / "subtle" / "outputs"
            files = (
                "--responses",
                str(outputs / f"{model.removesuffix('-2')}_valid.csv"),
                "--data",
                str(outputs / "dataset.csv"),
            )
            how = ("--disagreeing", "keep", *FAST)
            result = call(folder, "import", f"subtle-{direction}", "--model", model, *files, *how)
            assert result.returncode == 0, result.stderr
        return done[model, direction]

    return imported


@pytest.mark.parametrize(("direction", "domain"), PALM)
def test_raw_answers_give_every_published_share(answers, direction, domain):
    frame = estimates(answers("palm-2", direction), f"subtle-{direction}")
    found = [one(frame, name, domain=domain)["value"] for name in LIKELIHOODS]
    assert " ".join(f"{value:.2f}" for value in found) == PALM[direction, domain]


@pytest.mark.parametrize(("model", "direction"), TAU)
def test_raw_answers_give_the_published_tau(answers, model, direction):
    found = one(estimates(answers(model, direction), f"subtle-{direction}"), "tau_c", coding="polarity")
    n, tau, p = TAU[model, direction]
    assert found["n"] == n
    assert found["value"] == pytest.approx(tau, abs=5e-7) and found["p"] == pytest.approx(p, rel=1e-5)


def test_published_answers_as_untidy_as_those_of_other_models_give_the_published_tau(shared_data, tmp_path):
    """Sentences typed otherwise, rows that stand twice, options of another spelling: named, and then counted."""
    outputs = shared_data / "subtle" / "outputs"
    with (outputs / "gpt_3.5_valid.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    own = [row for row in rows if row["type_category"] == "type1"]
    for number, row in enumerate(rows):
        if number % 3 == 0:
            row["context"] = f"  {row['context'].rstrip('. ')}\u00a0"
        if number % 5 == 0:
            row |= {name: row[name].upper() for name in ("stereotype", "unrelated", "bias_type")}
    for row in [row for row in own if row["response"] != row["unrelated"]][:4]:
        row["unrelated"] += "x"
    again = [own[0] | {"response": own[0]["unrelated"]}, own[1]]
    untidy = tmp_path / "untidy.txt"
    with untidy.open("w", encoding="utf-16", newline="") as file:
        writer = csv.DictWriter(file, rows[0], delimiter=";")
        writer.writeheader()
        writer.writerows([*rows, *again])
    files = ("--responses", str(untidy), "--data", str(outputs / "dataset.csv"))
    how = ("import", "subtle-sai", "--model", "gpt-3.5", *files, *FAST)
    refused = call(tmp_path, *how)
    assert refused.returncode == 2 and "--duplicates first" in refused.stderr
    refused = call(tmp_path, *how, "--duplicates", "first")
    assert refused.returncode == 2 and "4 of the 6,287 matched rows" in refused.stderr
    assert call(tmp_path, *how, "--duplicates", "first", "--disagreeing", "keep").returncode == 0
    found = one(estimates(tmp_path, "subtle-sai"), "tau_c", coding="polarity")
    n, tau, p = TAU["gpt_3.5", "sai"]
    assert (found["n"], found["value"]) == (n, pytest.approx(tau, abs=5e-7)) and found["p"] == pytest.approx(
        p, rel=1e-5
    )
    manifest = json.loads(next(tmp_path.glob("runs/*/manifest.json")).read_text("utf-8"))
    counts = manifest["stages"]["main"]["counts"]
    assert (counts["duplicates"], counts["disagreeing"], counts["unmatched"]) == (2, 4, 0)
    assert counts["typed_otherwise"] > 1000 and counts["other_part"] == len(rows) - len(own)
    notes = " ".join(manifest["notes"])
    assert "--duplicates first" in notes and "--disagreeing keep" in notes and "white space" in notes


def test_order_and_request_that_the_files_do_not_state_are_not_made_up(answers):
    folder = answers("palm-2", "sai")
    (run,) = folder.glob("runs/*subtle-sai*")
    seen = pl.read_parquet(run / "observations.parquet")
    assert seen.height == 6456 and seen["order"].null_count() == seen["position"].null_count() == 6456
    assert set(seen["trial"]) == set(seen["item"])
    measures = set(pl.read_parquet(run / "estimates.parquet")["metric"])
    assert "delta_PL" in measures and "position_bias" not in measures
    assert json.loads((run / "manifest.json").read_text("utf-8"))["unrecorded"] == ["order", "request"]
    report = (run / "report.html").read_text("utf-8")
    assert "balanced" not in report and "position_bias" not in report


def test_every_row_counts_where_the_authors_program_counts_it(shared_data, tmp_path):
    """The published tau of GPT-4 (.372979) is of all rows of its file, those that stand twice too."""
    outputs = shared_data / "subtle" / "outputs"
    with (outputs / "gpt_3.5_valid.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    own = [row for row in rows if row["type_category"] == "type2"]
    again = [row | {"response": row["anti_stereotype"]} for row in own[:400:2]] + own[:100]
    twice = tmp_path / "twice.csv"
    with twice.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(again)
    files = ("--responses", str(outputs / "gpt_3.5_valid.csv"), "--responses", str(twice))
    how = ("import", "subtle-asa", "--model", "m", *files, "--data", str(outputs / "dataset.csv"), *FAST)
    assert call(tmp_path, *how).returncode == 2
    assert call(tmp_path, *how, "--duplicates", "all").returncode == 0
    found = one(estimates(tmp_path, "subtle-asa"), "tau_c", coding="polarity")
    coded = [pair for row in [*own, *again] if (pair := polarities(row)) is not None]
    expected = scipy.stats.kendalltau(*zip(*coded, strict=True), variant="c")
    assert found["n"] == len(coded) > TAU["gpt_3.5", "asa"][0] + 200
    assert found["value"] == pytest.approx(expected.statistic) and found["p"] == pytest.approx(expected.pvalue)


def polarities(row: dict[str, str]) -> tuple[int, int] | None:
    """Return the polarity of what is given and of the answer, by the rule of the authors' description."""

    def plain(text: str) -> str:
        return re.split(r"option\s*\d+\s*:", text.strip().replace(".", "").lower(), maxsplit=1)[-1].strip()

    given = 1 if row["item_category"] == "positive" else -1
    options = {row["stereotype"]: given, row["anti_stereotype"]: -given, row["unrelated"]: 0}
    return next(((given, value) for words, value in options.items() if plain(words) == plain(row["response"])), None)


def test_score_of_the_store_gives_the_same(answers):
    folder = answers("palm-2", "asa")
    before = estimates(folder, "subtle-asa")
    assert call(folder, "score", *FAST).returncode == 0
    assert estimates(folder, "subtle-asa").equals(before)


def test_invalid_answers_stay_invalid_and_are_counted_by_kind(shared_data, tmp_path):
    outputs = shared_data / "subtle" / "outputs"
    kinds = [outputs / f"palm_{kind}.csv" for kind in ("valid", "invalid")]
    files = [word for path in kinds for word in ("--responses", str(path))]
    for direction in ("sai", "asa"):
        how = ("--data", str(outputs / "dataset.csv"), "--disagreeing", "keep", *FAST)
        assert call(tmp_path, "import", f"subtle-{direction}", "--model", "palm", *files, *how).returncode == 0
    manifest = json.loads(next(tmp_path.glob("runs/*/manifest.json")).read_text("utf-8"))
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (*kinds, outputs / "dataset.csv")}
    assert {Path(path).name: digest for path, digest in manifest["data"].items()} == digests
    seen = pl.concat([pl.read_parquet(path) for path in tmp_path.glob("runs/*/observations.parquet")], how="diagonal")
    assert dict(seen["status"].value_counts().iter_rows()) == {"ok": 10991, "unreadable": 949}
    kinds = dict(seen.filter(status="unreadable")["reason"].value_counts().iter_rows())
    assert kinds["an empty answer"] == 847 and kinds["echo of the question"] > 50


def test_answers_to_other_items_are_refused_with_their_number(shared_data, tmp_path):
    outputs = shared_data / "subtle" / "outputs"
    swapped, changed = tmp_path / "swapped.csv", tmp_path / "changed.csv"
    lines = (outputs / "palm_valid.csv").read_text("utf-8")
    swapped.write_text(lines.replace("anti_stereotype,stereotype", "stereotype,anti_stereotype", 1), "utf-8")
    changed.write_text(lines.replace("must be BLANK", "should be BLANK"), "utf-8")
    how = ("--model", "palm", "--data", str(outputs / "dataset.csv"))
    result = call(tmp_path, "import", "subtle-sai", *how, "--responses", str(swapped))
    assert result.returncode == 2 and "5,816" in result.stderr
    assert "'anti_stereotype' in 5,816" in result.stderr
    result = call(tmp_path, "import", "subtle-sai", *how, "--responses", str(changed))
    assert result.returncode == 2 and "must be BLANK' in the data" in result.stderr
    result = call(tmp_path, "import", "subtle-sai", "--model", "palm", "--responses", str(outputs / "palm_valid.csv"))
    assert result.returncode == 2 and "5,630 of 10,991" in result.stderr and "--data FILE" in result.stderr


def test_counts_give_every_cell_of_the_tables(shared_data, tmp_path):
    result = call(tmp_path, "study", "replicate", "subtle", "--scores", str(shared_data / COUNTS), *FAST)
    assert result.returncode == 1, result.stdout
    # 604 of the 612 cells of Tables 2 to 9, and tau and p of Table 1 in the coding that it follows.
    assert "1088 published values: 612 reproduced, 16 not reproduced, 460 cannot be judged." in result.stdout
    for source in ("Table 2: 15 of 15", "Table 3: 18 of 18", "Table 4: 30 of 30", "Table 7: 30 of 30"):
        assert result.stdout.count(f"{source} reproduced") == (4 if source[6] in "23" else 2)
    assert result.stdout.count("Table 1: 2 of 2 reproduced") == 4
    assert result.stdout.count("Table 1, by the text's coding: 0 of 2 reproduced, 2 not reproduced") == 4


def test_catalogue_has_the_number_of_answers_behind_every_share(shared_data):
    counts: Counter[tuple[str, ...]] = Counter()
    with (shared_data / COUNTS).open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["pronoun"] != "all":
                domain = DOMAIN_OF[row["domain"]]
                key = (row["model"], row["direction"].lower(), domain, row["given_polarity"], row["pronoun"])
                counts[key] += sum(int(row[f"n_{name}"]) for name in ("positive", "negative", "neutral"))
    registry = Catalogue.load().registry
    seen = 0
    for direction in ("sai", "asa"):
        for value in registry.studies[f"subtle-{direction}"].published:
            if value.source.startswith("Table") and value.reference and value.measure.endswith("L"):
                given = {"P": "positive", "N": "negative"}.get(value.measure[0] if len(value.measure) > 2 else "")
                given = None if value.measure == "NuL" else given
                wanted = (value.model, direction, value.group.get("domain"), given, value.group.get("pronoun"))
                n = sum(c for k, c in counts.items() if all(w in (None, own) for w, own in zip(wanted, k, strict=True)))
                assert value.n == n, (value.measure, value.group)
                seen += 1
    assert seen == 612


@pytest.mark.parametrize(("model", "direction"), TABLE_1)
def test_counts_give_table_1_in_both_codings(shared_data, tmp_path, model, direction):
    how = ("--set", f"published_model={model}", *FAST)
    assert call(tmp_path, "score", f"subtle-{direction}", "--scores", str(shared_data / COUNTS), *how).returncode == 0
    frame = estimates(tmp_path, f"subtle-{direction}")
    match, match_p, tau_c, tau_b, p = TABLE_1[model, direction]
    printed, text = (one(frame, "tau_c", coding=coding) for coding in ("stereotype match", "polarity"))
    assert printed["value"] == pytest.approx(match, abs=1e-5) and printed["p"] == pytest.approx(match_p, rel=1e-3)
    assert text["value"] == pytest.approx(tau_c, abs=6e-5) and text["p"] == pytest.approx(p, rel=0.05)
    assert one(frame, "tau_b", coding="polarity")["value"] == pytest.approx(tau_b, abs=6e-5)


def test_misprinted_cells_of_table_5_are_those_of_the_study_page(shared_data, tmp_path):
    how = ("--set", "published_model=GPT-3.5", *FAST)
    assert call(tmp_path, "score", "subtle-sai", "--scores", str(shared_data / COUNTS), *how).returncode == 0
    frame = estimates(tmp_path, "subtle-sai")
    page = (Path(__file__).parents[3] / "docs" / "studies" / "subtle.md").read_text("utf-8")
    for (domain, pronoun, name), (printed, right) in MISPRINTED.items():
        assert round(one(frame, name, domain=domain, pronoun=pronoun)["value"], 2) == right
        assert f"| 5 | {domain}, {pronoun}, {name} | {printed} | {right} |" in page


def test_replicate_judges_the_latest_runs_of_the_published_answers(answers):
    result = call(answers("palm-2", "asa"), "study", "replicate", "subtle", *FAST)
    assert result.returncode == 0, result.stdout
    assert "compared with the published values of PaLM 2 (published answers)" in result.stdout
    assert "of 'palm-2', imported" in result.stdout
    for line in ("the authors' later reports: 2 of 2", "Table 2: 12 of 15", "Table 7: 24 of 30", "Table 9: 72 of 90"):
        assert f"{line} reproduced" in result.stdout
    assert "6 cannot be judged: The published items are of other institutions" in result.stdout
    assert (
        "subtle-sai: 156 of the published values of PaLM 2 (published answers) cannot be judged: there is no run"
        in result.stdout
    )
    assert "312 published values: 110 reproduced, 0 not reproduced, 202 cannot be judged." in result.stdout


def test_replicate_of_raw_answers_judges_every_table(answers):
    result = call(answers("palm-2", "sai"), "study", "replicate", "subtle-sai", *FAST)
    assert "156 published values: 110 reproduced, 0 not reproduced, 46 cannot be judged." in result.stdout
    result = call(answers("palm-2", "sai"), "study", "replicate", "subtle-sai", "--model", "PaLM 2", *FAST)
    assert result.returncode == 1 and "of 'palm-2', imported" in result.stdout


def test_replicate_of_a_model_without_published_values_says_which_there_are(tmp_path):
    assert (
        call(tmp_path, "run", "subtle-sai", "--model", "simulated-fair", "--set", "per_cell=2", *FAST).returncode == 0
    )
    result = call(tmp_path, "study", "replicate", "subtle")
    assert result.returncode == 2 and "'simulated-fair'" in result.stderr and "GPT-3.5" in result.stderr
