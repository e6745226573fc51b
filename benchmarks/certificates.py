"""Put certificates that `prejudge lab calibrate` wrote beside their studies, and what the pages show of them.

`python benchmarks/certificates.py FOLDER` takes those of FOLDER; without it, the pages are written from those that
stand beside the studies. `make certificates` makes them first.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import msgspec

from prejudge.core.catalogue.filed import FOLDER, read_certificate
from prejudge.core.catalogue.golden import SUFFIX
from prejudge.core.lab.calibration.page import brief, draw, excerpt, marks
from prejudge.core.report.figures import export

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "studies"
FIGURES = PAGES / FOLDER


def packaged() -> list[Path]:
    """Return the certificates that stand beside the built-in studies."""
    return sorted(ROOT.glob(f"probes/*/{FOLDER}/*.json"))


def take(folder: Path) -> None:
    """Copy the certificates of built-in studies, and their golden files, from a folder."""
    for study in sorted(ROOT.glob("probes/*/*.toml")):
        made = folder / f"{study.stem}.json"
        if made.is_file():
            place = study.parent / FOLDER / made.name
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(msgspec.json.encode(read_certificate(made)) + b"\n")
            place.with_suffix(SUFFIX).write_bytes(made.with_suffix(SUFFIX).read_bytes())


def write_pages() -> None:
    """Write what the pages show of the certificates, and their figures."""
    FIGURES.mkdir(exist_ok=True)
    for path in packaged():
        certificate = read_certificate(path)
        for page in PAGES.glob("*.md"):
            for part, shown in (("certificate", excerpt(certificate)), ("verdict", brief(certificate))):
                begin, end = marks(certificate.study, part)
                text = page.read_text("utf-8")
                if begin in text:
                    before, _, rest = text.partition(begin)
                    page.write_text(before + shown + rest.partition(end)[2], "utf-8")
        (FIGURES / f"{certificate.study}.svg").write_bytes(export(draw(certificate), "svg"))


def main() -> None:
    """Take certificates if a folder is named, and write the pages."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", nargs="?", type=Path)
    if (folder := parser.parse_args().folder) is not None:
        take(folder)
    write_pages()


if __name__ == "__main__":
    main()
