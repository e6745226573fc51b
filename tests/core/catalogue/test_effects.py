"""Trust follows from what options declare: without a backend, for third parties too, and where values decide."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import msgspec
import pytest

import prejudge
from prejudge.core.catalogue.judging import Judge
from prejudge.core.catalogue.plugins import Plugins
from prejudge.core.catalogue.registry import Calibration, ModelEntry, Registry, StudyEntry
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.catalogue.trust import built_in_registry
from prejudge.core.contracts.effects import effects_declared, effects_of_values, text_options, undeclared_options
from prejudge.core.contracts.errors import UsageError
from prejudge.testing import raises_code

from ...command import call

BACKENDS = ("aiohttp", "any_llm", "botocore", "diffusers", "llama_cpp", "openai", "peft", "sentence_transformers")
BACKENDS += ("tokenizers", "torch", "transformers", "vllm")


class Silent(prejudge.Options, frozen=True, kw_only=True):
    model: str = "m"
    host: str = "vendor.example"


class Open(prejudge.Options, frozen=True, kw_only=True):
    option_effects = {"token_env": "secret", **prejudge.harmless("model")}
    model: str = "m"
    token_env: str = ""


class Careful(Open, frozen=True, kw_only=True):
    def list_effects(self) -> Iterable[prejudge.OptionEffect]:
        if self.token_env:
            yield prejudge.OptionEffect("secret", "token_env", self.token_env)


class Broken(Open, frozen=True, kw_only=True):
    def list_effects(self) -> Iterable[prejudge.OptionEffect]:
        raise ZeroDivisionError


class Plain(msgspec.Struct):
    model: str = "m"


class Nothing(prejudge.Options, frozen=True, kw_only=True):
    pass


class Vendor:
    """A plugin of somebody else, which offers an adapter for each kind of options."""

    kinds = {kind.__name__.lower(): kind for kind in (Silent, Open, Careful, Broken, Plain, Nothing)}

    @prejudge.hookimpl
    def prejudge_adapters(self) -> list[prejudge.Plugged]:
        return [
            prejudge.Plugged(name, type(f"Of{name}", (prejudge.ModelAdapter,), {"options": kind}))
            for name, kind in self.kinds.items()
        ]


class Installed(EntryPoint):
    def load(self) -> Any:
        return Vendor()


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    plugins = Plugins(built_in_registry(), [Installed("vendor", "vendor:plugin", "prejudge")])
    return Judge(tmp_path, plugins, Registry())


def kinds_of(judge: Judge, adapter: str, **settings: object) -> list[str]:
    return [effect.kind for effect in judge.model(ModelEntry(adapter=adapter, settings=settings))]


def test_option_that_nobody_declared_needs_trust_set_or_not(judge):
    assert kinds_of(judge, "silent") == ["undeclared", "undeclared"]
    assert kinds_of(judge, "silent", host="127.0.0.1") == ["undeclared", "undeclared"]


def test_secret_counts_whatever_its_value_unless_the_adapter_says_otherwise(judge):
    assert kinds_of(judge, "open", token_env="") == ["secret"]
    assert kinds_of(judge, "careful", token_env="") == []
    assert kinds_of(judge, "careful", token_env="HOME") == ["secret"]


@pytest.mark.parametrize("adapter", ["plain", "nothing"])
def test_options_without_declarations_need_trust(judge, adapter):
    assert kinds_of(judge, adapter) and set(kinds_of(judge, adapter)) == {"undeclared"}


def test_function_that_fails_leaves_the_declarations(judge):
    assert kinds_of(judge, "broken", token_env="") == ["secret"]
    assert kinds_of(judge, "careful", token_env=["HOME"]) == ["secret"]


def test_backends_are_not_imported_to_judge(tmp_path):
    lines = [f'[models.m{n}]\nadapter = "{name}"\nsettings = {{ model = "m" }}' for n, name in enumerate(ADAPTERS)]
    (tmp_path / "registry.toml").write_text("\n".join(lines))
    code = (
        "import sys, pathlib; from prejudge.core.catalogue.trust import read_candidate, wants_of;"
        "print(len(wants_of(read_candidate(pathlib.Path('registry.toml')))));"
        f"print(sorted(set({BACKENDS!r}) & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    wants, backends = done.stdout.splitlines()
    assert int(wants) >= 6 and backends == "[]", done.stderr


ADAPTERS = sorted(built_in_registry().adapters)


def test_every_option_of_every_part_declares_its_effect():
    plugins = Catalogue.load().plugins
    for kind in ("adapter", "probe", "metric"):
        for name in plugins.offers[kind]:
            options = plugins.load(kind, name).options
            # Probes and metrics are pure but for files, which only a text can name.
            silent = set(undeclared_options(options)) & set(
                options.__struct_fields__ if kind == "adapter" else text_options(options)
            )
            assert not silent, (kind, name, silent)


def test_files_of_metrics_are_declared_as_files():
    plugins = Catalogue.load().plugins
    for name in plugins.offers["metric"]:
        metric = plugins.load("metric", name)
        declared = {option for option, effect in effects_declared(metric.options).items() if effect == "file"}
        assert declared == set(metric.files), name


def settings_that(effect: str, options: type[msgspec.Struct]) -> list[str]:
    return [name for name, declared in effects_declared(options).items() if declared == effect]


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_every_option_with_an_effect_is_judged(adapter, tmp_path):
    """Each is set alone, to a value that a stranger would choose."""
    catalogue = Catalogue.load()
    options = catalogue.plugins.load("adapter", adapter).options
    judge = Judge(tmp_path, catalogue.plugins, Registry())
    base = {"model": "m", "base_url": "http://127.0.0.1:1/v1", "api_key_env": "", "provider": "openai"}
    base = {name: value for name, value in base.items() if name in options.__struct_fields__}
    assert kinds_of(judge, adapter, **base) == []
    values = {
        "secret": ["STOLEN"],
        "address": ["http://evil.example/v1", {"x": "https://evil.example"}],
        "file": ["/etc/passwd", "../x", "~/.ssh"],
        "code": [True, {"worker_cls": "evil.Worker"}],
    }
    for effect, chosen in values.items():
        for name in settings_that(effect, options):
            judged = [kinds_of(judge, adapter, **{**base, name: value}) for value in chosen]
            assert effect in sum(judged, []), (name, judged)


def test_peft_base_outside_of_the_folder_needs_trust(tmp_path):
    judge = Judge(tmp_path, Catalogue.load().plugins, Registry())
    (tmp_path / "lora").mkdir()
    (tmp_path / "base").mkdir()
    described = tmp_path / "lora" / "adapter_config.json"
    for base, wants in {"/etc": 1, "../private": 1, "~/models": 1, "org/base": 0, str(tmp_path / "base"): 0}.items():
        described.write_text(json.dumps({"base_model_name_or_path": base, "task_type": "CAUSAL_LM"}))
        for settings in ({"model": "./lora"}, {"model": "lora"}):
            judged = list(judge.model(ModelEntry(adapter="hf-causal", settings=settings)))
            assert len(judged) == wants and all(base in effect.sentence for effect in judged), (base, judged)


def test_models_that_a_study_names_are_judged_by_place_and_by_third_parties(judge, tmp_path):
    assert [effect.kind for effect in judge.named("/etc")] == ["file"]
    assert [effect.kind for effect in judge.named("silent:m")] == ["undeclared", "undeclared"]
    study = StudyEntry(probe="none", metrics={}, roles={"judge": 'careful:m[token_env="HOME"]'})
    assert ["judge" in effect.sentence for effect in judge.study(study)] == [True]


def test_settings_of_a_calibration_are_judged_by_the_default_model(tmp_path):
    catalogue = Catalogue.load()
    judge = Judge(tmp_path, catalogue.plugins, catalogue.registry)
    for blanks, effects in {"/etc/passwd": ["file"], "package:prejudge.adapters.simulated/blanks.toml": []}.items():
        study = StudyEntry(probe="none", metrics={}, calibration=Calibration(settings={"blanks": blanks}))
        assert [effect.kind for effect in judge.study(study)] == effects


def test_recorded_models_are_judged_by_what_the_record_adds(tmp_path):
    catalogue = Catalogue.load()
    judge = Judge(tmp_path, catalogue.plugins, catalogue.registry)

    def wants(name: str) -> list[str]:
        return [effect.kind for effect in judge.recorded(name)]

    for name in ("gpt-4o", "openai:gpt-4o", "gpt-4o[thinking=low]", "simulated-fair[seed=3]", "hf-causal:org/name"):
        assert wants(name) == [], name
    assert wants('gpt-4o[base_url="http://evil.example/v1"]') == ["address"]
    assert "secret" in wants('gpt-4o[base_url="http://127.0.0.1:1",api_key_env="HOME"]')
    assert wants('bedrock:m[base_url="http://127.0.0.1:1",region="r"]') == ["secret"]
    assert "code" in wants("hf-causal:org/name[trust_remote_code=true]")
    assert wants("hf-causal:/etc") == ["file"]


def test_study_file_that_names_a_function_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study = 'name = "s"\nprobe = "subtle"\n[metrics.subtle]\n[calibration.trained]\ndata = {}\n'
    for target in ("os:system", "prejudge.core.catalogue.trust:os.system"):
        Path("s.toml").write_text(study.format(json.dumps(target)))
        with raises_code(UsageError, "study.effects"):
            Catalogue.load().adopt("s.toml")
    Path("s.toml").write_text(study.format('"prejudge.adapters.reference.items:faces"'))
    assert Catalogue.load().adopt("s.toml") == "s"


@pytest.mark.parametrize(
    ("model", "refused"),
    [
        ("gpt-4o", False),
        ("openai:gpt-4o", False),
        ("simulated-fair[seed=3]", False),
        ("hf-causal:org/name[trust_remote_code=true]", True),
        ('openai:m[base_url=\\"http://evil.example\\",api_key_env=\\"HOME\\"]', True),
    ],
)
def test_study_file_names_models_without_keys_addresses_and_code(tmp_path, monkeypatch, model, refused):
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(f'name = "s"\nprobe = "subtle"\n[metrics.subtle]\n[roles]\nsubject = "{model}"\n')
    if refused:
        with raises_code(UsageError, "study.effects"):
            Catalogue.load().adopt("s.toml")
    else:
        assert Catalogue.load().adopt("s.toml") == "s"


def test_list_leaves_out_what_is_not_trusted_and_says_why(tmp_path, monkeypatch):
    monkeypatch.setenv("PREJUDGE_CONFIG", str(tmp_path / "config"))
    (tmp_path / "registry.toml").write_text(
        '[models.fine]\nadapter = "simulated"\n[models.gpt-4o]\nadapter = "simulated"\n'
        '[models.thief]\nadapter = "openai"\nsettings = { model = "m", api_key_env = "HOME" }\n'
        '[studies.theirs]\nprobe = "subtle"\nmetrics = { subtle = {} }\nroles = { judge = "thief" }\n'
        '[metrics.evil]\ntarget = "evil:Metric"\n'
    )
    done = call(tmp_path, "list", "models")
    assert done.returncode == 0 and "fine" in done.stdout and "thief" not in done.stdout
    assert "│ openai" in done.stdout and all(name in done.stderr for name in ("thief", "theirs", "evil", "gpt-4o"))
    assert "prejudge trust" in done.stderr
    assert "theirs" not in call(tmp_path, "list", "studies").stdout
    assert "evil" not in call(tmp_path, "list", "metrics").stdout
    plugins = call(tmp_path, "list", "--plugins")
    assert plugins.returncode == 0 and "prejudge:subtle" in plugins.stdout
    assert call(tmp_path, "trust", "--yes").returncode == 0
    trusted = call(tmp_path, "list", "models")
    assert "thief" in trusted.stdout and "Left out" not in trusted.stderr


def test_values_without_effect_have_none():
    assert not list(effects_of_values(Open, {"model": "http://evil.example"}))
    assert Registry().models == {}
