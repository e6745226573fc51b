"""What a test needs besides this package: models, servers, or patience. `make quick` begins with tests that need none.

A test has its kinds by its place and by the fixtures it uses, so that a new test beside others, or with their fixtures,
is right from the start. `make quick` warns of one that should have a kind: see `Watch`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

KINDS = {
    "models": "loads a model's library, such as torch or llama.cpp",
    "servers": "starts a server or a browser",
    "slow": "builds wheels, pages or environments, runs whole commands, or simulates for long",
}
LIBRARIES = ("diffusers", "llama_cpp", "sentence_transformers", "torch", "transformers")
MOST_SECONDS = 5.0
"""Processor time that a test without a kind may take."""
PLACES = {
    "models": (
        "adapters/diffusers/",
        "adapters/encoder_training/",
        "adapters/hf/",
        "adapters/llamacpp/",
        "adapters/vllm/",
        "test_bench_quick.py",
        "test_gpu_benchmark.py",
        "adapters/test_vllm_on_gpu.py",
        "adapters/reference/",
        "adapters/shared/test_budget.py",
        "adapters/shared/test_sampling.py",
        "adapters/test_three_ways.py",
        "contracts/test_adapters.py",
        "contracts/test_doctor.py",
        "core/catalogue/test_needs.py",
        "core/test_places.py",
        "test_studies.py",
        "test_ways_of_asking.py",
        "probes/bistereo/test_causal_adapters.py",
        "probes/bistereo/test_follows.py",
        "probes/bistereo/test_nli_study.py",
        "probes/demo/test_demo.py",
        "probes/indicasa/test_study.py",
        "core/store/test_file_systems.py::test_doctor_says_so",
        "core/doctor/test_installation.py::test_extras_that_build_on_others_are_taken_apart",
    ),
    "servers": (
        "adapters/endpoint/",
        "adapters/openai/",
        "core/catalogue/test_untrusted_folders.py",
        "adapters/test_any_llm.py",
        "contracts/test_docs_example.py",
        "test_varied_thinking.py",
        "contracts/test_kit_of_endpoints.py",
        "core/engine/integrity/test_endpoint.py",
        "core/report/test_browser.py",
        "core/report/test_parts.py",
        "core/report/test_reading.py",
        "core/view/test_browser.py",
        "core/view/test_guard.py",
    ),
    "slow": (
        "core/lab/calibration/test_calibration.py",
        "core/lab/calibration/test_golden.py",
        "golden/",
        "core/scoring/test_forecasts.py",
        "core/lab/converge/test_models.py",
        "core/annotation/test_correction.py::test_report_terminal",
        "core/gate/test_deciding.py",
        "core/lab/multiverse/test_multiverse.py",
        "core/lab/variance/test_variance.py",
        "baseline/",
        "adapters/simulated/test_leans.py",
        "adapters/simulated/test_masks.py",
        "adapters/simulated/test_study.py",
        "adapters/simulated/test_words.py::test_nothing_planted",
        "contracts/test_probes.py",
        "core/catalogue/test_fits.py",
        "core/cli/test_cache.py",
        "core/cli/test_cli.py",
        "core/cli/test_compare.py",
        "core/cli/test_completion.py",
        "core/cli/test_encodings.py",
        "core/cli/test_read_only.py",
        "core/cli/test_proved.py",
        "core/cli/test_resume.py",
        "core/cli/test_secrets.py",
        "core/cli/test_screen.py",
        "core/cli/test_verbose.py",
        "core/cli/test_verdict_first.py",
        "core/engine/test_kill.py",
        "core/engine/test_limiter.py",
        "core/report/test_length.py",
        "core/scoring/test_sensitivity.py",
        "core/scoring/test_whole_study.py",
        "core/statistics/test_calibration.py",
        "core/statistics/test_leaning.py",
        "core/statistics/test_power_simulated.py",
        "core/store/test_bundle_size.py",
        "core/store/test_crew.py",
        "core/store/test_crew_copies.py",
        "core/store/test_fuzz_damage.py",
        "core/store/test_many_processes.py",
        "core/view/test_links.py",
        "core/workers/test_local.py",
        "core/workers/test_ray.py",
        "core/store/test_prune.py::test_more_trials",
        "metrics/bistereo/test_nli.py::test_false_positives",
        "metrics/bistereo/test_nli_prompts.py::test_prompts_alike",
        "metrics/bistereo/test_tuples.py::test_words_that_lean",
        "metrics/subtle/test_metric.py::test_difference_between_pronouns",
        "metrics/subtle/test_metric.py::test_false_positives",
        "metrics/subtle/test_metric.py::test_words_or_sentences_that_lean",
        "probes/attractiveness/test_small_study.py",
        "probes/attractiveness/test_study.py",
        "probes/dora/test_exact.py::test_nothing_planted",
        "probes/dora/test_salience.py::test_nothing_planted",
        "probes/dora/test_study.py",
        "probes/indicasa/test_published.py",
        "probes/subtle/test_published_study.py",
        "probes/subtle/test_study.py",
        "test_docs.py",
        "test_reasoning_models.py",
        "test_docs_commands.py",
        "test_door.py::test_example_runs",
        "test_house.py",
        "test_notebooks.py",
        "test_packaging.py",
        "test_plugin_package.py",
        "test_site.py",
    ),
}
FIXTURES = {
    "models": {"make_causal", "make_classifier", "make_encoder", "make_masked", "make_pipeline"},
    "servers": {"chaos_server", "chromium", "postgresql", "server", "start_server"},
    "slow": {"site", "wheel"},
}


def is_of(path: str, kinds: Iterable[str]) -> bool:
    """Say whether a module is of one of these kinds by its place."""
    return any(path.startswith(PLACES[kind]) for kind in kinds)


def kinds_of(place: str, fixtures: Iterable[str], values: Iterable[object] = ()) -> list[str]:
    """Return the kinds of a test by its place, its fixtures, and the values it is run with.

    A place is the path below `tests`, followed by `::` and the name of the test.
    """
    used = {*fixtures, *(value for value in values if isinstance(value, str))}
    return [kind for kind in KINDS if place.startswith(PLACES[kind]) or used & FIXTURES[kind]]


class Watch:
    """Says of a test without a kind which kind it should have: it loads a model's library, or takes long."""

    def __init__(self) -> None:
        self._loaded: set[str] = set()
        self._began = 0.0

    def begin(self) -> None:
        """Remember the libraries, and the processor time of this process and its children."""
        self._loaded = _libraries()
        self._began = sum(os.times()[:4])

    def advice(self) -> str | None:
        """Return what the test since `begin` did that a kind should name, or None."""
        if loaded := _libraries() - self._loaded:
            return f"this test loads {', '.join(sorted(loaded))}: name it under `models` in tests/kinds.py"
        spent = sum(os.times()[:4]) - self._began
        if spent > MOST_SECONDS:
            return f"this test takes {spent:.1f} s of processor time: name it under `slow` in tests/kinds.py"
        return None


def _libraries() -> set[str]:
    return {name for name in LIBRARIES if name in sys.modules}
