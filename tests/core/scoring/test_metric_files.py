"""Files that a metric reads: their sha256 stand with the scores, and runs measured with other files are no pair."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from fakes import MeanLength

from prejudge.core.catalogue.plugins import Plugged, Registered
from prejudge.core.compare import CompareOptions, compare
from prejudge.core.contracts import Options
from prejudge.core.contracts.errors import UsageError
from prejudge.core.scoring.score import score
from prejudge.testing import raises_code

LIST = "mean.known"


class KnownOptions(Options, frozen=True, kw_only=True):
    known: str | None = None


class Known(MeanLength):
    """Reads a list."""

    options = KnownOptions
    files = frozenset({"known"})

    def compute(self, observations, options):
        if options.known is not None:
            Path(options.known).read_bytes()
        return super().compute(observations, options)


@pytest.fixture
def lists(catalogue, tmp_path):
    """Return two files of different content; the fakes' metric reads one that an option names."""
    catalogue.plugins.offers["metric"]["mean"] = Registered(Plugged("mean", Known), "tests")
    catalogue.plugins.offers["metric"]["paired-difference"] = Registered(
        Plugged("paired-difference", "prejudge.metrics.general.paired:PairedDifference"), "tests"
    )
    paths = [tmp_path / name for name in ("one.csv", "two.csv")]
    for path in paths:
        path.write_text(path.name)
    return [str(path) for path in paths]


def sha256(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def test_file_of_a_metric_is_on_record_as_it_was_when_measured(lists, catalogue, run_study, store):
    name, _ = run_study()
    assert score(catalogue, store, name).manifest.data == {}
    assert score(catalogue, store, name, {LIST: lists[0]}).manifest.data == {"one.csv": sha256(lists[0])}
    Path(lists[0]).write_text("changed")
    assert score(catalogue, store, name, {LIST: lists[0]}).manifest.data == {
        "one.csv": hashlib.sha256(b"changed").hexdigest()
    }


@pytest.mark.parametrize("same", [True, False])
def test_runs_are_paired_by_what_is_in_the_files(lists, catalogue, run_study, store, same):
    if same:
        Path(lists[1]).write_bytes(Path(lists[0]).read_bytes())
    names = [run_study(model, **{LIST: path})[0] for model, path in zip(("fake", "other"), lists, strict=True)]
    if same:
        (difference,) = compare(catalogue, store, names, CompareOptions(assignments={})).differences
        assert difference.estimate.value == 0
    else:
        with raises_code(UsageError, "compare.design", "sha256"):
            compare(catalogue, store, names, CompareOptions(assignments={}))
