"""`Manifest`: the record of a run, complete enough to score it again and to document its origin.

A resumed run adds to its record, and replaces nothing.
"""

from __future__ import annotations

import logging
import platform
import re
import secrets
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from ..catalogue.certificates import Calibrated
from ..catalogue.instrument import EveryOption
from ..catalogue.material import file_digest, tables_of
from ..catalogue.origins import Origin, ensure_installed
from ..catalogue.packages import versions
from ..catalogue.study import Catalogue, Study
from ..contracts.adapter import Identity, ModelAdapter
from ..contracts.canonical import identity_digest
from ..contracts.errors import DataError
from ..contracts.inputs import file_bytes
from ..contracts.places import Places
from ..contracts.records import Scalar
from ..contracts.version import VERSION
from ..contracts.words import counted
from ..design import Roles
from ..store import RunRow, Store, list_runs
from ..store.damage import damaged
from ..store.earlier_answers import EarlierAnswers
from .batch.options import BatchOptions, BatchRecord
from .ending import Ending
from .integrity.records import Integrity, Repeats
from .reading import Outcome

LOG = logging.getLogger(__name__)
PACKAGES = ("msgspec", "numpy", "polars", "scipy", "sqlalchemy")
"""Packages that every run needs."""


NO_PACKAGES: Mapping[str, str] = MappingProxyType({})
MANIFEST = "manifest.json"
"""Its file name in the folder of a run."""
IMPORTED = "imported"
"""The mode of a run of imported answers."""
PUBLISHED = "published"
"""The mode of a run of published scores, and the adapter of their model."""
PUBLISHED_STATE = "imported"
"""The state of such a run: nobody was asked here, and there is nothing to resume."""
ADDED = ("asked", "retried", "estimated", "cached_tokens", "canary")
"""Counts that are summed over all resumptions of a run; the others are the present state of the trials."""
KNOWN = ("input_tokens", "output_tokens", "cost")
"""Counts that are summed too, but are unknown if the count of any answer is unknown."""


SHOWN_RUNS, SHOWN_DIGITS = 3, 16
"""Earlier runs, and digits of their heads, that a sentence shows."""
_REPEATED = re.compile(r'"repeated":"(?!")')


class StageRecord(msgspec.Struct, frozen=True):
    """The record of a stage."""

    planned: int
    counts: dict[str, int | float | None] = {}
    """Fields of `scheduler.Counts`."""
    pace: dict[str, int | float | None] = {}
    """Fields of `limiter.Paced`: statistics of the endpoint's limiter in this stage."""
    batch: BatchRecord | None = None
    """None: nothing of it was asked in batches."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Content of the store's `run` table and of `manifest.json`."""

    run: str
    study: Study
    identities: dict[str, Identity]
    """By role."""
    described: dict[str, dict[str, str]] = {}
    """By role, what a model's own files say of it, such as name, size, quantisation and licence."""
    settings: dict[str, dict[str, Scalar]] = {}
    """By role, the settings of an identity that differ from the adapter's defaults."""
    abilities: dict[str, tuple[str, ...]] = {}
    """By role, what its model can do, as its adapter declares: names of operations, and `chat` (`Abilities`)."""
    stages: dict[str, StageRecord] = {}
    integrity: dict[str, Integrity] = {}
    """By stage whose model has an endpoint: what was found out about that."""
    repeats: dict[str, Repeats] = {}
    """By stage that repeats prompts: how often answers are equal. Counted by a scoring, and never in the store."""
    data: dict[str, str] = {}
    """sha256 of each file that the options name."""
    notes: tuple[str, ...] = ()
    """Notes from reading the data."""
    columns: tuple[tuple[str, str], ...] = ()
    """Of published scores, name and type (polars) of each column of their observations, in order."""
    unrecorded: tuple[str, ...] = ()
    """Of imported answers, what their file does not state of how they were asked: factors, and `request`."""
    options: EveryOption
    """As they were when the run was made: they decide when it is scored or resumed, whatever the defaults are then."""
    readers: dict[str, int] = {}
    """Versions of what reads every response, by name: when it was asked, or last scored. Empty for runs before it."""
    origins: dict[str, Origin] = {}
    """By kind and name, such as `metric my-metric`: the package of each third-party part of the run."""
    measured: dict[str, Origin] = {}
    """The same of the parts that the folder was last scored with. Never in the store."""
    calibration: Calibrated | None = None
    """Whether the study has a certificate that holds for this run, when it was last scored. Never in the store."""
    remeasured: dict[str, Any] = {}
    """`METRIC.option`: options changed when the run was scored again. Never in the store."""
    head: str = ""
    """Digest of the run's trials and answers, hexadecimal, see `store.evidence.run_head`. In the store it stands beside
    the manifest; empty if the run has not ended."""
    mode: str = "use"
    refresh: tuple[Outcome, ...] = ()
    """Outcomes whose stored answers this run asked anew."""
    renewed: dict[str, int] = {}
    """Trials whose answer was asked for, by this run or an earlier one, because the answer before had this outcome."""
    earlier: EarlierAnswers | None = None
    """The answers that earlier runs asked; None: the run asked all its answers itself."""
    batch: BatchOptions | None = None
    """How the run asks in batches; None: by single calls."""
    design: Roles | None = None
    """What the study declares that it varies; None: it declares nothing."""
    ending: Ending | None = None
    """How the run may end before all is asked; None: it asks all."""
    timing: bool = False
    """Of a run under way: whether it was only begun to time the study. Its end takes this away."""
    command: str = ""
    maker: str = ""
    """Proof, for the user who made the run alone, that its models and files are those that were named then; empty where
    none is needed. See `engine.foreign`."""
    prejudge: str = VERSION
    python: str = ""
    platform: str = ""
    packages: dict[str, str] = {}
    """Versions of the packages that every run needs, and of those of the adapters that answered."""

    @property
    def is_published(self) -> bool:
        """Return whether it is a run of published scores: no model answered."""
        return self.mode == PUBLISHED


