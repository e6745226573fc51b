"""A registry that lies in the working directory runs no code, uses no key and redirects no model unasked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import prejudge
from prejudge.core.catalogue.registry import parse_registry
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.catalogue.trust import (
    built_in_registry,
    config_folder,
    load_allowed,
    load_registry,
    read_candidate,
    wants_of,
)
from prejudge.core.contracts.errors import DataError, UsageError
from prejudge.testing import raises_code

from ...command import Done, call
from ...listener import Listener, listening

SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
OPENAI = "sk-test-0123456789abcdefghij"


@pytest.fixture(scope="module")
def _stranger() -> Iterator[Listener]:
    with listening(401) as server:
        yield server


@pytest.fixture
def stranger(_stranger: Listener) -> Listener:
    _stranger.heard = []
    return _stranger


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that somebody else made, in which the user stands with secrets in the environment."""
    monkeypatch.setenv("PREJUDGE_CONFIG", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("OPENAI_API_KEY", OPENAI)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    folder = tmp_path / "clone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def refused(done: Done | subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 2, (done.stdout, done.stderr)
    # Before it `doctor` may say what it does.
    *steps, line = done.stderr.strip().splitlines()
    assert all(step.endswith(" ...") for step in steps), done.stderr
    return str(line)


def left_out(folder: Path) -> bool:
    """Return whether the list leaves out a part of the folder's registry."""
    done = call(folder, "list", "models")
    assert done.returncode == 0, done
    return "Left out: " in done.stderr


def wants(text: str) -> list[str]:
    Path("registry.toml").write_text(text, "utf-8")
    return [want.sentence for want in wants_of(read_candidate(Path("registry.toml")))]


def stealing(stranger: Listener, **settings: object) -> str:
    """Return the registry of the attack: a built-in name, another address, and somebody's secret as the key."""
    known = {
        "model": "gpt-4o",
        "base_url": f"http://127.0.0.1:{stranger.server_port}/v1",
        "api_key_env": "AWS_SECRET_ACCESS_KEY",
    } | settings
    lines = "\n".join(f"{name} = {json.dumps(value)}" for name, value in known.items())
    return f'[models.gpt-4o]\nadapter = "openai"\n[models.gpt-4o.settings]\n{lines}\n'


def test_a_registry_that_lies_there_may_not_choose_what_commands_use(clone):
    (want,) = wants('[defaults]\ncompare = "contrast"\n')
    assert want.startswith("default 'compare'")
    with raises_code(UsageError, "registry.untrusted"):
        load_registry()
    assert load_allowed()[0].defaults == built_in_registry().defaults


def test_secret_is_not_sent_by_a_registry_that_lies_there(clone, stranger):
    pytest.importorskip("openai", reason="needs the extra openai")
    (clone / "registry.toml").write_text(stealing(stranger))
    words = [sys.executable, "-m", "prejudge.core.cli", "run", "subtle-sai", "--model", "gpt-4o", "--set", "per_cell=1"]
    done = subprocess.run(words, cwd=clone, capture_output=True, text=True, timeout=120, env=dict(os.environ))
    line = refused(done)
    assert "prejudge trust" in line and "--registry registry.toml" in line and SECRET not in line
    assert not stranger.heard and not (clone / "prejudge.db").exists()
    for words in (["doctor", "gpt-4o"], ["plan", "subtle-sai", "--model", "gpt-4o"], ["resume"], ["score"]):
        assert "not trusted" in refused(call(clone, *words)), words
    with raises_code(UsageError, "registry.untrusted"):
        prejudge.plan("subtle-sai", "gpt-4o")
    assert not stranger.heard
    # The attack is a real one: named by the user, the file does what it says.
    call(clone, "doctor", "gpt-4o", "--registry", "registry.toml")
    assert any(f"Bearer {SECRET}" in heard for heard in stranger.heard)


def test_trust_is_for_this_file_at_this_place_until_it_changes(clone, stranger):
    pytest.importorskip("openai", reason="needs the extra openai")
    file = clone / "registry.toml"
    file.write_text(stealing(stranger))
    shown = call(clone, "trust", input="n\n")
    assert shown.returncode == 2 and "AWS_SECRET_ACCESS_KEY" in shown.stdout and "gpt-4o" in shown.stdout
    assert left_out(clone)
    assert call(clone, "trust", input="y\n").returncode == 0
    assert not left_out(clone)
    call(clone, "doctor", "gpt-4o")
    assert any(f"Bearer {SECRET}" in heard for heard in stranger.heard)
    assert str(file.resolve()) in call(clone, "trust", "--list").stdout

    elsewhere = clone.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "registry.toml").write_bytes(file.read_bytes())
    assert left_out(elsewhere)

    file.write_text(stealing(stranger) + "\n# changed\n")
    assert left_out(clone)
    file.write_text(stealing(stranger))
    assert not left_out(clone)
    assert call(clone, "trust", "--revoke").returncode == 0
    assert left_out(clone)


