"""Plugins: the same hooks for all, and a broken one disables only itself."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from types import ModuleType

import pluggy
import pytest
from fakes import CountProbe

from prejudge.core.catalogue.plugins import Plugins, built_in_plugins, found_plugins, load_target
from prejudge.core.catalogue.registry import PluginEntry, Registry
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.catalogue.trust import load_registry
from prejudge.core.contracts.adapter import ModelAdapter
from prejudge.core.contracts.errors import PluginError, UnknownNameError
from prejudge.core.contracts.plugin import GROUP, Plugged
from prejudge.testing import raises_code


def entry(name, **hooks):
    """Return an entry point to a module that was made here."""
    module = ModuleType(f"made_{name}")
    for hook, answer in hooks.items():

        def implementation(answer=answer):
            return answer() if callable(answer) else answer

        implementation.__name__ = hook
        setattr(module, hook, pluggy.HookimplMarker(GROUP)(specname=hook)(implementation))
    sys.modules[module.__name__] = module
    return EntryPoint(name, module.__name__, "prejudge")


def test_plugin_offers_a_probe():
    plugins = Plugins(Registry(), [entry("good", prejudge_probes=[Plugged("mine", CountProbe, "counts")])])
    assert plugins.load("probe", "mine") is CountProbe
    assert plugins.problems == [] and plugins.loaded == ["prejudge", "good"]


def test_target_is_imported_on_first_use():
    plugins = Plugins(Registry(), [entry("lazy", prejudge_metrics=[Plugged("m", "no.such.module:Thing")])])
    with raises_code(PluginError, "plugin.load", "'lazy'", "'no.such.module:Thing'"):
        plugins.load("metric", "m")


def test_broken_plugin_disables_only_itself():
    broken = EntryPoint("broken", "no_such_module_anywhere", "prejudge")
    plugins = Plugins(Registry(), [broken, entry("good", prejudge_probes=[Plugged("mine", CountProbe)])])
    assert "plugin 'broken' is disabled: ModuleNotFoundError" in plugins.problems[0]
    assert "mine" in plugins.offers["probe"]


def test_raising_hook_disables_its_plugin():
    plugins = Plugins(Registry(), [entry("raises", prejudge_probes=lambda: 1 / 0)])
    assert "'raises' is disabled: ZeroDivisionError" in plugins.problems[0]


def test_misspelt_hook_is_named():
    plugins = Plugins(Registry(), [entry("typo", prejudge_probs=[])])
    assert "'typo' is disabled" in plugins.problems[0] and "prejudge_probs" in plugins.problems[0]


def test_taken_name_names_both():
    two = [entry(name, prejudge_probes=[Plugged("mine", CountProbe)]) for name in ("a", "b")]
    plugins = Plugins(Registry(), two)
    assert "'b' is disabled" in plugins.problems[0] and "'a' already has a" in plugins.problems[0]
    assert plugins.offers["probe"]["mine"].plugin == "a"


def test_wrong_kind_of_thing_is_refused():
    plugins = Plugins(Registry(), [entry("wrong", prejudge_metrics=[Plugged("m", CountProbe)])])
    with raises_code(PluginError, "plugin.contract"):
        plugins.load("metric", "m")


def test_adapter_without_a_class_of_settings_is_refused():
    plugins = Plugins(Registry(), [entry("bare", prejudge_adapters=[Plugged("a", type("Bare", (ModelAdapter,), {}))])])
    with raises_code(PluginError, "plugin.contract", "options"):
        plugins.load("adapter", "a")


def test_hook_must_return_records():
    plugins = Plugins(Registry(), [entry("strings", prejudge_metrics=["m"])])
    assert "return prejudge.Plugged records" in plugins.problems[0]


def test_no_plugins_by_environment():
    assert found_plugins({"PREJUDGE_PLUGINS": "none"}) == []


def test_built_ins_come_through_the_hooks():
    plugins = Plugins(load_registry(), built_in_plugins())
    assert plugins.problems == []
    assert plugins.offers["adapter"]["hf-masked"].plugin == "prejudge"
    assert plugins.offers["metric"]["trisentbias"].plugin == "prejudge:bistereo"
    with raises_code(UnknownNameError, "unknown-metric", "'trisentbias'"):
        plugins.load("metric", "trisentbais")


def test_every_built_in_can_be_loaded():
    plugins = Plugins(load_registry(), built_in_plugins())
    for kind, offers in plugins.offers.items():
        for name in offers:
            assert plugins.load(kind, name)


def test_what_built_in_studies_name_is_on_offer():
    plugins = Plugins(load_registry(), built_in_plugins())
    for study in plugins.studies.values():
        assert study.probe in plugins.offers["probe"] and set(study.metrics) <= set(plugins.offers["metric"])


def test_own_probe_comes_in_place_of_a_built_in_one():
    own = Registry(probes={"crows-pairs": PluginEntry("mine:Mine")})
    plugins = Plugins(own, built_in_plugins())
    assert plugins.problems == [] and plugins.offers["probe"]["crows-pairs"].plugged.target == "mine:Mine"
    assert plugins.offers["metric"]["crows-pairs"].plugin == "prejudge:crows_pairs"


def study_file(folder, name, text='probe = "mine"\n[metrics.m]\n'):
    path = folder / f"{name}.toml"
    path.write_text(text)
    return path


def test_plugin_brings_studies(tmp_path):
    files = [
        study_file(tmp_path, "first"),
        str(study_file(tmp_path, "x", 'name = "second"\nprobe = "p"\nmetrics = {}')),
    ]
    plugins = Plugins(Registry(), [entry("brings", prejudge_studies=files)])
    assert {name: study.probe for name, study in plugins.studies.items()} == {"first": "mine", "second": "p"}


def test_resource_of_a_package_may_be_a_study():
    plugins = Plugins(Registry(), [entry("brings", prejudge_studies=["package:prejudge.probes.dora/dora-t2i.toml"])])
    assert plugins.studies["dora-t2i"].probe == "dora-t2i"


@pytest.mark.parametrize("text", ["no toml", "probe = 3\nmetrics = {}", 'prob = "x"\nmetrics = {}'])
def test_broken_study_file_disables_its_plugin(tmp_path, text):
    broken = entry("broken", prejudge_studies=[study_file(tmp_path, "mine", text)])
    plugins = Plugins(Registry(), [broken, entry("good", prejudge_probes=[Plugged("mine", CountProbe)])])
    assert "plugin 'broken' is disabled" in plugins.problems[0] and str(tmp_path) in plugins.problems[0]
    assert plugins.studies == {} and "mine" in plugins.offers["probe"]


def test_absent_study_file_disables_its_plugin(tmp_path):
    plugins = Plugins(Registry(), [entry("broken", prejudge_studies=[tmp_path / "none.toml"])])
    assert "cannot read the study file" in plugins.problems[0]


def test_taken_study_name_names_both(tmp_path):
    one = study_file(tmp_path, "mine")
    plugins = Plugins(Registry(), [entry(name, prejudge_studies=[one]) for name in ("a", "b")])
    assert "'b' is disabled" in plugins.problems[0] and "'a' already has a" in plugins.problems[0]


def test_one_plugin_may_not_bring_two_studies_of_one_name(tmp_path):
    twice = [study_file(tmp_path, "mine"), study_file(tmp_path, "other", 'name = "mine"\nprobe = "p"\nmetrics = {}')]
    plugins = Plugins(Registry(), [entry("twice", prejudge_studies=twice)])
    assert "two study files are named 'mine'" in plugins.problems[0]


def test_own_study_comes_in_place_of_a_built_in_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = '[studies.crows-pairs]\nprobe = "crows-pairs"\ntitle = "Mine"\nmetrics = { crows-pairs = {} }\n'
    (tmp_path / "registry.toml").write_text(text)
    studies = Catalogue.load("registry.toml").registry.studies
    assert studies["crows-pairs"].title == "Mine" and not studies["crows-pairs"].published
    assert "bistereo-pairs" in studies


def test_only_what_is_asked_for_is_read(tmp_path):
    plugins = Plugins(Registry(), [entry("broken", prejudge_studies=[tmp_path / "none.toml"])], kinds=("command",))
    assert plugins.problems == [] and plugins.loaded == ["prejudge", "broken"]


def test_missing_module_says_how_to_be_found():
    with raises_code(PluginError, "plugin.load", "'nowhere'", "PYTHONPATH"):
        load_target("nowhere:Thing", "mine")
