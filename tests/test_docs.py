"""The documentation says what is so: its Python runs, its data is read, its links and commands lead somewhere."""

from __future__ import annotations

import asyncio
import contextlib
import io
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
import tomllib
import types
import urllib.request
from collections.abc import Callable
from importlib.metadata import EntryPoint
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import msgspec
import polars as pl
import pytest

import prejudge
from prejudge.core.catalogue.constructs import read_construct
from prejudge.core.catalogue.plugins import Plugged, Plugins, Registered
from prejudge.core.catalogue.registry import Registry, StudyEntry, parse_registry
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.catalogue.validation import problems_of
from prejudge.core.cli.main import cli
from prejudge.core.design.folder import About, read_about
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.gate.policy import parse_policy
from prejudge.core.scoring.score import score
from prejudge.core.store import Store, list_runs
from prejudge.metrics.measures.declaring import MeasureTable
from prejudge.probes.own_table.declared import table_form
from prejudge.testing import ChaosServer

from .command import blank_figure
from .docs_pages import PAGES, ROOT, SHELL, Block, blocks, blocks_of, lines_of, name_of, told_commands, write_files

# No test here looks at a figure.
pytestmark = pytest.mark.usefixtures("no_figures")
ELSEWHERE = {"docs/adapters/new.md": "tests/contracts/test_docs_example.py"}
"""Pages whose Python another file runs."""
PYTHON = [block for block in blocks("python") if name_of(block.page) not in ELSEWHERE]
WRITTEN = [
    *ROOT.glob("*.md"),
    *(page for folder in ("docs", "adapters", "probes") for page in (ROOT / folder).rglob("*.md")),
]
"""All pages of prose, those of data folders too."""
REGISTRY = {"adapters", "models", "studies", "probes", "metrics"}
"""Tables of a registry."""


def named(found: list[Block]) -> dict[str, Any]:
    """Return how pytest is to parametrize by blocks: their page and place."""
    return {"argvalues": found, "ids": [f"{name_of(block.page)}-{number}" for number, block in enumerate(found)]}


