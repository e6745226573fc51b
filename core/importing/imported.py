"""Answers that were collected elsewhere, as a run: planned, matched, stored and scored like any other.

They are stored as exchanges of a model whose adapter is `imported` and whose settings name the file by its sha256, so
they are never confused with answers that were collected here. A trial without a row has the status failed. What nobody
recorded of how they were asked is None, and no level of this project's own plan stands for it.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import polars as pl

from ..catalogue.needs import ensure_asked
from ..catalogue.origins import origins
from ..catalogue.plugins import blamed
from ..catalogue.refusal_stage import last_measured
from ..catalogue.study import Catalogue, Study
from ..contracts import MatchedStage, Stage, Trial
from ..contracts.abilities import OPERATIONS
from ..contracts.adapter import Identity
from ..contracts.canonical import encode, encode_identity, identity_digest
from ..contracts.errors import DataError
from ..contracts.probe import count_trials
from ..contracts.records import Likelihood, PseudoLikelihood, Scalar
from ..engine.manifest import IMPORTED, Manifest, StageRecord, describe_machine, digest_data, new_name
from ..engine.observations import gather_observations
from ..engine.reading import READERS
from ..store import Store
from ..store.bulk import batched
from ..store.chunks import Chunks
from ..store.content import Facts, Tried
from ..store.store import manifest_columns
from ..tables.faults import BadRows, RowError, refusal
from ..tables.faults import left_out as count_rows
from .alike import differing
from .answers import FIELDS, PROBABILITY, REQUEST, Answers, FileForm, Row, read_answers
from .matching import Contradiction, Matcher, by_column, columns_of, contradicted
from .parts import Part
from .presented import lacks_requests, left_out, presented, unrecorded_of, without
from .sampled import UNMATCHED, Chosen, only_answered, widest
from .settling import Disagreeing, Duplicates, distinct_draws, ensure_rules, expanded, one_answer, settle

ADAPTER = "imported"
ASKED_ELSEWHERE = "What follows on prompts, orders and sampling is how prejudge asks; others asked for these answers."
"""Of a run of imported answers, before the differences between this project's study and the paper."""
VERSION = "1"
PART = 4096


class ImportOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How to import a file of answers."""

    paths: tuple[str, ...]
    """Files of CSV, JSON or JSON Lines; their rows follow each other."""
    model: str
    """Name of the model that gave the answers."""
    columns: dict[str, str] = {}
    """Column of each field whose name differs."""
    allow_unmatched: bool | None = None
    """Leave out rows that match no trial, or several trials. None: as `bad_rows` says."""
    duplicates: Duplicates | None = None
    """Which of several answers to one question counts; with `all` each is an answer of its own. `refuse` allows several
    only if they are the same. None: the first where `bad_rows` is `skip`, else `refuse`."""
    disagreeing: Disagreeing | None = None
    """Rows that contradict their trial: `keep` records what the model was shown as the row states it, `drop` leaves the
    row out. None: `drop` where `bad_rows` is `skip`, else `refuse`."""
    bad_rows: BadRows = "refuse"
    """Whether rows that cannot be used are an error, or left out and counted."""
    encoding: str = ""
    """Of the files; empty: UTF-8 or UTF-16."""
    command: str = ""

    @property
    def form(self) -> FileForm:
        """Return how the files are understood."""
        return FileForm(self.columns, self.encoding, self.bad_rows)

    def settled(self) -> ImportOptions:
        """Return the same with every rule chosen; raises `UsageError` for an unknown one."""
        skip = self.bad_rows == "skip"
        duplicates: Duplicates = self.duplicates or ("first" if skip else "refuse")
        disagreeing: Disagreeing = self.disagreeing or ("drop" if skip else "refuse")
        ensure_rules(duplicates, disagreeing)
        unmatched = skip if self.allow_unmatched is None else self.allow_unmatched
        return msgspec.structs.replace(self, allow_unmatched=unmatched, duplicates=duplicates, disagreeing=disagreeing)


def import_answers(catalogue: Catalogue, study: Study, store: Store, options: ImportOptions) -> str:
    """Store the answers of files as a run of a study, and return its name. All of them are stored, or none.

    Raises:
        DataError: a file cannot be read, or a row is for no trial, for several, or no such answer.
    """
    options = options.settled()
    try:
        return _Import(catalogue, study, options).store(store)
    except DataError as error:
        wider = widest(catalogue, study) if error.code in UNMATCHED else study
        if wider == study:
            raise
        try:
            # Whoever collected the answers drew a sample of their own.
            return _Import(catalogue, wider, options, part_of=study).store(store)
        except DataError:
            raise error from None


class _Import:
    """The import of files into a store."""

    def __init__(
        self, catalogue: Catalogue, study: Study, options: ImportOptions, part_of: Study | None = None
    ) -> None:
        instrument = catalogue.instrument(study)
        self._stages, self._all, self._design = instrument.stages(), instrument.every_option, instrument.design
        self._lacks_data = getattr(instrument.options, "data", "") is None
        self._owner = catalogue.plugins.offers["probe"][study.probe].plugin
        self._study = msgspec.structs.replace(
            study,
            roles={stage.role: options.model for stage in self._stages},
            deviations=(ASKED_ELSEWHERE, *study.deviations) if study.deviations else (),
        )
        self._origins = origins(catalogue, study, models=False)
        with blamed(self._owner, f"probe {self._study.probe!r}"):
            known = {name for stage in self._stages for name in _fields_of(stage)}
        self._answers, self._options = read_answers(options.paths, options.form, known), options
        self._identity = identity_of(self._answers, options)
        self._records: dict[str, StageRecord] = {}
        self._notes: list[str] = []
        self._earlier: dict[str, pl.DataFrame] = {}
        self._unrecorded: dict[str, None] = {}
        self._requested = (
            None if part_of is None else Catalogue(catalogue.registry, catalogue.plugins).instrument(part_of)
        )
        """The study as it was stated, where the files hold another part of it; what they do not hold is left out."""

    def store(self, store: Store) -> str:
        """Read all of it, and store it in chunks; what was cut off goes on when the same file is imported again."""
        name, began = new_name(self._study.name, self._options.model), time.time()
        with blamed(self._owner, f"probe {self._study.probe!r}"):
            parts = [part for stage in self._stages for part in self._stage(stage)]
        identity = identity_digest(self._identity)
        with Chunks(store, f"answers {identity.hex()}", {identity: encode_identity(self._identity).decode()}) as chunks:
            places: list[int | None] = []
            for part in parts:
                places += part.copied(chunks)
            run_id = chunks.begin_run(_digest(row for part in parts for row in part.tried))
            tried = (row for part in parts for row in part.tried)
            chunks.trials(run_id, (row._replace(exchange=at) for row, at in zip(tried, places, strict=True)))
            chunks.failures(run_id, [row for part in parts for row in part.failed])
            facts = Facts(self._study.name, "finished", "", began, began)

            def values(name: str) -> dict[str, Any]:
                return facts._asdict() | manifest_columns(self._manifest(name).encode())

            chunks.end_run(run_id, lambda _: name, values)
        return name

    def _stage(self, stage: Stage) -> list[Part]:
        if stage is self._stages[0]:
            ensure_asked(self._study, stage, count_trials(stage, self._earlier))
        ensure_fields(self._answers, stage)
        unrecorded = unrecorded_of(stage, self._earlier, self._answers.fields, self._study.options)
        stage = without(stage, unrecorded)
        matched = self._choose(stage)
        self._note(stage, matched.rows.values())
        parts: list[Part] = []
        frames, reasons, trials, failed = [], dict[bytes, str](), 0, 0
        faults: list[RowError] = []
        for ordered in batched(enumerate(matched.trials()), PART):
            part = Part(self._answers, identity_digest(self._identity), stage.name, ordered)
            part.answer(matched.rows, matched.stated)
            parts.append(part)
            faults += part.faults
            trials, failed = trials + len(ordered), failed + len(part.failed)
            reasons.update((failure.key, failure.message) for failure in part.failed)
            if stage.name != last_measured(self._stages).name:
                frames.append(part.frame())
        self._unreadable(faults)
        self._records[stage.name] = StageRecord(
            trials, {"trials": trials, "answered": trials - failed, "bad_rows": len(faults), **matched.counts}
        )
        if frames:
            self._earlier[stage.name] = gather_observations(stage, frames, reasons)
        return parts

    def _choose(self, stage: Stage) -> Chosen:
        """Match the rows with the trials of a stage."""
        matcher = Matcher(self._answers, stage, lambda: stage.trials(self._earlier))
        rows = self._rows_of(stage)
        own = [row for row in rows if not isinstance(stage, MatchedStage) or stage.concerns(row.cells)]
        matched = matcher.match(own)
        if matched.left_out and not self._options.allow_unmatched:
            raise self._hinted(matcher.refusal(matched.left_out))
        if matched.left_out and not matched.groups:
            why = matcher.reasons(matched.left_out)
            raise self._hinted(
                DataError(f"{self._answers.path}: no row matches a trial of this study: {why}.", code="import.no-match")
            )
        rule = self._options.duplicates or "refuse"
        settled = settle(self._answers, matched.groups, rule)
        unlike = matcher.contradictions(settled.rows, expanded(stage.trials(self._earlier), settled.copies))
        if unlike and self._options.disagreeing == "refuse":
            raise self._hinted(contradicted(self._answers, unlike, len(settled.rows)))
        keep = self._options.disagreeing == "keep"
        dropped = set() if keep else {one.ordinal for one in unlike}
        rows_by_trial = {ordinal: row for ordinal, row in settled.rows.items() if ordinal not in dropped}

        def trials() -> Iterator[Trial]:
            planned = expanded(stage.trials(self._earlier), settled.copies)
            asked = presented(planned, rows_by_trial, left_out(stage))
            return distinct_draws(asked) if rule == "all" or settled.copies else asked

        answered, replaced = one_answer(self._answers, trials(), rows_by_trial, rule)
        self._left_out(len(rows) - len(own), "they belong to another part of the study")
        self._left_out(len(matched.left_out), matcher.reasons(matched.left_out))
        self._left_out(settled.surplus, f"they answer a question again (--duplicates {rule})")
        if replaced:
            self._say(replaced, f"have the answer of another row to the same request (--duplicates {rule})")
        if more := sum(settled.copies.values()):
            how = "--duplicates all" if rule == "all" else "they are numbered epochs"
            self._say(more, f"answer a question again, and count as answers of their own ({how})")
        self._disagreed(unlike)
        if matched.loose:
            what = "match their trial except for white space, case, kinds of quotes or final punctuation"
            self._say(matched.loose, what)
        counts = {
            "rows": len(rows),
            "other_part": len(rows) - len(own),
            "unmatched": len(matched.left_out),
            "typed_otherwise": matched.loose,
            "duplicates": settled.surplus + replaced,
            "counted_again": more,
            "disagreeing": len(unlike),
        }
        stated = {one.ordinal: one.factors for one in unlike} if keep else {}
        chosen = Chosen(trials, answered, stated, counts)
        if self._requested is None:
            return chosen
        requested = next(other for other in self._requested.stages() if other.name == stage.name)
        sample, sentence = only_answered(chosen, requested.trials(self._earlier))
        self._notes.append(sentence)
        return sample

    def _rows_of(self, stage: Stage) -> list[Row]:
        if len(self._stages) == 1 and "stage" not in self._answers.fields:
            return self._answers.rows
        known = [stage.name for stage in self._stages]
        for row in self._answers.rows:
            if (name := row.cells.get("stage")) not in known:
                raise row.fault(f"stage {name!r}. The study has: {', '.join(known)} (--columns).")
        return [row for row in self._answers.rows if row.cells["stage"] == stage.name]

    def _disagreed(self, found: Sequence[Contradiction]) -> None:
        if not found:
            return
        row, cells = found[0].row, found[0].cells
        column, (said, known) = next(iter(cells.items()))
        example = f"such as {row.place}, where {column!r} is {differing(said, known)}"
        rule = self._options.disagreeing
        how = f"contradict the data in a column: {by_column(found)}, {example} (--disagreeing {rule})"
        if rule == "drop":
            self._left_out(len(found), f"they {how}")
        else:
            self._say(len(found), f"{how}; what the model was shown is recorded as the file states it")

    def _hinted(self, error: DataError) -> DataError:
        """Add that no data set was given, if the study accepts one."""
        if not self._lacks_data:
            return error
        return DataError(
            f"{error} No data set was given, so the study uses its own items. "
            "If the answers belong to a data set, name it with --data FILE.",
            code=error.code,
        )

    def _unreadable(self, faults: Sequence[RowError]) -> None:
        """Refuse rows whose answer cannot be read, or count them by reason.

        Raises:
            DataError: the rule is `refuse`.
        """
        if faults and self._options.bad_rows == "refuse":
            raise refusal(self._answers.path, len(self._answers.rows), faults, skippable=True)
        for reason, count in count_rows(self._answers.path, len(self._answers.rows), faults).reasons.items():
            self._left_out(count, reason)

    def _left_out(self, count: int, why: str) -> None:
        if count:
            self._say(count, f"were left out: {why}")

    def _say(self, count: int, what: str) -> None:
        self._notes.append(f"{count:,} of {len(self._answers.rows):,} rows of {self._answers.path} {what}.")

    def _note(self, stage: Stage, rows: Iterable[Row]) -> None:
        unrecorded = [
            *sorted(left_out(stage)),
            *([REQUEST] if lacks_requests(stage, rows) else []),
        ]
        self._unrecorded |= dict.fromkeys(unrecorded)
        if stage.operation in (PseudoLikelihood, Likelihood) and "tokens" not in self._answers.fields:
            self._notes.append(f"No number of scored tokens stands in {self._answers.path}; `tokens` is 1 throughout.")

    def _manifest(self, name: str) -> str:
        manifest = Manifest(
            run=name,
            study=self._study,
            identities={role: self._identity for role in self._study.roles},
            stages=self._records,
            origins=self._origins,
            data=digest_data(self._study.options) | self._answers.digests,
            notes=(
                self._origin(),
                *(count.sentence() for count in self._answers.left_out),
                *self._material(),
                *self._notes,
            ),
            unrecorded=tuple(self._unrecorded),
            options=self._all,
            design=self._design,
            readers=dict(READERS),
            mode=IMPORTED,
            command=self._options.command,
            **describe_machine(),
        )
        return encode(manifest).decode()

    def _material(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(note for stage in self._stages for note in stage.notes()))

    def _origin(self) -> str:
        """Say where the answers come from, and what nobody recorded of how they were asked."""
        origin = f"These answers were not collected here; they come from {self._answers.path}."
        words = [f"the {name}" for name in self._unrecorded if name != REQUEST]
        words += ["the words in which the model was asked"] if REQUEST in self._unrecorded else []
        return f"{origin} Not recorded there: {', '.join(words)}." if words else origin


def _digest(rows: Iterable[Tried]) -> str:
    digest = hashlib.sha256()
    for row in rows:
        digest.update(row.digest)
    return digest.hexdigest()


def _fields_of(stage: Stage) -> set[str]:
    """Return the names of columns that a stage knows."""
    first = next(iter(stage.trials({})), None) if _renames(stage) else None
    return {*stage.factors, *(columns_of(stage, first.factors) if first else ())}


def _renames(stage: Stage) -> bool:
    # Whoever renames nothing need not make a trial before the stages that it follows from.
    return isinstance(stage, MatchedStage) and type(stage).columns is not MatchedStage.columns


def identity_of(answers: Answers, options: ImportOptions) -> Identity:
    """Return the identity of the model a file's answers are stored under.

    The mapping of columns is a part of it, and which of several answers counts: with others the file gives other
    answers.
    """
    columns = ",".join(f"{field}={column}" for field, column in sorted(options.columns.items()))
    digests = ",".join(source.sha256 for source in answers.sources)
    settings: dict[str, Scalar] = {"file_sha256": digests, "columns": columns}
    if options.duplicates not in (None, "refuse"):
        settings["duplicates"] = options.duplicates
    return Identity(adapter=ADAPTER, version=VERSION, model=options.model, settings=settings)


def ensure_fields(answers: Answers, stage: Stage) -> None:
    """Refuse a file without the fields that a stage needs.

    Raises:
        DataError: naming the field that is missing.
    """
    operation = OPERATIONS[stage.operation]
    if stage.operation not in FIELDS:
        can = ", ".join(OPERATIONS[kind] for kind in FIELDS)
        raise DataError(
            f"stage {stage.name!r} asks {operation!r}, which cannot be imported from a table. These can: {can}.",
            code="import.operation",
        )
    for field in FIELDS[stage.operation]:
        if not any(name == field or (field == PROBABILITY and name.startswith(field)) for name in answers.fields):
            column = "probability.LABEL" if field == PROBABILITY else field
            has = ", ".join(map(repr, answers.fields))
            problem = f"{answers.path} has no column {column!r}, which stage {stage.name!r} ({operation}) needs"
            raise DataError(f"{problem}. Map one of: {has} (--columns {column}=COLUMN).", code="import.columns")
