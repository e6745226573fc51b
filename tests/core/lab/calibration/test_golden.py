"""Golden files: what changes the identity of numbers, and what does not."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from prejudge.core.catalogue import certificates, golden
from prejudge.core.catalogue.certificate_records import Certificate
from prejudge.core.catalogue.certificates import changed_numbers, changed_since
from prejudge.core.catalogue.filed import FOLDER, Filed, find_golden, read_certificate
from prejudge.core.catalogue.golden import STATED, SUFFIX, Head, digest_of_numbers, read_head, rounded
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts import Unreadable
from prejudge.core.contracts.errors import DataError, UsageError
from prejudge.core.contracts.records import Generation
from prejudge.core.contracts.version import VERSION
from prejudge.core.lab.calibration.certify import Recipe
from prejudge.core.lab.calibration.golden import compute, stated_campaign
from prejudge.core.lab.calibration.golden_file import Golden, differences, read, settle, write
from prejudge.core.lab.calibration.numbers import differing_numbers, filed_certificate, rewrite
from prejudge.core.statistics import effects
from prejudge.probes.bistereo import tuples
from prejudge.testing import MetricContract, raises_code

from ....command import call

ROOT = Path(__file__).resolve().parents[4]
TUPLES = ROOT / "probes" / "bistereo" / FOLDER / f"bistereo-tuples{SUFFIX}"
IMPRESSIONS = ROOT / "probes" / "dora" / FOLDER / f"dora-i2t{SUFFIX}"
HEAD = Head(study="s", prejudge=VERSION, questions="q", cases={STATED: "1", "asking=2": "2"})


def certificate(head: Head, **changes: Any) -> Certificate:
    fields = {"design": {}, "requests": 1, "gallery": {}, "meanings": {}, "planted": "", "groups": ()}
    named = {"questions": head.questions, "numbers": head.cases, "battery": head.battery}
    return Certificate(**({"study": head.study, "prejudge": "0", "made": "2026-01-01"} | fields | named | changes))


def computed(study: str, path: Path) -> Golden:
    before = read(path)
    with stated_campaign(Recipe.load(study, {})) as stated:
        return settle(before, compute(stated, before))


def state_after(study: str, path: Path) -> str:
    """Return how numbers differ from those of a certificate of the code before, once they are written anew."""
    return changed_numbers(certificate(read_head(path)), computed(study, path).head)


def test_code_that_is_written_in_other_words_leaves_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    def another_name(gap: Any, variance: Any) -> Any:
        """Say the same by another name, with other locals and comments."""
        distance = gap
        return original(distance, variance)

    original = effects.standardised
    monkeypatch.setattr("prejudge.core.statistics.measures.standardised", another_name)
    assert state_after("bistereo-tuples", TUPLES) == ""


def test_a_formula_changed_by_a_millionth_concerns_exactly_the_studies_that_use_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    original = effects.standardised
    for place in ("measures", "measures_compared"):
        monkeypatch.setattr(
            f"prejudge.core.statistics.{place}.standardised", lambda gap, variance: original(gap, variance) * (1 + 1e-6)
        )
    assert differing_numbers(Recipe.load("bistereo-tuples", {}), TUPLES)
    assert "other numbers" in state_after("bistereo-tuples", TUPLES)
    assert state_after("dora-i2t", IMPRESSIONS) == ""


def test_a_changed_reader_changes_the_state_and_is_named_by_its_case(monkeypatch: pytest.MonkeyPatch) -> None:
    original = tuples.WrittenStage.read

    def strict(self: Any, factors: Any, response: Any) -> Any:
        if isinstance(response, Generation) and "**" in response.text:
            return Unreadable("formatted")
        return original(self, factors, response)

    monkeypatch.setattr(tuples.WrittenStage, "read", strict)
    why = state_after("bistereo-tuples", TUPLES)
    assert 'asking="generate"' in why and STATED not in why


def test_other_questions_change_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    original = tuples.AnalogyStage.trials

    def fewer(self: Any, earlier: Any) -> Any:
        return list(original(self, earlier))[:-1]

    monkeypatch.setattr(tuples.AnalogyStage, "trials", fewer)
    assert "questions" in state_after("bistereo-tuples", TUPLES)


def test_a_model_is_asked_for_what_no_stored_response_answers_and_for_nothing_else() -> None:
    before = read(TUPLES)
    key = next(iter(before.responses))
    lost = dict(list(before.responses[key].items())[:5])
    less = Golden(before.head, before.identities, {key: dict(list(before.responses[key].items())[5:])}, before.cases)
    with stated_campaign(Recipe.load("bistereo-tuples", {})) as stated:
        silent, asked = compute(stated, less, ask=False), compute(stated, less)
    assert asked.responses[key] == before.responses[key] and not list(differences(before, settle(before, asked)))
    assert not {*lost} & {*silent.responses[key]} and list(differences(before, silent))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (0.1 + 0.2, 0.3, True),
        (2**-13, 2**-13 * (1 + 1e-15), True),
        (2**-13, 2**-13 * (1 - 1e-15), True),
        (1e-13, 0.0, True),
        (-1e-13, 1e-13, True),
        (1.0, 1.0 + 1e-6, False),
        (1e-11, 0.0, False),
        (None, 0.0, False),
    ],
)
def test_the_digest_is_of_nine_digits(one: Any, other: Any, same: bool) -> None:
    rows = [{"metric": "m", "group": {}, "value": value, "n": 3, "missing": {"refused": 1}} for value in (one, other)]
    assert (digest_of_numbers(rows[:1]) == digest_of_numbers(rows[1:])) is same


def test_the_digest_is_of_numbers_and_neither_of_words_nor_of_their_order() -> None:
    row = {"metric": "m", "group": {"axis": "a"}, "value": 1.0, "n": 3, "missing": {"refused": 1}, "verdict": "above"}
    words = {"note": "n", "caveats": ["few_clusters"], "unit": "%", "interval": "i", "facts": {"x": 1}, "level": 0.9}
    other = row | {"group": {"axis": "b"}}
    assert digest_of_numbers([row, other]) == digest_of_numbers([other, row | words])
    changed: list[dict[str, Any]] = [{"missing": {"refused": 2}}, {"n": 4}, {"p": 0.5}, {"low": 0.5}, {"effect": 0.1}]
    changed += [{"p_adjusted": 0.5}, {"verdict": "open"}, {"metric": "o"}, {"group": {}}, {"value": None}]
    digests = {digest_of_numbers([row | change]) for change in ({}, *changed)}
    assert len(digests) == 1 + len(changed)
    assert rounded({"a": [0.123456789012, float("inf")]}) == {"a": [0.123456789, "inf"]}


@pytest.mark.parametrize(
    ("head", "word"),
    [
        (HEAD, ""),
        (replace(HEAD, cases=HEAD.cases | {"new=3": "3"}), ""),
        (replace(HEAD, cases={STATED: "1"}), ""),
        (replace(HEAD, reason="r"), ""),
        (replace(HEAD, cases=HEAD.cases | {"asking=2": "9"}), "asking=2"),
        (replace(HEAD, cases={"asking=2": "2"}), STATED),
        (replace(HEAD, questions="p"), "questions"),
    ],
)
def test_numbers_change_where_a_case_of_both_differs(head: Head, word: str) -> None:
    why = changed_numbers(certificate(HEAD), head)
    assert word in why and bool(why) is bool(word)


def test_a_certificate_holds_only_beside_numbers_that_were_computed_with_what_is_installed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    used = replace(HEAD, battery={"Wilson": "w"})
    monkeypatch.setattr(certificates, "battery", lambda: {"Wilson": "w", "exact": "e"})
    path = tmp_path / "s.golden.xz"
    assert changed_since(Filed(certificate(used), path, used)) == ""
    assert "golden file" in changed_since(Filed(certificate(used), path, None))
    assert changed_since(Filed(certificate(used, numbers={}), path, used))
    old = replace(used, prejudge="0.0.1")
    assert "0.0.1" in changed_since(Filed(certificate(used), path, old))
    assert changed_since(Filed(certificate(used), TUPLES, old)) == "", "the package's own tests compute its files"
    monkeypatch.setattr(certificates, "battery", lambda: {"Wilson": "w", "exact": "another"})
    assert changed_since(Filed(certificate(used), path, used)) == "", "no number rests on the exact interval"
    monkeypatch.setattr(certificates, "battery", lambda: {"Wilson": "another"})
    assert "Wilson" in changed_since(Filed(certificate(used), path, used))


def test_names_of_estimates_are_found_in_the_battery() -> None:
    used = golden.used_of_battery(["cluster bootstrap, BCa (template)", "Wilson, pairs", "a test of my own"])
    assert used == {name: golden.battery()[name] for name in ("Wilson", "cluster bootstrap, BCa")}


def test_a_file_that_is_no_golden_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.golden.xz"
    contents = (b"", b"words", lzma.compress(b"words\n"), TUPLES.read_bytes()[:500])
    for content in contents:
        path.write_bytes(content)
        with raises_code(DataError, "calibration.golden"):
            read(path)
    head = msgspec.json.encode(HEAD) + b"\n"
    for line in (b"[1]\n", b'{"reading": ["a"]}\n', b"{\n"):
        path.write_bytes(lzma.compress(head + line))
        with raises_code(DataError, "calibration.golden"):
            read(path)


def test_a_head_that_is_not_of_its_numbers_is_found(tmp_path: Path) -> None:
    golden_file = read(TUPLES)
    golden_file.head = replace(golden_file.head, cases=golden_file.head.cases | {STATED: "0" * 32})
    write(golden_file, path := tmp_path / "t.golden.xz")
    assert [one.of for one in differing_numbers(Recipe.load("bistereo-tuples", {}), path)] == ["head"]


def test_numbers_are_rewritten_by_somebody_who_reads_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = read(TUPLES)
    name = next(iter(before.cases[STATED].estimates))
    stored = before.cases[STATED].estimates[name]["value"]
    before.cases[STATED].estimates[name]["value"] = stored + 1
    write(before, path := tmp_path / "t.golden.xz")
    recipe = Recipe.load("bistereo-tuples", {})
    monkeypatch.setenv("CI", "1")
    with raises_code(UsageError, "calibration.numbers"):
        rewrite(recipe, path)
    monkeypatch.delenv("CI")
    (change,) = [one for one in rewrite(recipe, path, "a reason") if (one.case, one.field) == (STATED, "value")]
    assert (change.of, change.old, change.new) == (name, stored + 1, stored)
    assert read_head(path).reason == "a reason" and read_head(path).cases == read_head(TUPLES).cases
    assert rewrite(recipe, path, "another reason") == [] and read_head(path).reason == "a reason"


def test_the_contract_of_a_metric_computes_the_golden_file_of_a_study(monkeypatch: pytest.MonkeyPatch) -> None:
    class Kit(MetricContract):
        study = "bistereo-tuples"

    Kit().test_stored_responses_give_the_stored_numbers()
    original = effects.standardised
    monkeypatch.setattr("prejudge.core.statistics.measures.standardised", lambda *own: original(*own) * (1 + 1e-6))
    with pytest.raises(AssertionError, match="--numbers"):
        Kit().test_stored_responses_give_the_stored_numbers()


SMALL = ("--studies", "2", "--planted", "0", "--by-command", "0", "--real", "0", "--null", "copying")


@pytest.fixture(scope="module")
def calibrated_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small")
    done = call(folder, "lab", "calibrate", "bistereo-tuples", *SMALL)
    assert done.returncode == 0, done.stderr
    return folder / "calibration"


@pytest.fixture
def installed(calibrated_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the user's certificates, with one of the study and its golden file."""
    monkeypatch.setenv("PREJUDGE_CONFIG", str(tmp_path / "config"))
    folder = tmp_path / "config" / FOLDER
    folder.mkdir(parents=True)
    for name in ("bistereo-tuples.json", f"bistereo-tuples{SUFFIX}"):
        (folder / name).write_bytes((calibrated_folder / name).read_bytes())
    return folder