def test_default_key_is_not_sent_by_a_new_name(clone, stranger):
    pytest.importorskip("openai", reason="needs the extra openai")
    url = f"http://127.0.0.1:{stranger.server_port}/v1"
    (clone / "registry.toml").write_text(f'[models.x]\nadapter="openai"\nsettings={{model="m", base_url="{url}"}}\n')
    # The address is this machine's own, so that the file is read; but the key belongs to another host.
    assert "OPENAI_API_KEY is not sent" in refused(call(clone, "doctor", "x"))
    assert "OPENAI_API_KEY is not sent" in refused(call(clone, "doctor", "x", "--registry", "registry.toml"))
    assert not stranger.heard
    keyless = (clone / "registry.toml").read_text().replace('"m"', '"m", api_key_env = ""')
    (clone / "registry.toml").write_text(keyless)
    call(clone, "doctor", "x")
    assert stranger.heard and not any("Bearer" in heard or OPENAI in heard for heard in stranger.heard)


def test_code_in_the_folder_is_not_run(clone, monkeypatch):
    monkeypatch.syspath_prepend(str(clone))
    (clone / "evil.py").write_text("from pathlib import Path\nPath('ran').touch()\n")
    (clone / "evil_package").mkdir()
    (clone / "evil_package" / "__init__.py").write_text("from pathlib import Path\nPath('ran').touch()\n")
    for text in (
        '[adapters.a]\ntarget = "evil:A"\n[models.m]\nadapter = "a"',
        '[probes.p]\ntarget = "evil:P"\n[studies.s]\nprobe = "p"\nmetrics = {}',
        '[metrics.contrast]\ntarget = "evil:M"',
        '[models.m]\nadapter = "hf-masked"\nsettings = { model = "package:evil_package/x" }',
    ):
        (clone / "registry.toml").write_text(text)
        assert left_out(clone)
        for words in (["doctor", "m"], ["plan", "s", "--model", "m"]):
            assert "not trusted" in refused(call(clone, *words)), text
        assert call(clone, "trust", input="n\n").returncode == 2
    assert not (clone / "ran").exists()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('[models.gpt-4o]\nadapter = "simulated"', "'gpt-4o' takes the place"),
        ('[models.bert-large]\nadapter = "hf-masked"\nsettings = { model = "./bert" }', "takes the place"),
        ('[models."hf-masked:a/b"]\nadapter = "hf-masked"\nsettings = { model = "./bert" }', "takes the place"),
        ('[studies.subtle-sai]\nprobe = "subtle"\nmetrics = { subtle = {} }', "study 'subtle-sai' takes the place"),
        ('[adapters.simulated]\ntarget = "a:B"', "runs Python code: a:B"),
        ('[models.x]\nadapter = "somebodys"', "'somebodys'"),
        ('[models.x]\nadapter = "openai"\nsettings = { model = "gpt-4o" }', "own address"),
        ('[models.x]\nadapter = "openai"\nsettings = { model = "m", api_key_env = "" }', "own address"),
        *(
            (
                f'[models.x]\nadapter = "openai"\nsettings = {{ model = "m", api_key_env = "", base_url = {url!r} }}',
                "asks the address",
            )
            for url in (
                "https://evil.example/v1",
                "http://127.0.0.1.evil.example/v1",
                "http://127.0.0.1@evil.example/v1",
                "http://127.0.0.1\\\\@evil.example/",
                "http://localhost.evil.example/",
                "http://[::2]/v1",
                "http://10.0.0.1/v1",
                "http://127.0.0.1:80@evil.example/",
                "http://localhost:1/v1?x=http://evil.example",
                "HTTP://evil.example",
                "evil.example/v1",
            )
        ),
        *(
            (
                f'[models.x]\nadapter = "openai"\nsettings = {{ model = "m", base_url = "http://[::1]/v1", {key} }}',
                "key",
            )
            for key in ('api_key_env = "HOME"', 'api_key_env = "OPENAI_API_KEY"', 'api_key_file = "./k"')
        ),
        ('[models.x]\nadapter = "hf-causal"\nsettings = { model = "./m", trust_remote_code = true }', "lets code run"),
        ('[models.x]\nadapter = "hf-causal"\nsettings = { model = "a/b", trust_remote_code = 1 }', "lets code run"),
        ('[models.x]\nadapter = "hf-encoder"\nsettings = { model = "./m", allow_pickle = true }', "lets code run"),
        *(
            (f'[models.x]\nadapter = "hf-masked"\nsettings = {{ model = {path!r} }}', "outside")
            for path in ("/etc", "~/.ssh", "../other", "./a/../../other", "a\\\\..\\\\..\\\\b", "..")
        ),
        ('[models.x]\nadapter = "hf-masked"\nsettings = { model = "package:os/x" }', "another package"),
        ('[models.x]\nadapter = "hf-masked"\nsettings = { model = "package:prejudge/../x" }', "another package"),
        ('[models.x]\nadapter = "hf-masked"\nsettings = { model = "package:prejudgement/x" }', "another package"),
        ('[studies.s]\nprobe = "subtle"\nmetrics = {}\noptions = { data = "/etc/passwd" }', "outside"),
        ('[studies.s]\nprobe = "dora-t2t"\nmetrics = { dora-associations = { human = "../x" } }', "outside"),
        ('[studies.s]\nprobe = "subtle"\nmetrics = {}\nroles = { judge = "gpt-4o" }', "asks 'gpt-4o' as judge"),
        ('[studies.s]\nprobe = "subtle"\nmetrics = {}\nroles = { judge = "openai:gpt-4o" }', "own address"),
        ('[studies.s]\nprobe = "subtle"\nmetrics = {}\nroles = { judge = "hf-causal:/etc" }', "outside"),
    ],
)
def test_what_needs_trust(clone, text, named):
    found = wants(text)
    assert any(named in want for want in found), found
    with raises_code(UsageError, "registry.untrusted", "prejudge trust") as caught:
        load_registry()
    assert caught.value.fields["wants"] == found


