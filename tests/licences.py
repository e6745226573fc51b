"""Write docs/licences.md: `make licences`. Licences of packages are what their installed metadata says."""

from __future__ import annotations

import re
import sys
from email.message import Message
from pathlib import Path
from typing import Any

if not __package__:  # run as a script
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    __package__ = "tests"

from .dependencies import BASE, PROJECT, named, needed
from .package_parts import ROOT

PAGE = ROOT / "docs" / "licences.md"
TOOLS = frozenset({"dev", "docs"})
"""Extras for work on this project; whoever runs studies does not install them."""
GROUPS = frozenset({"all"})
ELSEWHERE = frozenset({"vllm"})
"""Extras that cannot be installed beside the others: their wheels pin a torch of their own, for CUDA."""
UNKNOWN = "not stated"
SPDX = {
    "Apache": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Apache 2.0 License": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "2-clause BSD": "BSD-2-Clause",
    "BSD 2-Clause License": "BSD-2-Clause",
    "BSD 3-Clause License": "BSD-3-Clause",
    "3-Clause BSD License": "BSD-3-Clause",
    "BSD": "BSD",
    "BSD License": "BSD",
    "ISC License": "ISC",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Public Domain": "public domain",
    "Python Software Foundation License": "PSF-2.0",
    "GNU General Public License (GPL)": "GPL",
    "GNU General Public License v3 (GPLv3)": "GPL-3.0",
}
"""Names in metadata, as SPDX writes them; a plain `BSD` does not say of how many clauses."""
COPYLEFT = re.compile(r"\b(?:A?GPL|LGPL|MPL|EPL|EUPL|CDDL|CC-BY-(?:SA|NC|ND))")
REASONS = {
    "certifi": "its file of certificates is used unchanged; the MPL covers changes to its own files only",
    "tqdm": "used unchanged; the MPL covers changes to its own files only",
    "psycopg": "in the extra `postgres` only, and imported as it is, which the LGPL allows to programs of any licence",
    "psycopg-binary": "as `psycopg`",
    "labmtsimple": "in the extras `lexicon` and `all`; neither the package nor its repository "
    "(github.com/andyreagan/labMT-simple, its setup.py and README, looked at in November 2026) states a licence. The "
    "adapter reads one of its files, which has a licence of its own (below); without the package "
    "(`pip uninstall labMTsimple`), it works with VADER alone",
}
"""Why a package may be needed although its licence is copyleft or not stated."""
DATA = (
    (
        "ratings of 13,915 words (Warriner, Kuperman and Brysbaert 2013)",
        "the package `labMTsimple` (extra `lexicon`)",
        "CC BY-NC-ND 3.0: **not for commercial use**",
        "named by two redistributions, github.com/JULIELab/XANEW and the R package LexOPS, after the authors' page "
        "crr.ugent.be/archives/1003, which was not read itself. `labMTsimple` names none for them",
    ),
    (
        "the word list and rules of VADER (Hutto and Gilbert 2014)",
        "the package `vaderSentiment` (extra `lexicon`)",
        "MIT",
        "LICENSE.txt of the package and of github.com/cjhutto/vaderSentiment",
    ),
    (
        "CrowS-Pairs, 1,508 pairs",
        "[github.com/nyu-mll/crows-pairs](https://github.com/nyu-mll/crows-pairs)",
        "CC BY-SA 4.0",
        "the repository's README",
    ),
    (
        "items and raw answers of the study of age, beauty, institution and nation",
        "the authors' repository: [subtle](studies/subtle.md)",
        "MIT",
        "the repository's LICENSE",
    ),
    ("IndiCASA, IndiBias", "the authors' repositories: [indicasa](studies/indicasa.md)", "none stated", "none found"),
    ("BiasDora's prompts", "the authors' repository: [dora](studies/dora.md)", "none stated", "none found"),
    (
        "Chicago Face Database, FACES",
        "on request from their owners: [attractiveness](studies/attractiveness.md)",
        "research licences",
        "not read: they come with the images",
    ),
)
"""Data that the package does not contain: what, where from, licence, and how the licence is known."""

INTRODUCTION = """# Licences

prejudge is under the MIT licence. It contains no code of the packages below, which `pip` installs, and no data of
others, which users fetch. `make licences` writes this page from the metadata of the installed packages; a test fails
where the page is not up to date, and where a licence limits the use, or is not stated, without a reason on this page.
The page says what the metadata says: libraries that a wheel carries inside have licences of their own. It is no legal
advice. The extra `vllm` is not among them, since its packages are installed on machines with CUDA only: vLLM itself is
under Apache-2.0, and it brings NVIDIA's libraries, which have a licence of NVIDIA.
"""