def test_a_certificate_names_the_numbers_of_its_golden_file_and_two_studies_of_each_model(installed: Path) -> None:
    made, head = read_certificate(installed / "bistereo-tuples.json"), read_head(installed / f"bistereo-tuples{SUFFIX}")
    assert (made.questions, made.numbers, made.battery) == (head.questions, head.cases, head.battery)
    assert head.cases == read_head(TUPLES).cases, "the stated design has the numbers of the package"
    assert [(spot.null, spot.seed) for spot in made.spots] == [("fair", 0), ("fair", 1), ("copying", 0), ("copying", 1)]
    assert all(spot.numbers for spot in made.spots) and len(made.gallery_digest) == 32
    assert find_golden(Catalogue.load(), "bistereo-tuples", "bistereo-tuples") == installed / f"bistereo-tuples{SUFFIX}"


def test_a_certificate_is_verified_by_its_spot_studies_and_numbers(installed: Path, tmp_path: Path) -> None:
    words = ("lab", "calibrate", "bistereo-tuples", "--verify", "--null", "copying")
    done = call(tmp_path, *words)
    assert done.returncode == 0, done.stderr + done.stdout
    path = installed / "bistereo-tuples.json"
    made = json.loads(path.read_bytes())
    number = made["spots"][2]["numbers"][0]
    number[2] += 1e-6
    path.write_text(json.dumps(made))
    wrong = call(tmp_path, *words)
    assert wrong.returncode == 1 and "copying, model 0" in wrong.stdout and "fair" not in wrong.stdout


