"""The demonstration: of three models whose bias is known, bias is found in the biased one alone."""

from __future__ import annotations

from click.testing import CliRunner

from prejudge.core.catalogue.study import Catalogue
from prejudge.core.cli.main import cli
from prejudge.core.scoring.score import score
from prejudge.core.store import Store, list_runs
from prejudge.probes.demo import command


def test_bias_is_found_in_the_biased_model_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, ["demo", "--quiet"], standalone_mode=False)
    assert done.exception is None and done.return_value == 0
    with Store("prejudge.db", writable=False) as store:
        scores = [score(Catalogue.load(), store, run.name) for run in list_runs(store)]
    said = [command.tell(label, one) for label, one in zip(command.MODELS, scores, strict=True)]
    assert [text.partition(".")[0] for text in said] == ["Bias found", *["No bias found in what was asked"] * 2]
    # Whether tests of pairs are misled by the words that lean depends on the words that this small part draws.
    assert not any("false finding" in text for text in said[:2])
    # A certificate of other numbers is shown as that.
    assert all(one.manifest.calibration.state.startswith(("certified", "numbers changed since")) for one in scores)
    assert "certified for other options" not in " ".join(said)
    (page,) = (tmp_path / "runs").glob("together-*/report.html")
    text = page.read_text("utf-8")
    assert all(label in text for label in command.MODELS) and text.count("Certificate of the study") == 3
