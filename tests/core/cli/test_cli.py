"""The command line: quick, one line per mistake, exit code 2, nothing lost."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from prejudge.core.cli.main import cli
from prejudge.core.contracts.errors import UsageError
from prejudge.core.contracts.installing import ROOT
from prejudge.core.store import Store, get_run, statistics
from prejudge.testing import raises_code

from ...command import call
from ...forging import reseal

PREJUDGE = [sys.executable, "-m", "prejudge.core.cli"]
TRIALS = 1800
SEVERAL = ["--set", "per_cell=50", "--set", "trisentbias.resamples=99"]
"""Enough trials that a run of them can be stopped in between."""

# No test here looks at a figure.
pytestmark = pytest.mark.usefixtures("no_figures")


@pytest.fixture
def prejudge(tmp_path):
    """Return a function that runs the command line in an empty folder."""

    def run(*words, env=None):
        if env is None:
            return call(tmp_path, *words)
        command = [*PREJUDGE, *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, env=env)

    return run


def refused(result):
    """Return the one line of a refusal."""
    assert result.returncode == 2, (result.stdout, result.stderr)
    assert "Traceback" not in result.stderr
    (line,) = result.stderr.strip().splitlines()
    return line


def code_of(result):
    """Return the code of a refusal that was asked with --debug."""
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("code: ")]
    return line.removeprefix("code: ")


def test_help_imports_nothing_heavy(prejudge):
    code = (
        "import sys; from prejudge.core.cli import main; sys.argv = ['prejudge', '--help']\n"
        "try: main()\nexcept SystemExit: pass\n"
        "heavy = {'torch', 'transformers', 'openai', 'polars', 'scipy', 'matplotlib', 'sqlmodel'} & set(sys.modules)\n"
        "print(sorted(heavy), file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Run a study on a model" in result.stdout and result.stderr.strip() == "[]"


def test_list_imports_no_backend(tmp_path):
    code = (
        "import sys; from prejudge.core.cli import main; sys.argv = ['prejudge', 'list']\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print(sorted({'torch', 'transformers', 'openai'} & set(sys.modules)), file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "bistereo-pairs" in result.stdout and result.stderr.strip() == "[]"


def test_version(prejudge):
    assert prejudge("--version").stdout.startswith("prejudge 0.")


def test_every_command_has_help(prejudge):
    for command in ("run", "resume", "score", "plan", "list", "cache", "measure"):
        assert "Usage:" in prejudge(command, "--help").stdout


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["plan", "bistereo-pair"], "unknown study 'bistereo-pair'. Did you mean 'bistereo-pairs'?"),
        (["run", "bistereo-pairs", "--model", "reference-masked-bias"], "unknown model 'reference-masked-bias'"),
        (["run", "bistereo-pairs", "--model", "hf-maskd:./x"], "unknown adapter 'hf-maskd'. Did you mean 'hf-masked'?"),
        (["run", "bistereo-pairs"], "the role 'subject': --model NAME"),
        (["plan", "bistereo-pairs", "--set", "per_cel=3"], "Did you mean 'per_cell'?"),
        (["plan", "bistereo-pairs", "--set", "per_cell=many"], "Expected `int"),
        (["plan", "bistereo-pairs", "--set", "axes=hight"], "Did you mean 'height'?"),
        (["plan", "bistereo-pairs", "--set", "trisentbias.resample=3"], "unknown option"),
        (["plan", "subtle-sai", "--set", "colour=3"], "unknown option 'colour' of subtle-sai"),
        (["plan", "crows-pairs"], "--data FILE"),
        (["plan", "crows-pairs", "--data", "none.csv"], "none.csv"),
        (["plan", "bistereo-pairs", "--model", "lexicon"], "which model 'lexicon' cannot do"),
        (["plan", "bistereo-pairs", "--model", "judge=simulated-fair"], "'judge'"),
        (["cache", "stats", "--store", "sqlite://"], "would be in memory"),
        (["score"], "the store prejudge.db does not exist"),
        (["cache", "stats"], "does not exist"),
        (["run", "bistereo-pairs", "--model", "a", "--model", "b"], "the role 'subject'"),
        (["run", "bistereo-pairs", "--model", "hf-masked:./nowhere"], "nowhere"),
    ],
)
def test_mistake_gets_one_line(prejudge, words, line):
    assert line in refused(prejudge(*words))


def test_plan_names_each_stage_on_one_line(prejudge):
    result = prejudge("plan", "indicasa", "--set", "samples=1")
    assert "Stage completions, role subject" in result.stdout.splitlines()


def test_unknown_key_in_own_registry(prejudge, tmp_path):
    (tmp_path / "registry.toml").write_text("[models.mine]\nadaptor = 'hf-masked'\n")
    said = refused(prejudge("list"))
    assert f"unknown key 'adaptor' of model 'mine' in {tmp_path}/registry.toml. Did you mean 'adapter'?" in said


def test_debug_shows_the_traceback_and_the_code(prejudge):
    result = prejudge("--debug", "plan", "nothing")
    assert "Traceback" in result.stderr and result.returncode != 0
    assert code_of(result) == "unknown-study"


def test_store_that_is_no_database(prejudge, tmp_path):
    (tmp_path / "prejudge.db").write_text("x" * 2000)
    words = ("run", "bistereo-pairs", "--model", "reference-masked-fair", "--set", "per_cell=1")
    assert "prejudge.db" in refused(prejudge(*words))
    assert code_of(prejudge("--debug", *words)) == "store.foreign"


def test_store_of_another_schema(prejudge, tmp_path):
    Store(tmp_path / "prejudge.db").close()
    with sqlite3.connect(tmp_path / "prejudge.db") as connection:
        connection.execute("UPDATE migration SET number = 99")
    connection.close()
    assert code_of(prejudge("--debug", "resume")) == "store.schema"


def test_option_of_a_study_given_as_one_of_the_command(prejudge):
    assert "--set per_cell=3" in prejudge("run", "subtle-sai", "--per-cell", "3").stderr
    assert "--set" not in prejudge("run", "subtle-sai", "--modle", "x").stderr  # a misspelling has its own suggestion
    assert "--set" not in prejudge("list", "--per-cell", "3").stderr


def test_missing_extra_gives_the_pip_line(tmp_path):
    code = (
        "import sys, importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name.split('.')[0] in ('torch', 'transformers') else find(name, *a)\n"
        "from prejudge.core.cli import main\n"
        "sys.argv = ['prejudge', 'run', 'bistereo-pairs', '--model', 'reference-masked-fair']\nmain()"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert f"pip install -e '{ROOT}[hf]'" in refused(result)
    assert not list(tmp_path.glob("runs/*"))


def test_run_score_explain_and_verify(prejudge, tmp_path):
    ran = prejudge("run", "bistereo-pairs", "--model", "reference-masked-biased", "--set", "per_cell=4")
    assert ran.returncode == 0, ran.stderr
    (folder,) = (tmp_path / "runs").iterdir()
    assert {
        "report.html",
        "answers.json",
        "estimates.parquet",
        "estimates.csv",
        "observations.parquet",
        "manifest.json",
    } <= {path.name for path in folder.iterdir()}
    assert str(folder.relative_to(tmp_path) / "report.html") in ran.stdout
    again = prejudge("run", "bistereo-pairs", "--model", "reference-masked-biased", "--set", "per_cell=4")
    assert "asked 0" in again.stderr and "cached 144" in again.stderr
    assert prejudge("score", folder.name).returncode == 0
    assert "144 exchanges checked, 0 problems" in prejudge("cache", "verify").stdout
    assert "Exchange: 144" in prejudge("cache", "stats").stdout
    key = json.loads((folder / "manifest.json").read_text())["run"]
    assert key == folder.name
    assert folder.name in prejudge("list", "runs", env=os.environ | {"COLUMNS": "200"}).stdout


def test_verify_finds_a_changed_answer(prejudge, tmp_path):
    prejudge("run", "bistereo-pairs", "--model", "reference-masked-fair", "--set", "per_cell=1")
    with sqlite3.connect(tmp_path / "prejudge.db") as connection:
        connection.execute("UPDATE exchange SET request = replace(request, 'woman', 'girl') WHERE id = 1")
        connection.execute("UPDATE exchange SET request = replace(request, 'saw', 'met') WHERE id = 1")
        connection.execute("UPDATE exchange SET request = replace(request, 'a', 'o') WHERE id = 1")
    connection.close()
    result = prejudge("cache", "verify")
    assert result.returncode == 1 and "exchange 1: its key does not follow" in result.stdout


@pytest.fixture
def slow(tmp_path):
    """Return the words that run a study on a slow model."""
    slow = "latency_seconds = 0.05\nbatch_items = 50\nstrength = 1.0"
    (tmp_path / "registry.toml").write_text(f'[models.slow]\nadapter = "simulated"\n[models.slow.settings]\n{slow}\n')
    return ["run", "bistereo-pairs", "--model", "slow", *SEVERAL]


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "terminated"])
def test_interrupted_run_keeps_answers_and_says_how_to_resume(slow, commands, tmp_path, sent):
    command = commands.start(tmp_path, *slow)
    kept = _wait_for_answers(tmp_path / "prejudge.db")
    command.kill(sent)
    code, said, _ = command.wait()
    assert code == 2 and b"Traceback" not in said
    assert "prejudge resume" in said.decode().strip().splitlines()[-1]
    with Store(tmp_path / "prejudge.db") as store, store.engine.connect() as connection:
        count = connection.exec_driver_sql("SELECT count(*) FROM exchange").scalar_one()
        assert connection.exec_driver_sql("SELECT state FROM run").scalar_one() == "interrupted"
    assert kept <= count < TRIALS


def test_killed_run_is_resumed_without_asking_again(prejudge, slow, tmp_path):
    process = subprocess.Popen([*PREJUDGE, *slow], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _wait_for_answers(tmp_path / "prejudge.db")
    process.kill()
    process.wait()
    with Store(tmp_path / "prejudge.db") as store:
        kept = statistics(store)["Exchange"]
        assert get_run(store, "latest").state == "running"
    assert 0 < kept < TRIALS
    resumed = prejudge("resume")
    assert resumed.returncode == 0, resumed.stderr
    assert f"asked {TRIALS - kept:,}, cached {kept:,}" in resumed.stderr
    assert "0 problems" in prejudge("cache", "verify").stdout
    undisturbed = prejudge(*slow, "--store", "other.db", "--runs", "other")
    assert undisturbed.returncode == 0
    one, other = (pl.read_parquet(next(tmp_path.glob(f"{runs}/*/estimates.parquet"))) for runs in ("runs", "other"))
    assert one.equals(other)


@pytest.mark.parametrize("words", [["score", "latest"], ["run", "bistereo-pairs", "--model", "simulated-fair"]])
def test_interrupted_scoring_says_how_to_go_on(monkeypatch, tmp_path, words):
    monkeypatch.chdir(tmp_path)
    small = ["--set", "per_cell=1", "--store", "own.db", "--runs", "out", "-q"]
    cli.main(["run", "bistereo-pairs", "--model", "simulated-fair", *small], standalone_mode=False)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"prejudge.core.cli.{words[0]}.score{'_run' if words[0] == 'score' else ''}", interrupted)
    with raises_code(UsageError, "run.interrupted", "--store own.db", "--runs out"):
        cli.main([*words, *(small if words[0] == "run" else small[2:6])], standalone_mode=False)


def test_killed_run_names_its_store(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    small = ["--set", "per_cell=1", "--store", "own.db", "-q"]
    cli.main(["run", "bistereo-pairs", "--model", "simulated-fair", *small], standalone_mode=False)
    with sqlite3.connect("own.db") as connection:
        connection.execute("UPDATE run SET state = 'running', finished = NULL")
        connection.execute("DELETE FROM run_trial WHERE ordinal = 0")
    connection.close()
    reseal("own.db")
    cli.main(["score", "--store", "own.db"], standalone_mode=False)
    (folder,) = Path("runs").iterdir()
    assert f"prejudge resume {folder.name} --store own.db" in " ".join(capsys.readouterr().out.split())
    with sqlite3.connect("own.db") as connection:
        connection.execute("DELETE FROM run_trial")
    connection.close()
    reseal("own.db")
    with raises_code(UsageError, "run.incomplete", folder.name, "--store own.db"):
        cli.main(["score", "--store", "own.db"], standalone_mode=False)


def _wait_for_answers(path: Path) -> int:
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        time.sleep(0.05)
        if path.exists():
            connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)
            try:
                count = connection.execute("SELECT count(*) FROM exchange").fetchone()[0]
            except sqlite3.OperationalError:
                count = 0
            finally:
                connection.close()
            if count:
                return count
    raise AssertionError("no answer was stored within 60 s")


def test_changed_data_is_not_resumed(prejudge, tmp_path):
    own = tmp_path / "own.csv"
    own.write_text("desirable,undesirable,axis,gender,sentiment\na tall man,a short man,height,men,neutral\n")
    assert prejudge("run", "bistereo-pairs", "--data", "own.csv", "--model", "reference-masked-fair").returncode == 0
    own.write_text(own.read_text().replace("man", "boy"))
    assert "'own.csv'" in refused(prejudge("resume"))
    assert code_of(prejudge("--debug", "resume")) == "run.data-changed"


def test_score_again_with_other_options(prejudge, tmp_path):
    prejudge("run", "bistereo-pairs", "--model", "reference-masked-biased", "--set", "per_cell=4")
    again = prejudge("score", "--set", "trisentbias.threshold_main=0.06")
    assert again.returncode == 0 and "threshold_main" in again.stdout and "0.06" in again.stdout
    assert "'per_cell'" in refused(prejudge("score", "--set", "per_cell=1"))
    assert "'resamples'" in refused(prejudge("score", "--set", "trisentbias.resample=1"))


def test_few_clusters_are_said(prejudge, tmp_path):
    over = ["--set", "per_cell=4", "--set", "trisentbias.over=template"]
    prejudge("run", "bistereo-pairs", "--model", "reference-masked-biased", *over)
    (report,) = (tmp_path / "runs").glob("*/report.html")
    assert "Nothing can be shown with 4 clusters" in report.read_text("utf-8")


def test_places_are_checked_before_asking(prejudge, tmp_path):
    (tmp_path / "afile").write_text("x")
    words = ["run", "bistereo-pairs", "--model", "reference-masked-fair", "--set", "per_cell=1"]
    assert "'afile'" in refused(prejudge(*words, "--runs", "afile"))
    assert "zzz" in refused(prejudge(*words, "--set", "trisentbias.over=zzz"))
    assert "'nope'" in refused(prejudge(*words, "--model", "nope=reference-masked-fair"))
    assert code_of(prejudge("--debug", *words, "--store", "")) == "store.url"
    with Store(tmp_path / "prejudge.db") as store:
        assert statistics(store)["Exchange"] == 0


def test_store_of_another_schema_is_named_when_reading_too(prejudge, tmp_path):
    Store(tmp_path / "prejudge.db").close()
    with sqlite3.connect(tmp_path / "prejudge.db") as connection:
        connection.execute("UPDATE migration SET number = 99")
    connection.close()
    assert code_of(prejudge("--debug", "cache", "stats")) == "store.schema"


@pytest.mark.parametrize(
    ("words", "code", "named"),
    [
        (["resume"], "store.missing", "prejudge.db"),
        (["lab", "recheck"], "store.missing", "prejudge.db"),
        (["cache", "prune", "--run", "x"], "store.missing", "prejudge.db"),
        (["run", "bistereo-pairs"], "study.role-missing", "--model NAME"),
        (["run", "crows-pairs", "--model", "simulated-fair"], "data.missing", "--data FILE"),
        (["run", "bistereo-pairs", "--model", "hf-masked:./none"], "model.not-found", "./none"),
        (["import", "bistereo-pairs", "--responses", "none.csv", "--model", "m"], "file.missing", "none.csv"),
    ],
)
def test_what_fails_at_once_leaves_nothing(monkeypatch, tmp_path, words, code, named):
    monkeypatch.chdir(tmp_path)
    with raises_code(UsageError, code, named):
        cli.main(words, standalone_mode=False)
    assert not list(tmp_path.iterdir())


def test_plan_says_how_often_an_answer_may_be_asked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, ["plan", "indicasa", "--set", "per_cell=2"])
    assert "5 requests per trial at most, 250 in total" in " ".join(done.output.split())
    assert "requests per trial" not in CliRunner().invoke(cli, ["plan", "bistereo-pairs", "--set", "per_cell=2"]).output


def test_orders_are_short_for_an_option():
    done = CliRunner().invoke(cli, ["plan", "subtle-sai", "--orders", "all", "--set", "per_cell=2"])
    plain = CliRunner().invoke(cli, ["plan", "subtle-sai", "--set", "orders=all", "--set", "per_cell=2"])
    assert done.exit_code == 0 and done.output == plain.output
