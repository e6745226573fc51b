"""`prejudge doctor` without a model: what is installed, seen and kept."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from packaging.requirements import Requirement

from prejudge.core.catalogue import packages
from prejudge.core.catalogue.packages import requirements_of
from prejudge.core.cli.main import cli
from prejudge.core.contracts.installing import install_line
from prejudge.core.doctor import installation as installed
from prejudge.core.doctor.installation import Fact, devices, lack_of, look_around
from prejudge.core.store import Store

METADATA = [
    "numpy>=2.0",
    'torch>=2.4; extra == "hf"',
    "prejudge[hf]; extra == 'vlm'",
    'pillow>=11; extra == "vlm"',
    'ruff; extra == "dev"',
]


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PREJUDGE_STORE", raising=False)
    monkeypatch.setattr(installed, "devices", lambda: [Fact("device", "cpu", "2 threads")])
    return tmp_path


def doctor(*words: str):
    return CliRunner().invoke(cli, ["doctor", *words], standalone_mode=False)


def test_extras_that_build_on_others_are_taken_apart(monkeypatch):
    monkeypatch.setattr(packages, "requires", lambda _: METADATA)
    found = {extra: [r.name for r in wanted] for extra, wanted in requirements_of("prejudge").items()}
    assert found == {"hf": ["torch"], "vlm": ["torch", "pillow"]}


@pytest.mark.parametrize(
    ("wanted", "lack"),
    [("numpy>=1", None), ("no-such-thing>=2", "no-such-thing>=2"), ("numpy>=999", "numpy>=999 (is ")],
)
def test_lack_names_what_is_missing_or_too_old(wanted, lack):
    found = lack_of(Requirement(wanted))
    assert found is None if lack is None else found.startswith(lack)


def test_extra_that_lacks_something_says_how_to_add_it(place, monkeypatch):
    monkeypatch.setattr(packages, "requires", lambda _: ['no-such-thing>=2; extra == "hf"'])
    done = doctor()
    # A long path is broken within its cell.
    words = re.sub(r"[\s│┃]", "", done.output)
    assert done.return_value == 0 and f"lacks no-such-thing>=2: {install_line('hf')}".replace(" ", "") in words


def test_store_that_is_not_there_yet_is_not_wrong_and_not_made(place):
    (fact,) = (fact for fact in look_around(SimpleNamespace(loaded=[], problems=[]), "new.db") if fact.part == "store")
    assert not fact.wrong and fact.name == str(place / "new.db") and not list(place.iterdir())


def test_runs_of_the_store_are_counted(place):
    with Store("prejudge.db") as store:
        store.begin_run("a-run", "crows-pairs", b"{}")
    (store_fact,) = (fact for fact in look_around(SimpleNamespace(loaded=[], problems=[]), "prejudge.db")[-1:])
    assert store_fact == Fact("store", str(place / "prejudge.db"), "1 run")


def test_store_that_is_none_must_be_mended(place):
    (place / "prejudge.db").write_text("no database, but long enough to be taken for one" * 20)
    done = doctor()
    assert done.return_value == 1 and "WRONG" in done.output and "not a database" in done.output


def test_password_of_a_store_is_not_shown(place):
    done = doctor("--store", "nothing://me:geheim@there/db")
    assert done.return_value == 1 and "geheim" not in done.output


def test_disabled_plugin_must_be_mended(place, monkeypatch):
    plugins = SimpleNamespace(loaded=["prejudge"], problems=["plugin 'x' is disabled: [y]"])
    facts = [fact for fact in look_around(plugins, "prejudge.db") if fact.part == "plugin"]
    assert [(fact.name, fact.wrong) for fact in facts] == [("prejudge", False), ("", True)]


def test_devices_without_torch_are_unknown(monkeypatch):
    monkeypatch.setattr(installed, "find_spec", lambda _: None)
    assert [fact.detail for fact in devices()] == ["unknown: torch is not installed"]


def test_devices_that_torch_sees_are_named(monkeypatch):
    torch = SimpleNamespace(
        cuda=SimpleNamespace(
            device_count=lambda: 1,
            get_device_properties=lambda number: SimpleNamespace(name="H200", total_memory=139 * 2**30),
        ),
        backends=SimpleNamespace(mps=SimpleNamespace(is_available=lambda: False)),
        get_num_threads=lambda: 8,
    )
    monkeypatch.setattr(installed, "find_spec", lambda _: object())
    monkeypatch.setattr(installed, "import_module", lambda _: torch)
    seen = [(fact.name, fact.detail) for fact in devices()]
    assert seen == [("cuda:0", "H200, 139 GiB"), ("cpu", "8 threads")]


def test_operation_without_a_model_is_refused(place):
    done = doctor("--operation", "embed")
    assert done.exception.code == "options.conflict"