def manifest_of(run: RunRow) -> Manifest:
    """Return the manifest of a run in the store, with its head.

    Raises:
        DataError: it is damaged.
    """
    try:
        manifest = msgspec.json.decode(run.own, type=Manifest)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise damaged(f"the manifest of run {run.name}", f"it cannot be read ({error})") from None
    return msgspec.structs.replace(manifest, head=(run.head or b"").hex())


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest in the folder of a run, with the options of its last scoring.

    Raises:
        DataError: there is no manifest, or it cannot be read.
    """
    try:
        return msgspec.json.decode(file_bytes(folder / MANIFEST), type=Manifest)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"{str(folder)!r} is not the folder of a run: {error}.", code="run.folder") from None


def remeasured_in(folder: Path) -> dict[str, Any]:
    """Return the options changed when the folder of a run was written last; empty if there is no folder.

    Raises:
        DataError: the manifest cannot be read.
    """
    return read_manifest(folder).remeasured if (folder / MANIFEST).exists() else {}


def as_made(catalogue: Catalogue, manifest: Manifest) -> Study:
    """Return the study of a run, with those options set whose default has changed since.

    Raises:
        UsageError: a third-party part of it is not installed; the message names the package.
    """
    study = manifest.study
    ensure_installed(catalogue.plugins, study, manifest.origins)

    def settled(kind: str, name: str, recorded: Mapping[str, Any], chosen: Mapping[str, Any]) -> dict[str, Any]:
        options = catalogue.plugins.load(kind, name).options
        now = {f.name: msgspec.json.encode(default_of(f)) for f in msgspec.structs.fields(options) if not f.required}
        return {k: v for k, v in recorded.items() if k in now and now[k] != msgspec.json.encode(v)} | dict(chosen)

    options = settled("probe", study.probe, manifest.options.probe, study.options)
    measured = manifest.options.metrics
    metrics = {name: settled("metric", name, measured.get(name, {}), chosen) for name, chosen in study.metrics.items()}
    return msgspec.structs.replace(study, options=options, metrics=metrics)


def present_data(manifest: Manifest, files: Iterable[str]) -> dict[str, str]:
    """Return the digests of a run's data at present: a file may have been given, or may have changed, after the run.

    The observations of published scores are in the store, whatever became of their file.
    """
    return manifest.data if manifest.is_published else manifest.data | digest_files(files)


def handed_on(manifest: Manifest) -> Manifest:
    """Return a manifest with the names of files and folders in place of the paths of this machine."""
    record = msgspec.to_builtins(manifest)
    return msgspec.convert(Places.of(record).record(record), Manifest)


def in_words(options: Mapping[str, Any]) -> str:
    """Format options as `name = value`."""
    return ", ".join(f"{name} = {value}" for name, value in options.items())


def earlier_words(manifest: Manifest) -> str:
    """Return which answers of a run were asked by earlier runs, as sentences; empty if it asked them all."""
    if (earlier := manifest.earlier) is None:
        return ""
    sentences = [
        f"{run.answers:,} of {counted(earlier.answers, 'answer')} from the run {run.run}, "
        + (f"head {run.head[:SHOWN_DIGITS]}." if run.head else "which had no head yet.")
        for run in earlier.runs[:SHOWN_RUNS]
    ]
    if more := earlier.runs[SHOWN_RUNS:]:
        sentences.append(f"{sum(run.answers for run in more):,} from {counted(len(more), 'other run')}.")
    if earlier.of_no_run:
        sentences.append(f"{earlier.of_no_run:,} are older than this run, and no other run of its store used them.")
    return " ".join(sentences)


def with_removed(before: EarlierAnswers | None, now: EarlierAnswers | None) -> EarlierAnswers | None:
    """Return where the answers of a resumed run come from, with the runs that were removed from the store since."""
    if before is None or now is None:
        return now
    present, of_no_run = {run.run for run in now.runs}, now.of_no_run
    removed = []
    for run in before.runs:
        if run.run not in present and (answers := min(run.answers, of_no_run)):
            removed.append(msgspec.structs.replace(run, answers=answers))
            of_no_run -= answers
    return EarlierAnswers(now.answers, (*now.runs, *removed), of_no_run)


def set_settings(adapter: ModelAdapter) -> dict[str, Scalar]:
    """Return the settings of an adapter's identity that are options and differ from their defaults."""
    settings = adapter.identity.settings
    return {
        field.name: settings[field.name]
        for field in msgspec.structs.fields(adapter.options)
        if field.name in settings and settings[field.name] != default_of(field)
    }