def licence_of(metadata: Message | Any) -> str:
    """Return the licence that the metadata of a distribution states."""
    if expression := metadata.get("License-Expression"):
        return str(expression)
    free = (metadata.get("License") or "").strip()
    short = SPDX.get(free, free) if free != "UNKNOWN" and len(free) <= 40 and "\n" not in free else ""
    if short and short != "BSD":
        return short
    classes = [
        line.rpartition(" :: ")[2] for line in metadata.get_all("Classifier") or () if line.startswith("License")
    ]
    return " OR ".join(SPDX.get(one, one) for one in classes) or short or UNKNOWN


def is_copyleft(licence: str) -> bool:
    """Return whether each of the licences to choose from is copyleft or limits the use."""
    return all(COPYLEFT.search(one) for one in licence.split(" OR "))


def packages() -> dict[str, tuple[str, list[str]]]:
    """Return licence and extras of every package that an extra installs, by name."""
    found: dict[str, tuple[str, list[str]]] = {}
    for extra in (BASE, *PROJECT["optional-dependencies"]):
        if extra not in GROUPS | ELSEWHERE:
            for name, distribution in needed(named(extra)).items():
                found.setdefault(name, (licence_of(distribution.metadata), []))[1].append(extra)
    return dict(sorted(found.items()))


def in_need_of_a_reason(found: dict[str, tuple[str, list[str]]]) -> set[str]:
    """Return the packages, those for work on this project left out, whose licence is copyleft or not stated."""
    return {
        name
        for name, (licence, extras) in found.items()
        if set(extras) - TOOLS and (licence == UNKNOWN or is_copyleft(licence))
    }


def page() -> str:
    """Return the whole page."""
    found = packages()
    used = {name: (licence, extras) for name, (licence, extras) in found.items() if set(extras) - TOOLS}
    tools = {name: licence for name, (licence, _) in found.items() if name not in used}
    limits = [(name, found[name][0], _extras(found[name][1]), reason) for name, reason in REASONS.items()]
    return "\n".join(
        (
            INTRODUCTION,
            "## Packages\n",
            "Those of an installation without extras are in italics.\n",
            _table(("licence", "packages"), _by_licence(used)),
            "\n## Licences with conditions, and none\n",
            _table(
                ("package", "licence", "extras", "why it is needed all the same"),
                limits,
            ),
            "\n## Data and word lists that studies use\n",
            _table(("data", "from", "licence", "how it is known"), DATA),
            "\nThe package contains these:\n",
            _table(("data", "licence"), _own_data()),
            "\n## Packages for work on this project\n",
            "Only `docs` and `dev` install these.\n",
            _table(("licence", "packages"), _by_licence({name: (licence, []) for name, licence in tools.items()})),
            "",
        )
    )


def _by_licence(found: dict[str, tuple[str, list[str]]]) -> list[tuple[str, str]]:
    """Return each licence with its packages; those of every installation are in italics."""
    groups: dict[str, list[str]] = {}
    for name, (licence, extras) in found.items():
        groups.setdefault(licence, []).append(f"*{name}*" if BASE in extras else name)
    return [(licence, ", ".join(names)) for licence, names in sorted(groups.items(), key=lambda item: -len(item[1]))]


def _extras(extras: list[str]) -> str:
    # What the base needs, every extra needs.
    return f"`{BASE}`" if BASE in extras else ", ".join(f"`{extra}`" for extra in extras if extra not in TOOLS)


def _own_data() -> list[tuple[str, str]]:
    """Return the folders of word lists with the licence that their data statement names."""
    rows = [("`adapters/reference`: models and the sentences they were trained on", "MIT, as the project")]
    for folder in sorted((ROOT / "probes").rglob("data")):
        for statement in sorted(folder.rglob("README.md")):
            said = re.search(r"^- \*\*Licence\*\*: (.*?)(?=\n- |\n\n|\Z)", statement.read_text("utf-8"), re.M | re.S)
            assert said is not None, f"{statement} names no licence"
            rows.append((f"`{statement.parent.relative_to(ROOT).as_posix()}`", " ".join(said[1].split())))
    return rows


def _table(heads: tuple[str, ...], rows: Any) -> str:
    lines = [heads, ("---",) * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
