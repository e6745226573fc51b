"""Plugins: the same hooks for all, and a broken one disables only itself."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from types import ModuleType

import pytest
from fakes import CountProbe

from prejudge.core.catalogue.plugins import Plugged, Plugins, found_plugins, hookimpl, load_target
from prejudge.core.catalogue.registry import Registry, load_registry
from prejudge.core.contracts.errors import PluginError, UnknownNameError


def entry(name, **hooks):
    """Return an entry point to a module that was made here."""
    module = ModuleType(f"made_{name}")
    for hook, answer in hooks.items():

        def implementation(answer=answer):
            return answer() if callable(answer) else answer

        implementation.__name__ = hook
        setattr(module, hook, hookimpl(specname=hook)(implementation))
    sys.modules[module.__name__] = module
    return EntryPoint(name, module.__name__, "prejudge")


def test_plugin_offers_a_probe():
    plugins = Plugins(Registry(), [entry("good", prejudge_probes=[Plugged("mine", CountProbe, "counts")])])
    assert plugins.load("probe", "mine") is CountProbe
    assert plugins.problems == [] and plugins.loaded == ["prejudge", "good"]


def test_target_is_imported_on_first_use():
    plugins = Plugins(Registry(), [entry("lazy", prejudge_metrics=[Plugged("m", "no.such.module:Thing")])])
    with pytest.raises(PluginError, match="plugin 'lazy': cannot load 'no.such.module:Thing'"):
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
    assert "'b' is disabled" in plugins.problems[0] and "'mine' is taken by plugin 'a'" in plugins.problems[0]
    assert plugins.offers["probe"]["mine"].plugin == "a"


def test_wrong_kind_of_thing_is_refused():
    plugins = Plugins(Registry(), [entry("wrong", prejudge_metrics=[Plugged("m", CountProbe)])])
    with pytest.raises(PluginError, match="not a subclass of Metric"):
        plugins.load("metric", "m")


def test_hook_must_return_records():
    plugins = Plugins(Registry(), [entry("strings", prejudge_metrics=["m"])])
    assert "return prejudge.Plugged records" in plugins.problems[0]


def test_no_plugins_by_environment():
    assert found_plugins({"PREJUDGE_PLUGINS": "none"}) == []


def test_built_ins_come_through_the_hooks():
    plugins = Plugins(load_registry(), [])
    assert plugins.offers["adapter"]["hf-masked"].plugin == "prejudge"
    with pytest.raises(UnknownNameError, match="Did you mean 'trisentbias'"):
        plugins.load("metric", "trisentbais")


def test_every_built_in_can_be_loaded():
    plugins = Plugins(load_registry(), [])
    for kind, offers in plugins.offers.items():
        for name in offers:
            assert plugins.load(kind, name)


def test_missing_module_says_how_to_be_found():
    with pytest.raises(PluginError, match="No module named 'nowhere'. Install it, or name its folder in PYTHONPATH"):
        load_target("nowhere:Thing", "mine")
