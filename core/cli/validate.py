"""`prejudge study validate`."""

from __future__ import annotations

import click
import msgspec

from ..catalogue.study import Catalogue
from ..catalogue.studyfile import read_study_file
from ..catalogue.validation import problems_of, study_schema
from ..contracts.errors import UsageError
from .completing import complete_file
from .outlet import echo, echo_json
from .shared import registry_option


@click.command()
@click.argument("file", required=False, shell_complete=complete_file)
@click.option("--schema", is_flag=True, help="Print the JSON schema of study files, for editors.")
@registry_option
def validate(file: str | None, schema: bool, registry: str | None) -> int:
    """Check the study FILE and list all its errors. Exit code 1 if there are any.

    No model is asked. Commands accept a file instead of the name of a study: prejudge run my-study.toml.
    """
    catalogue = Catalogue.load(registry)
    if schema:
        echo_json(msgspec.json.format(msgspec.json.encode(study_schema(catalogue.plugins)), indent=2).decode())
        return 0
    if file is None:
        raise UsageError("name a study file: prejudge study validate my-study.toml", code="options.missing")
    if found := problems_of(file, catalogue):
        echo(f"{file}: {len(found)} {'problem' if len(found) == 1 else 'problems'}", err=True)
        for problem in found:
            echo(f"- {problem}", err=True)
        return 1
    name, study = read_study_file(file)
    echo(f"{file}: study {name!r} is valid. Probe {study.probe}; metrics {', '.join(study.metrics)}.")
    echo(f"To count its requests: prejudge plan {file}")
    return 0