def module(monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> types.ModuleType:
    """Run a block as a module of that name."""
    monkeypatch.setitem(sys.modules, name.partition(".")[0], types.ModuleType(name.partition(".")[0]))
    made = types.ModuleType(name)
    monkeypatch.setitem(sys.modules, name, made)
    exec(compile(text, name, "exec"), vars(made))
    return made


def run_of_a_study(block: Block, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exec(compile(block.text, name_of(block.page), "exec"), {})
    assert list(place.glob("runs/*/report.html"))


def variance_of_a_run(block: Block, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = {"per_cell": 4, "axes": ["height"], "trisentbias.resamples": 99}
    run = prejudge.run("bistereo-pairs", "simulated-biased", **small)
    names: dict[str, Any] = {"prejudge": prejudge}
    exec(compile(block.text.replace("RUN", run.name), name_of(block.page), "exec"), names)
    assert names["result"].estimates.height and names["result"].designs.height


def tables_of_runs(block: Block, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read the tables that runs left."""
    import polars as pl

    for name in ("one", "two"):
        (place / "runs" / name).mkdir(parents=True)
        pl.DataFrame({"trial": [name]}).write_parquet(place / "runs" / name / "observations.parquet")
    names: dict[str, Any] = {}
    exec(compile(block.text, name_of(block.page), "exec"), names)
    assert sorted(names["observations"]["trial"]) == ["one", "two"]


def effects_of_a_design(block: Block, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names: dict[str, Any] = {}
    exec(compile(block.text, name_of(block.page), "exec"), names)
    assert (names["effects"].estimates["value"] > 0).all()


def probe_of_a_plugin(block: Block, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask a model with the probe, and measure with the metric."""
    names = vars(module(monkeypatch, "my_bias.probe", block.text))
    catalogue = Catalogue.load()
    for kind, name in (("probe", "MyProbe"), ("metric", "MyMetric")):
        catalogue.plugins.offers[kind][name] = Registered(Plugged(name, names[name]), "my-bias")
    catalogue.registry.studies["my-study"] = StudyEntry(probe="MyProbe", metrics={"MyMetric": {}})
    study = catalogue.study("my-study", {"subject": "reference-masked-fair"}, {})
    with Store(place / "s.db") as store:
        scores = score(catalogue, store, asyncio.run(execute(catalogue, study, store, RunOptions())))
    (estimate,) = scores.estimates["MyMetric"]
    assert estimate.n == 2 and estimate.value is not None


def hook_of_a_plugin(block: Block, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Call the hook, and find what it offers in the module that the page shows."""
    (offered,) = module(monkeypatch, "my_bias.plugin", block.text).prejudge_probes()
    target, _, attribute = offered.target.partition(":")
    (shown,) = (found for found in PYTHON if found.text.startswith(f"# {target.replace('.', '/')}.py"))
    assert issubclass(getattr(module(monkeypatch, target, shown.text), attribute), __import__("prejudge").Probe)


def studies_of_a_plugin(block: Block, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Call the hook in a package that has the study file."""
    (place / "brings_studies").mkdir()
    (place / "brings_studies" / "my-study.toml").write_text('probe = "crows-pairs"\nmetrics = {}\n')
    (place / "brings_studies" / "plugin.py").write_text(block.text)
    monkeypatch.syspath_prepend(place)
    plugins = Plugins(Registry(), [EntryPoint("brings", "brings_studies.plugin", "prejudge")])
    assert plugins.problems == [] and list(plugins.studies) == ["my-study"]


def kit_of_a_plugin(block: Block, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run every rule of the kit, on the probe and the metric that the page on plugins shows."""
    (shown,) = (found for found in PYTHON if "class MyProbe" in found.text)
    module(monkeypatch, "my_bias.probe", shown.text)
    names: dict[str, Any] = {}
    exec(compile(block.text, name_of(block.page), "exec"), names)
    for name in ("TestProbe", "TestMetric"):
        rules = [rule for rule in dir(names[name]) if rule.startswith("test_") and "process" not in rule]
        assert len(rules) > 3
        for rule in rules:
            getattr(names[name](), rule)()


def declared_design(block, folder, monkeypatch):
    exec(block.text, {})


def declared_metric(block: Block, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Declare the metric; `test_declared_stereoset.py` computes its numbers again."""
    shown = vars(module(monkeypatch, "my_bias.stereoset", block.text))["StereoSet"]
    assert list(shown.measures) == ["language_score", "stereotype_score", "ties", "icat"]


def code_of_an_error(block: Block, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Print what the comment of the page says."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(block.text, name_of(block.page), "exec"), {})
    assert said.getvalue().strip() == block.text.rpartition("  # ")[2].strip()


def before_the_chaos_server(block: Block, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the test, with a caller in the place of an adapter."""

    def ask_my_adapter(url: str) -> list[bytes]:
        call = urllib.request.Request(f"{url}/chat/completions", b'{"model": "m", "messages": [{"content": "a"}]}')
        call.add_header("Authorization", "Bearer key")
        with urllib.request.urlopen(call) as answer:
            return [answer.read()]

    names: dict[str, Any] = {"ask_my_adapter": ask_my_adapter}
    exec(compile(block.text, name_of(block.page), "exec"), names)
    with ChaosServer() as server:
        names["test_retries"](server)
        assert server.seen


def variants_of_a_model(block: Block, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run it, and see that the variants were compared."""
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", blank_figure)
    names: dict[str, Any] = {}
    exec(compile(block.text, name_of(block.page), "exec"), names)
    assert len(names["done"].comparison.runs) == 2


def metric_of_reasoning(block: Block, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Count with it: one of two answers with reasoning names a gender, and one answer has none."""
    shown = vars(module(monkeypatch, "my_bias.named", block.text))["Named"]
    texts = ["A woman, then.", "The wisest choice.", None]
    frame = pl.DataFrame({"trial": ["1", "2", "3"], "reasoning": texts, "status": ["ok"] * 3, "reason": [None] * 3})
    (estimate,) = [e for e in shown().compute(frame, shown.options()) if e.metric == "named"]
    assert (estimate.value, estimate.n, estimate.missing.total) == (50.0, 2, 1)


def readers_of_answers(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluate each expression of the block, which its comment gives the value of."""
    first, *examples = block.text.strip().splitlines()
    assert first == "from prejudge import reading" and len(examples) > 1
    for line in filter(None, examples):
        expression, _, value = line.partition("  # ")
        assert repr(eval(expression, {"reading": prejudge.reading})) == value


RUNNERS: dict[str, Callable[[Block, Path, pytest.MonkeyPatch], None]] = {
    "def prejudge_studies": studies_of_a_plugin,
    "prejudge.run(": run_of_a_study,
    "prejudge.vary(": variants_of_a_model,
    "prejudge.variance(": variance_of_a_run,
    "read_parquet(": tables_of_runs,
    "smallest_effects(": effects_of_a_design,
    "class MyProbe": probe_of_a_plugin,
    "class Named": metric_of_reasoning,
    "class StereoSet": declared_metric,
    "def prejudge_probes": hook_of_a_plugin,
    "class TestProbe": kit_of_a_plugin,
    "chaos_server": before_the_chaos_server,
    "design.Design(": declared_design,
    "reading.read_": readers_of_answers,
    "error.code": code_of_an_error,
}
"""How a block is run, by what stands in it."""


@pytest.mark.parametrize("block", **named(PYTHON))
def test_python_of_the_pages_runs(block, tmp_path, monkeypatch):
    pytest.importorskip("torch", reason="needs the extra hf")
    monkeypatch.chdir(tmp_path)
    (runner,) = (runner for mark, runner in RUNNERS.items() if mark in block.text)
    runner(block, tmp_path, monkeypatch)


def test_python_of_other_pages_is_run_elsewhere():
    left = [block for block in blocks("python") if block not in PYTHON]
    assert len(PYTHON) >= 6 and {name_of(block.page) for block in left} == set(ELSEWHERE)
    for page, test in ELSEWHERE.items():
        # That test takes all blocks of its page, and fails if there are more than it runs.
        assert page.rpartition("/")[2] in (ROOT / test).read_text("utf-8")
    assert len(left) == 3


@pytest.mark.parametrize("block", **named(blocks("toml")))
def test_toml_of_the_pages_is_read_as_what_it_is(block, tmp_path):
    data, where = tomllib.loads(block.text), name_of(block.page)
    if "probe" in data:
        path = tmp_path / (block.title or "study.toml")
        path.write_text(block.text, "utf-8")
        assert problems_of(str(path), Catalogue.load()) == []
    elif data.keys() & REGISTRY:
        # A part of a study's entry stands with the rest of it.
        part = any("probe" not in study for study in data.get("studies", {}).values())
        rest = '[studies.my-study]\nprobe = "crows-pairs"\nmetrics = {}\n' if part else ""
        assert parse_registry(rest + block.text, where)
    elif "methods" in data:
        (tmp_path / "construct.toml").write_text(block.text, "utf-8")
        assert len(read_construct(tmp_path / "construct.toml")[1].methods) > 1
    elif data.keys() <= {*About.__struct_fields__}:
        (tmp_path / "about.toml").write_text(block.text, "utf-8")
        assert read_about(str(tmp_path)) is not None
    elif "design" in data:
        write_files(block.page, tmp_path)
        assert problems_of(str((tmp_path / block.title).parent), Catalogue.load()) == []
    elif data.keys() == {"measures"}:
        assert msgspec.convert(data["measures"], list[MeasureTable])
    elif "outcome" in data:
        assert table_form(data).measures
    elif "rules" in data:
        assert parse_policy(block.text, where).rules
    else:
        assert not data or set(data) <= {"project", "tool"}, f"{where}: nobody reads this: {block.text}"


@pytest.mark.parametrize("block", **named(blocks("sql")))
def test_sql_of_the_pages_runs(block, tmp_path):
    with Store(tmp_path / "s.db"):
        pass
    opened = sqlite3.connect(tmp_path / "s.db")
    statements = [text for text in block.text.split(";") if text.strip()]
    assert len(statements) == 3
    for text in statements:
        opened.execute(text).fetchall()
    opened.close()


def test_every_block_is_of_a_kind_that_is_tested():
    shown = [block for page in PAGES for block in blocks_of(page)]
    kinds = {*SHELL, "python", "py", "toml", "sql", "csv", "text", "yaml", "console", "pycon"}
    assert {block.language for block in shown} <= kinds
    # Signatures, which are no programs; test_reference_pages.py holds them to the code.
    assert {name_of(block.page) for block in shown if block.language == "py"} == {"docs/reference/api.md"}
    # Examples of docstrings, which test_door.py runs.
    assert {name_of(block.page) for block in shown if block.language == "pycon"} == {"docs/reference/api.md"}
    # Typed in the folder of a package that `prejudge new` wrote; test_plugin_package.py builds and uses such a one.
    # What a command of the page before it printed, or models answered, in part; what is signed, which
    # test_signatures.py gives to ssh-keygen; the floors, which test_reference_pages.py holds to the import contract.
    printed = {"docs/plugins.md", "docs/statistics.md", "docs/store.md", "docs/design/house.md"}
    printed |= {"docs/author.md", "docs/real-models.md"}
    assert {name_of(block.page) for block in shown if block.language == "text"} <= printed
    # Typed on several machines; tests/core/workers/test_ray.py joins a cluster by its address on one.
    assert {name_of(block.page) for block in shown if block.language == "console"} <= {"docs/guides/workers.md"}
    # Read by tests/core/gate/test_gate.py.
    assert {name_of(block.page) for block in shown if block.language == "yaml"} <= {"docs/gate.md"}
    # A file of data is one that a command of the page reads.
    assert all(block.title for block in shown if block.language == "csv")


def extras() -> set[str]:
    return set(tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"])


def other_lines() -> list[tuple[str, str]]:
    """Return page and line of the shell's commands that are not `prejudge`."""
    lines = [(block, line) for page in PAGES for block in blocks_of(page) for line in lines_of(block)]
    programs = ("pip", "make", "python", "pytest")
    # A block without a language may be no shell's.
    told = [(b, line) for b, line in lines if b.language == "bash" or line.split()[0] in programs]
    return [(name_of(block.page), line) for block, line in told if not line.startswith("prejudge ")]


@pytest.mark.parametrize(("page", "line"), other_lines())
def test_other_commands_of_the_pages_name_what_is_there(page, line, tmp_path):
    program, first, *_ = [*shlex.split(line), ""]
    if program == "pip":
        if wanted := re.search(r"(?:prejudge|\.)\[([^]]+)\]", line):
            assert set(wanted[1].split(",")) <= extras()
        else:
            # In a checkout: its files, the package itself, or a version that it pins.
            pinned = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
            words = [word for word in line.split()[2:] if not word.startswith("-")]
            assert words and all(word in pinned or (ROOT / word).exists() for word in words)
    elif program == "make":
        assert re.search(rf"^{first}:", (ROOT / "Makefile").read_text("utf-8"), re.M)
    elif program == "pytest":
        known = (ROOT / "core" / "pytest_plugin.py").read_text("utf-8")
        assert all(word in known for word in line.split() if word.startswith("--"))
    elif program == "sqlite3":
        with Store(tmp_path / first):
            pass
        if shutil.which(program):
            subprocess.run(shlex.split(line), cwd=tmp_path, check=True)
            with Store(tmp_path / "copy.db", writable=False) as copied:
                assert list_runs(copied) == []
    else:
        name = re.match(r"export (\w+)=", line)
        assert name and (name[1] == "AWS_REGION" or name[1] in KEYS), f"{page}: nobody tests {line}"


@pytest.mark.parametrize(("page", "text"), sorted(set(told_commands())))
def test_command_that_is_only_told_exists(page, text):
    words = [word for word in shlex.split(text.replace("...", ""))[1:] if not re.fullmatch(r"[\[\]|]+", word)]
    group: Any = cli
    context = click.Context(group)
    while isinstance(group, click.Group) and words and not words[0].startswith("-"):
        names = words.pop(0).split("|")
        found = [group.get_command(context, name) for name in names]
        assert None not in found, f"{page}: {text}"
        group, context = found[0], click.Context(found[0])
    known = {option for parameter in group.params for option in (*parameter.opts, *parameter.secondary_opts)}
    assert {word.partition("=")[0] for word in words if word.startswith("--")} <= known | {"--help"}, f"{page}: {text}"


KEYS = {"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"}
"""Variables that adapters read their keys from."""


def test_benchmarks_that_the_pages_name_are_there():
    told = {path for page in PAGES for path in re.findall(r"\bpython (\w+/\w+\.py)", page.read_text("utf-8"))}
    assert len(told) > 3 and all((ROOT / path).is_file() for path in told)


@pytest.mark.parametrize("page", PAGES, ids=map(name_of, PAGES))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text("utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


ROW = re.compile(r"\s*\|.*")
RULE = re.compile(r"\s*\|[\s:|-]+\|\s*")


def cut_rows(text):
    """Return the rows that a blank line cuts off from their table: a page shows them as a line of text."""
    lines = re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.M | re.S).split("\n")
    filled = [(number, line) for number, line in enumerate(lines) if line.strip()]
    return [
        line
        for (above, row), (number, line) in pairwise(filled)
        if ROW.fullmatch(row)
        and ROW.fullmatch(line)
        and number > above + 1
        # The head of a table that follows another has its rule below.
        and not (number + 1 < len(lines) and RULE.fullmatch(lines[number + 1]))
    ]


def test_row_after_a_blank_line_is_cut_off():
    table = "| a |\n| - |\n| 1 |\n"
    assert cut_rows(f"{table}\n| 2 |\n") == cut_rows(f"{table}\n\n| 2 |\n| 3 |\n") == ["| 2 |"]
    assert cut_rows(f"{table}\n{table}") == cut_rows(f"```\n{table}\n| 2 |\n```\n") == []


@pytest.mark.parametrize("page", WRITTEN, ids=map(name_of, WRITTEN))
def test_tables_are_not_cut_by_blank_lines(page):
    assert cut_rows(page.read_text("utf-8")) == []