@pytest.mark.parametrize(
    "text",
    [
        '[models.my-bert]\nadapter = "hf-masked"\nsettings = { model = "./my-bert", dtype = "bfloat16" }',
        '[models.planted]\nadapter = "simulated"\nsettings = { strength = 1.0, seed = 4 }',
        '[models.x]\nadapter = "hf-causal"\nsettings = { model = "org/name", trust_remote_code = false }',
        '[models.x]\nadapter = "hf-causal"\nsettings = { model = "./m", system_prompt = "Q: say a/b. Or not ..?" }',
        '[models.x]\nadapter = "simulated"\nsettings = { blanks = "package:prejudge.adapters.simulated/blanks.toml" }',
        *(
            f'[models.x]\nadapter = "openai"\nsettings = {{ model = "m", base_url = "{url}", api_key_env = "" }}'
            for url in ("http://127.0.0.1:8000/v1", "http://localhost:1234/v1", "https://[::1]/v1", "http://127.9.9.9")
        ),
        '[studies.mine]\nprobe = "subtle"\nmetrics = { subtle = {} }\noptions = { data = "./mine.csv" }',
        '[studies.mine]\nprobe = "subtle"\nmetrics = {}\nroles = { judge = "lexicon" }',
        "",
    ],
)
def test_what_needs_none(clone, text):
    assert wants(text) == []
    load_registry()
    assert "needs no trust" in call(clone, "trust").stdout and not (clone.parent / "config").exists()