def test_verifying_notes_the_version_with_which_the_numbers_are_the_same(installed: Path, tmp_path: Path) -> None:
    path = installed / f"bistereo-tuples{SUFFIX}"
    older = read(path)
    older.head = replace(older.head, prejudge="0.0.1")
    write(older, path)
    filed = Filed(read_certificate(installed / "bistereo-tuples.json"), path, read_head(path))
    assert "0.0.1" in changed_since(filed)
    done = call(tmp_path, "lab", "calibrate", "bistereo-tuples", "--verify", "--null", "copying")
    assert done.returncode == 0 and read_head(path).prejudge == VERSION, done.stdout + done.stderr


@pytest.mark.parametrize("options", [{}, {"mirrored": False}])
def test_a_study_without_a_golden_file_or_of_another_design_is_not_verified(
    installed: Path, options: dict[str, Any]
) -> None:
    (installed / f"bistereo-tuples{SUFFIX}").unlink()
    with raises_code(UsageError, "calibration.none"):
        filed_certificate(Recipe.load("bistereo-tuples", options))


@pytest.mark.parametrize("path", sorted(ROOT.glob("probes/*/certificates/*.json")), ids=lambda path: path.stem)
def test_a_packaged_certificate_is_of_the_present_numbers_or_says_that_it_is_not(path: Path) -> None:
    made, head = read_certificate(path), read_head(path.with_suffix(SUFFIX))
    why = changed_since(Filed(made, path.with_suffix(SUFFIX), head))
    assert bool(why) is ((made.questions, made.numbers) != (head.questions, head.cases)), why
    assert bool(made.numbers) is bool(made.spots)