def default_of(field: msgspec.structs.FieldInfo) -> Any:
    """Return the default of an option."""
    return field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()


def new_name(study: str, model: str) -> str:
    """Return a name for a new run: time (UTC), study, model, and four random characters."""
    model = Places.of(model).text(model)
    plain = "".join(c if c.isalnum() or c in "-_." else "-" for c in model).strip("-.")[-40:]
    what = "".join(c if c.isalnum() or c in "-_.+" else "-" for c in study)[:80]
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{what}-{plain}-{secrets.token_hex(2)}"


def describe_machine(packages: Mapping[str, str] = NO_PACKAGES) -> dict[str, Any]:
    """Return the fields on versions and platform; `packages` are those of the adapters, with their versions."""
    return {
        "python": platform.python_version(),
        "platform": f"{sys.platform}-{platform.machine()}",
        "packages": dict(sorted({**versions(PACKAGES), **packages}.items())),
    }


def digest_data(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the sha256 of the file that an option named `data` points to; of a folder, of each table in it."""
    path = options.get("data")
    return digest_files(map(str, tables_of(path)) if isinstance(path, str) else [])


def digest_files(paths: Iterable[str]) -> dict[str, str]:
    """Return the sha256 of each of these files that exists."""
    digests = {path: file_digest(path) for path in paths if Path(path).is_file()}
    for path, digest in digests.items():
        LOG.info("data file %s, sha256 %s", path, digest)
    return digests


def with_versions(before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str]:
    """Return the packages of a resumed run: where a version has changed since, each in turn."""
    joined = {**now, **before}
    for name, number in now.items():
        if number not in (earlier := joined[name].split(", ")):
            joined[name] = ", ".join([*earlier, number])
    return dict(sorted(joined.items()))


class Earlier(msgspec.Struct, frozen=True):
    """The state of a run at its last end or interruption."""

    row: RunRow
    manifest: Manifest

    @property
    def done(self) -> bool:
        """Return whether the run was finished."""
        return self.row.state == "finished"

    @property
    def complete(self) -> bool:
        """Return whether the run was finished, and every trial of it has an answer."""
        return self.done and not any(record.counts.get("failed") for record in self.manifest.stages.values())


def find_earlier(store: Store, name: str | None, study: Study) -> Earlier | None:
    """Return the stored record of a run of this name and study; None if the run is new."""
    for row in list_runs(store) if name is not None else ():
        if row.name == name:
            manifest = manifest_of(row)
            return Earlier(row, manifest) if manifest.study == study else None
    return None


def drawn_alike(store: Store, name: str, identity: Identity) -> str:
    """Return why stored answers of a model are no draws; empty unless another run than `name` recorded that."""
    digest = identity_digest(identity)
    for row in list_runs(store):
        if row.name == name or not _REPEATED.search(row.manifest):
            continue
        manifest = manifest_of(row)
        roles = [role for role, asked in manifest.identities.items() if identity_digest(asked) == digest]
        if roles and any(integrity.repeated for integrity in manifest.integrity.values()):
            return f"answers of the run {row.name}, whose canary gave one answer"
    return ""


def add_up(earlier: Mapping[str, StageRecord], name: str, now: StageRecord) -> StageRecord:
    """Return the record of a stage, with the counts from before the run was resumed."""
    before = earlier.get(name)
    if before is None or not before.counts:
        return now
    if not now.counts:
        return StageRecord(now.planned, before.counts, before.pace, before.batch)
    counts = dict(now.counts)
    counts |= {key: (counts.get(key) or 0) + (before.counts.get(key) or 0) for key in ADDED}
    # Answers of this run from before are in the store now; they do not count as answers of other runs.
    counts["cached"] = max(0, (now.counts.get("cached") or 0) - (before.counts.get("asked") or 0))
    counts |= {key: _known(key, before, now) for key in KNOWN}
    pace = now.pace if now.counts.get("asked") else before.pace or now.pace
    return StageRecord(now.planned, counts, pace, now.batch or before.batch)


def _known(key: str, before: StageRecord, now: StageRecord) -> float | None:
    """Return the sum of two counts, such as costs; unknown if one of them is."""
    spent = (part for part in (before, now) if part.counts.get("asked") or part.counts.get("canary"))
    parts = [part.counts.get(key) for part in spent]
    if not parts:
        return now.counts.get(key)
    counts = [count for count in parts if count is not None]
    return sum(counts) if len(counts) == len(parts) else None