def test_links_that_lead_out_need_trust(clone, tmp_path):
    text = '[models.x]\nadapter = "hf-masked"\nsettings = { model = "MODEL" }'
    private = tmp_path / "private"
    private.mkdir()
    (private / "model.safetensors").touch()
    (clone / "linked").symlink_to(private)
    (clone / "folder").mkdir()
    assert wants(text.replace("MODEL", "./folder")) == []
    (clone / "folder" / "config.json").touch()
    (clone / "folder" / "model.safetensors").symlink_to("config.json")
    assert wants(text.replace("MODEL", "./folder")) == []
    (clone / "folder" / "inner").mkdir()
    (clone / "folder" / "inner" / "model.safetensors").symlink_to(private / "model.safetensors")
    (clone / "circle").symlink_to(clone / "circle")
    for name in ("./linked", "linked", "linked/", "./folder", "folder/inner", "./circle/x"):
        assert len(wants(text.replace("MODEL", name))) == 1, name
    # A link to a file elsewhere, whose `./` would be of that place.
    (private / "registry.toml").write_text(text.replace("MODEL", "./model.safetensors"))
    (clone / "registry.toml").unlink()
    (clone / "registry.toml").symlink_to(private / "registry.toml")
    assert any("is a link" in want.says for want in wants_of(read_candidate(Path("registry.toml"))))


def test_folder_with_a_hub_name_is_not_read_for_a_built_in_model(clone):
    (clone / "google-bert" / "bert-large-uncased").mkdir(parents=True)
    with raises_code(UsageError, "model.shadowed", "hf-masked:./google-bert/bert-large-uncased"):
        Catalogue.load().adapter("bert-large")


def test_named_file_needs_no_trust(clone):
    Path("mine.toml").write_text('[models.gpt-4o]\nadapter = "simulated"\n')
    assert load_registry("mine.toml").models["gpt-4o"].adapter == "simulated"
    assert not (clone.parent / "config").exists()


def test_configuration_is_never_in_the_working_directory(tmp_path):
    assert config_folder({"PREJUDGE_CONFIG": str(tmp_path)}) == tmp_path
    assert config_folder({"XDG_CONFIG_HOME": str(tmp_path)}) == tmp_path / "prejudge"
    for name in ("PREJUDGE_CONFIG", "XDG_CONFIG_HOME"):
        assert config_folder({name: "here"}).is_absolute()
        assert not config_folder({name: "here"}).is_relative_to(Path.cwd())


def test_damaged_configuration_trusts_nothing(clone):
    Path("registry.toml").write_text('[models.gpt-4o]\nadapter = "simulated"\n')
    assert call(clone, "trust", "--yes").returncode == 0
    assert load_registry().models["gpt-4o"].adapter == "simulated"
    (clone.parent / "config" / "trusted.json").write_bytes(b'{"\xff')
    with raises_code(UsageError, "registry.untrusted"):
        load_registry()


def test_package_that_is_not_there_is_one_line(clone):
    assert wants('[models.x]\nadapter = "simulated"\nsettings = { blanks = "package:prejudge.no.such/x" }') == []
    with raises_code(DataError, "registry.entry", "prejudge.no"):
        load_registry()


def test_deeply_nested_registry_is_one_line(clone):
    Path("registry.toml").write_text("a = " + "[" * 100_000)
    with raises_code(DataError, "data.syntax"):
        load_registry()


def test_names_of_the_built_in_file_are_read_as_before():
    assert parse_registry("[models.x]\nadapter='a'\nsettings={model='./b'}", "t", Path("/f")).models["x"].settings == {
        "model": "/f/b"
    }
