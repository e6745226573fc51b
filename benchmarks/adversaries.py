"""How often does each study convict a fair model that prefers levels of what the study samples?

`python benchmarks/adversaries.py STUDY ... --minutes 30` makes studies at the stated design, of a fair model and of one
for each facet, part and pair of them that a study samples, records each in `--folder`, and can be stopped and given
again. `--write` writes the page from what is recorded: `make adversaries` does both.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from prejudge.core.catalogue.certificate_records import Group
from prejudge.core.contracts.words import percent
from prejudge.core.design.record import Roles
from prejudge.core.lab.calibration.adversaries import SPREAD
from prejudge.core.lab.calibration.campaign import Campaign, Cell, Journal
from prejudge.core.lab.calibration.certify import Recipe, asked_of, bound, design_of
from prejudge.core.lab.calibration.gallery import FAIR, MARK, is_preferring
from prejudge.core.lab.calibration.numbers import present_golden
from prejudge.core.lab.calibration.rates import group_of
from prejudge.core.report.markdown import marked_table

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "calibration-adversaries.md"
STUDIES = (
    "bistereo-pairs",
    "bistereo-nli",
    "subtle-sai",
    "subtle-asa",
    "crows-pairs",
    "bistereo-tuples",
    "attractiveness",
)
CROWS = ROOT.parent / "shared" / "data" / "crows_pairs" / "crows_pairs_anonymized.csv"
"""The 1,508 pairs of CrowS-Pairs (Nangia et al. 2020), which are not part of this project."""
SILENT = ("dora-t2t", "dora-t2i", "dora-i2t", "indicasa")
"""Studies whose answers are free words or pictures, in which no preference can be planted by cells."""
HEAD = ("preferred", "studies", "findings", "most in", "other questions", "answers changed")


def data_of(study: str) -> dict[str, str]:
    """Return the option that names the file of a study whose pairs this project does not have."""
    return {"data": str(CROWS)} if study == "crows-pairs" else {}


class Opponents:
    """The fair models of one study that prefer levels, and the studies of them that are recorded."""

    def __init__(self, study: str, folder: Path) -> None:
        every = Recipe.load(study, data_of(study))
        preferring = {name: null for name, null in every.gallery.items() if is_preferring(name)}
        # What the others are compared with is planted by cells too, and prefers nothing.
        planting = next(iter(preferring.values())).planting
        fair = msgspec.structs.replace(every.gallery[FAIR], settings=planting)
        self.recipe = msgspec.structs.replace(every, gallery={FAIR: fair} | preferring)
        self.campaign: Campaign = self.recipe.campaign().entire
        golden = present_golden(self.recipe)
        self.journal = Journal(folder / f"{study}.jsonl", self.campaign.opening(bound(self.campaign, golden.head)))

    def make(self, studies: int, until: float) -> None:
        """Make studies of every model in turn, until all are made or the time has come."""
        for seed in range(studies):
            for null in self.campaign.gallery:
                if time.time() > until:
                    return
                self.journal.made(self.campaign, null, seed)

    def groups(self, studies: int) -> Iterator[Group]:
        """Yield the rates of each model, of the seeds that every model has."""
        nulls = [*self.campaign.gallery]
        common = min(sum(key[0] == null for key in self.journal.done) for null in nulls)
        questions = asked_of(self.campaign, [*self.journal.done.values()][:1])
        for null in nulls:
            cell = Cell(null, 0.0, min(common, studies))
            yield group_of(cell, self.journal.of(cell), questions)

    @property
    def design(self) -> Roles | None:
        """Return the declared design."""
        return self.campaign.bench.instrument.design


def page(studies: int, folder: Path) -> str:
    """Return the page of what is recorded."""
    lines = [
        "# Fair models that prefer levels",
        "",
        "Written by `make adversaries` (`benchmarks/adversaries.py`). Do not edit.",
        "",
        f"Each model prefers levels of what a study samples, with a standard deviation of {SPREAD:g} nats, drawn anew "
        "in each context and by one law for both groups: it is fair. *A and B* prefers both, *A with B* each "
        "combination, *A times B* by the product of two preferences. A study should convict one in twenty. Findings "
        "are the share of studies with a finding, of the question that has the most, with the 95 % interval of Clopper "
        "and Pearson; **bold** is more than chance explains (1 %, among the questions). Studies have the default size "
        "where the answers of such a model can be computed, else that of `prejudge lab calibrate`.",
    ]
    absent = []
    for study in STUDIES:
        if not (folder / f"{study}.jsonl").is_file():
            absent.append(study)
            continue
        lines += _part(study, Opponents(study, folder), studies)
    lines += [""]
    if absent:
        lines += [f"Not run: {_names(absent)}.", ""]
    lines += [
        f"Not possible: {_names(SILENT)} (a simulated model cannot show a preference in free words or pictures).",
    ]
    return "\n".join(lines) + "\n"


def _names(studies: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in studies)


def _part(study: str, own: Opponents, studies: int) -> Iterator[str]:
    groups = [*own.groups(studies)]
    design = ", ".join(
        f"{name} = {value}" for name, value in design_of(own.campaign).items() if ".resamples" not in name
    )
    few = "" if groups[0].studies >= studies else f" Stopped before the {studies} that were planned."
    yield from ("", f"## `{study}`", "", f"Design: {design or 'the defaults'}.{few}", "")
    asked = _asked_apart(own)
    yield from marked_table(HEAD, (_row(group, asked) for group in groups))
    if asked:
        measures, levels = (" and ".join(f"`{name}`" for name in names) for names in asked)
        yield from ("", f"{measures} asks about each level of {levels} apart: a preference by it is no fair one there.")


def _asked_apart(own: Opponents) -> tuple[Sequence[str], Sequence[str]] | None:
    """Return the measures that count findings at single levels of a facet, and such facets; None without any."""
    design, counting = own.design, [*own.campaign.entry.calibration.discoveries]
    facets = [] if design is None else [facet.name for facet in design.facets()]
    fixed = {
        name
        for question in (design.questions if design else ())
        for name, role in question.roles.items()
        if role == "fixed"
    }
    named = [name for name in facets if name in fixed]
    return (counting, named) if counting and named else None


def _row(group: Group, asked: tuple[Sequence[str], Sequence[str]] | None) -> Sequence[str]:
    preferred = group.null.partition(MARK)[2] or "nothing"
    measures, facets = asked or ((), ())
    unfair = set(facets) & set(preferred.replace(" and ", " with ").replace(" times ", " with ").split(" with "))
    answers = [rate for rate in group.answers if not (unfair and rate.measure in measures)]
    judged = msgspec.structs.replace(group, answers=tuple(answers))
    worst = judged.worst_answer or judged.worst
    findings = "no verdict" if worst is None else worst.told if worst.holds else f"**{worst.told}**"
    others = [f"`{rate.measure}` {percent(rate.rate or 0.0, 1)}" for rate in group.answers if rate != worst]
    changed = "" if group.changed is None else percent(group.changed, 1)
    measure = "" if worst is None else f"`{worst.measure}`"
    return preferred, str(group.studies), findings, measure, ", ".join(others), changed


def main() -> None:
    """Make studies, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("names", nargs="*", metavar="STUDY", help="studies to make; none: write the page alone")
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=600.0, help="after which no more is made")
    parser.add_argument("--folder", type=Path, default=ROOT / ".build" / "adversaries")
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    until = time.time() + 60 * chosen.minutes
    for name in chosen.names:
        if time.time() > until:
            break
        start = time.process_time()
        Opponents(name, chosen.folder).make(chosen.studies, until)
        print(f"{name}: {time.process_time() - start:.0f} s of processor time", flush=True)
    if chosen.write:
        PAGE.write_text(page(chosen.studies, chosen.folder), "utf-8")


if __name__ == "__main__":
    main()
