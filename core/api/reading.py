"""The verbs that read what a run stored, unscored, and write tables: observe, exchanges, write_table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
import polars as pl

from ..catalogue.refusal_stage import decided
from ..catalogue.study import Catalogue, Study
from ..contracts import Stage
from ..contracts.canonical import decode_request, decode_response
from ..contracts.errors import UsageError
from ..engine.manifest import manifest_of
from ..engine.observations import spill_stage, stack
from ..engine.spilled import Frames
from ..report.examples import show_request, show_response
from ..report.export import Format, encode, write_bytes
from ..store import RunProof, RunRow, Store, finish_proof, get_run, used_answers
from .settings import Settings

TABLES: tuple[Format, ...] = ("parquet", "csv", "json")
"""File formats of `write_table`."""


class Observations(msgspec.Struct, frozen=True):
    """The observations of a run, unscored.

    Example:
        >>> import prejudge
        >>> run = prejudge.run("bistereo-pairs", "simulated-biased", per_cell=2, axes=["height"])
        >>> list(prejudge.observe(run.name).stages)
        ['pairs']
    """

    run: str
    """Name of the run."""
    study: Study
    """The study, with the options and models of the run."""
    stages: dict[str, pl.DataFrame]
    """A frame per stage, in the order the stages were run."""

    @property
    def last(self) -> pl.DataFrame:
        """Return the observations of the last stage."""
        return list(self.stages.values())[-1]

    @property
    def stacked(self) -> pl.DataFrame:
        """Return the observations of all stages in one frame, with a column `stage`."""
        return stack(self.stages)


def observe(name: str = "latest", settings: Settings | None = None) -> Observations:
    """Read the observations of a run from the store alone; nothing is scored.

    Args:
        name: the run's name, the beginning of it, or `latest`.
        settings: paths of the store and the registry.

    Returns:
        The observations: `.last`, `.stacked`, `.stages`.

    Raises:
        UnknownNameError: there is no such run, or its probe is not installed.
        DataError: the run is not as it was stored.

    Example:
        >>> import prejudge
        >>> run = prejudge.run("bistereo-pairs", "simulated-biased", per_cell=2, axes=["height"])
        >>> prejudge.observe(run.name).last["status"].unique().to_list()
        ['ok']
    """
    settings = settings or Settings()
    with Store(settings.store, writable=False) as store:
        row = get_run(store, name)
        study = manifest_of(row).study
        stages = Catalogue.load(settings.registry).instrument(study).stages()
        return Observations(row.name, study, observations_of(store, row, stages))


def observations_of(store: Store, run: RunRow, stages: Sequence[Stage]) -> dict[str, pl.DataFrame]:
    """Return the observations of a run by stage, from the store alone.

    Raises:
        DataError: the run is not as it was stored.
    """
    design, proof = manifest_of(run).design, RunProof(store, run)
    read = {stage.name: spill_stage(store, run, stage, proof=proof, design=design) for stage in stages}
    finish_proof(store, run.id, proof)
    frames = dict(Frames(read))
    return frames | decided(frames, stages)


def exchanges(name: str, keys: Iterable[bytes], settings: Settings | None = None) -> dict[bytes, list[tuple[str, str]]]:
    """Return requests and answers as people read them, by the keys of a run's observations.

    Args:
        name: the run's name, the beginning of it, or `latest`.
        keys: values of the column `key` of its observations.
        settings: path of the store.

    Returns:
        By key the pairs of a label and a text: the parts of the request, then those of the answer. A key that the run
        has no answer for is left out.

    Raises:
        UnknownNameError: there is no such run.

    Example:
        >>> import prejudge
        >>> run = prejudge.run("subtle-sai", "simulated-biased", per_cell=1)
        >>> key = run.observations["key"][0]
        >>> [label for label, text in prejudge.exchanges(run.name, [key])[key]]
        ['user', 'answer']
    """
    with Store((settings or Settings()).store, writable=False) as store:
        used = used_answers(store, get_run(store, name).id, keys)
        rows = {number: (request, response) for number, request, response in store.exchanges(used.values())}
    return {
        key: [*show_request(decode_request(request)), *show_response(decode_response(response))]
        for key, (request, response) in ((key, rows[number]) for key, number in used.items())
    }


def write_table(frame: pl.DataFrame, path: Path) -> Path:
    r"""Write a frame as .parquet, .csv or .json, by the ending of the file name.

    Args:
        frame: what to write, such as `run.estimates`.
        path: the file; its folder is made.

    Returns:
        The path.

    Raises:
        UsageError: the ending is unknown, or the file cannot be written.

    Example:
        >>> import polars, prejudge
        >>> from pathlib import Path
        >>> prejudge.write_table(polars.DataFrame({"group": ["a"], "n": [3]}), Path("table.csv")).read_text()
        'group,n\na,3\n'
    """
    kind = path.suffix.lower().removeprefix(".")
    if kind not in TABLES:
        endings = ", ".join(f".{name}" for name in TABLES)
        raise UsageError(
            f"the file name {path.name!r} has an unknown ending. Use one of {endings}.", code="options.file-kind"
        )
    return write_bytes(encode(frame, kind), path)
