"""The sample package of a third party, offered to this process without being installed."""

from importlib.metadata import EntryPoint

import pytest

from prejudge.core.catalogue import plugins
from prejudge.core.catalogue.study import Catalogue

from .package_parts import ROOT

SOURCE = ROOT / "tests" / "plugin_package" / "src"
STUDY = "praise"
"""Its declared study, in German."""


def offer(monkeypatch: pytest.MonkeyPatch) -> Catalogue:
    """Return a catalogue with the sample package."""
    monkeypatch.syspath_prepend(str(SOURCE))
    entry = EntryPoint("sample_plugin", "sample_plugin.plugin", "prejudge")
    monkeypatch.setattr(plugins, "found_plugins", lambda *_: [entry])
    return Catalogue.load()
