"""The verdict of a certificate in words: under which fair models a study holds its level, and which were not tested."""

from __future__ import annotations

from collections.abc import Sequence

from ...catalogue.certificate_records import LEVEL, Certificate, Group
from ...catalogue.certificates import WANTED
from ...contracts.words import percent
from .gallery import FAIR, MARK, is_preferring
from .rates import most_by_chance


def verdict(certificate: Certificate) -> str:
    """Return in a few sentences under which fair models the study holds its level, and by how many studies."""
    if certificate.flaw:
        return f"Not certified, since {certificate.flaw}."
    if not certificate.fair:
        return "No study of a fair model was made."
    failed = f"; under {_names(certificate.failed)} false findings are more frequent" if certificate.failed else ""
    untested = f"; not tested: {_reasons(certificate)}" if certificate.untested else ""
    return (
        f"Under {_held(certificate)} every answer and every number of the headline holds the level of "
        f"{percent(LEVEL, 0)}{failed}{untested}.{_together(certificate)} {_studies(certificate)}."
        f"{holds_for(certificate)}"
    )


def holds_for(certificate: Certificate) -> str:
    """Return for which preferences of a fair model the level is held, and for which it is not, as sentences."""
    # One without a verdict has shown nothing.
    groups = [group for group in certificate.fair if is_preferring(group.null) and group.judged]
    kept = [_preferred(group) for group in groups if not group.failed]
    lost = [
        f"{_preferred(group)} ({percent(max(rate.rate or 0.0 for rate in group.rates), 1)})"
        for group in groups
        if group.failed
    ]
    sentences = f" It holds for models that prefer some levels of {'; '.join(kept)}." if kept else ""
    return sentences + (f" It does not hold for preferences of {'; '.join(lost)}." if lost else "")


def _preferred(group: Group) -> str:
    return group.null.partition(MARK)[2]


def short_verdict(certificate: Certificate) -> str:
    """Return the verdict in one sentence, for a page that leads to the whole table."""
    if certificate.flaw or not certificate.fair:
        return verdict(certificate)
    failed = f", not under {_names(certificate.failed)}" if certificate.failed else ""
    count = len(certificate.untested)
    untested = f"; not tested: {count} that cannot act"
    few = f" {_studies(certificate)}." if certificate.least < WANTED else ""
    return f"holds the level of {percent(LEVEL, 0)} under {_held(certificate)}{failed}{untested if count else ''}.{few}"


def _held(certificate: Certificate) -> str:
    """Return of how many fair models of each kind the level is held, such as `11 of 12 simulated fair models`."""
    trained = [group for group in certificate.fair if group in certificate.real]
    simulated = [group for group in certificate.fair if group not in trained]
    counts = [f"{_passing(certificate, simulated)} simulated"] if simulated else []
    counts += [f"{_passing(certificate, trained)} trained"] if trained else []
    several = len(certificate.fair) > 1
    each = "" if certificate.failed else "all " if several else "the "
    return f"{each}{' and '.join(counts)} fair model{'s' * several}"


def _passing(certificate: Certificate, groups: Sequence[Group]) -> str:
    count = f"{len(groups)}"
    return f"{sum(not group.failed for group in groups)} of {count}" if certificate.failed else count


def _studies(certificate: Certificate) -> str:
    """Return how many studies each model has."""
    trained = [group.judged for group in certificate.fair if group in certificate.real]
    if len(trained) == len(certificate.fair):
        return f"Each trained model has {min(trained):,} studies or more"
    few = f", below the {WANTED:,} that are wanted" if certificate.least < WANTED else ""
    each = f"; each trained one {min(trained):,}" if trained else ""
    return f"Each simulated model has {certificate.least:,} studies or more{few}{each}"


def _reasons(certificate: Certificate) -> str:
    """Return the models that were not tested, those with one reason together."""
    models: dict[str, list[str]] = {}
    for null, reason in certificate.untested.items():
        models.setdefault(reason, []).append(f"`{null}`")
    return ", ".join(f"{', '.join(names)} ({reason})" for reason, names in models.items())


def _names(groups: Sequence[Group]) -> str:
    return ", ".join(f"`{group.null}`" for group in groups)


def _together(certificate: Certificate) -> str:
    """Return what the numbers of the headline together do, if they are more than one and that is more than chance."""
    fair = certificate.group(FAIR)
    if fair is None or len(fair.rates) < 2 or fair.any_shown <= most_by_chance(fair.studies):
        return ""
    share = percent(fair.any_shown / fair.studies, 1)
    return f" Each of them is held to it, not all together: in {share} of the studies of `{FAIR}` any one is shown."
