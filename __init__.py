"""prejudge: measure what a model prejudges.

The door for users and for authors of plugins. Names are loaded on first use, so that importing the package is light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .core.api import (
        Compared,
        Detectable,
        Run,
        Settings,
        arun,
        compare,
        import_scores,
        load,
        plan,
        run,
        score,
        smallest_effects,
    )
    from .core.catalogue.plugins import Plugged, hookimpl
    from .core.compare import CompareOptions
    from .core.contracts import Imported, Metric, Options, Probe, Stage, Trial, Unreadable
    from .core.contracts.adapter import Identity, Limits, ModelAdapter, Services, Worker
    from .core.contracts.errors import (
        AuthenticationError,
        DataError,
        ModelError,
        ModelLoadError,
        PermanentError,
        PrejudgeError,
        RateLimitError,
        TransientError,
        UsageError,
    )
    from .core.contracts.estimates import (
        Caveat,
        Chart,
        Effect,
        Estimate,
        Example,
        Interval,
        Measure,
        Missing,
        SignificanceTest,
        Verdict,
    )
    from .core.contracts.records import (
        Classification,
        Classify,
        Draw,
        Drawing,
        Embed,
        Embedding,
        Generate,
        Generation,
        Image,
        Likelihood,
        Likelihoods,
        Message,
        PseudoLikelihood,
        Sampling,
        Text,
        TokenScores,
        Usage,
    )
    from .core.contracts.version import VERSION as __version__

_HOMES = {
    "contracts.adapter": ("Identity", "Limits", "ModelAdapter", "Services", "Worker"),
    "api": (
        *("Compared", "Detectable", "Run", "Settings", "arun", "compare", "import_scores", "load", "plan", "run"),
        *("score", "smallest_effects"),
    ),
    "compare": ("CompareOptions",),
    "contracts": ("Imported", "Metric", "Options", "Probe", "Stage", "Trial", "Unreadable"),
    "contracts.errors": (
        *("AuthenticationError", "DataError", "ModelError", "ModelLoadError", "PermanentError", "PrejudgeError"),
        *("RateLimitError", "TransientError", "UsageError"),
    ),
    "contracts.records": (
        *("Classification", "Classify", "Draw", "Drawing", "Embed", "Embedding", "Generate", "Generation", "Image"),
        *("Likelihood", "Likelihoods", "Message", "PseudoLikelihood", "Sampling", "Text", "TokenScores", "Usage"),
    ),
    "contracts.estimates": (
        *("Caveat", "Chart", "Effect", "Estimate", "Example", "Interval", "Measure", "Missing", "SignificanceTest"),
        "Verdict",
    ),
    "catalogue.plugins": ("Plugged", "hookimpl"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "AuthenticationError",
    "Caveat",
    "Chart",
    "Classification",
    "Classify",
    "CompareOptions",
    "Compared",
    "DataError",
    "Detectable",
    "Draw",
    "Drawing",
    "Effect",
    "Embed",
    "Embedding",
    "Estimate",
    "Example",
    "Generate",
    "Generation",
    "Identity",
    "Image",
    "Imported",
    "Interval",
    "Likelihood",
    "Likelihoods",
    "Limits",
    "Measure",
    "Message",
    "Metric",
    "Missing",
    "ModelAdapter",
    "ModelError",
    "ModelLoadError",
    "Options",
    "PermanentError",
    "Plugged",
    "PrejudgeError",
    "Probe",
    "PseudoLikelihood",
    "RateLimitError",
    "Run",
    "Sampling",
    "Services",
    "Settings",
    "SignificanceTest",
    "Stage",
    "Text",
    "TokenScores",
    "TransientError",
    "Trial",
    "Unreadable",
    "Usage",
    "UsageError",
    "Verdict",
    "Worker",
    "__version__",
    "arun",
    "compare",
    "hookimpl",
    "import_scores",
    "load",
    "plan",
    "run",
    "score",
    "smallest_effects",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module(".core.contracts.version", __name__).VERSION
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".core.{_HOME[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
