"""`prejudge study validate`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

import click
import msgspec

from ..catalogue.study import Catalogue
from ..catalogue.studyfile import is_study_folder, study_at
from ..catalogue.validation import folder_schema, problems_of, study_schema
from ..contracts.errors import UsageError
from ..contracts.records import Likelihood, Text, prompt_of
from .completing import complete_file
from .outlet import echo, echo_json
from .shared import registry_option

PROMPTS = 3
"""Prompts of a folder that are shown."""


@click.command()
@click.argument("file", required=False, shell_complete=complete_file)
@click.option("--schema", is_flag=True, help="Print the JSON schema of study files, for editors.")
@click.option("--of-folder", is_flag=True, help="With --schema: that of study.toml of a folder.")
@registry_option
def validate(file: str | None, schema: bool, of_folder: bool, registry: str | None) -> int:
    """Check the study FILE, or the study of a folder, and list all its errors. Exit code 1 if there are any.

    No model is asked. Commands accept a file or a folder instead of the name of a study: prejudge run my-study.toml.
    Of a folder the first prompts are shown as they will be sent.
    """
    catalogue = Catalogue.load(registry)
    if schema:
        form = catalogue.folder_probe.folder_form
        written = folder_schema(form) if of_folder else study_schema(catalogue.plugins)
        echo_json(msgspec.json.format(msgspec.json.encode(written), indent=2).decode())
        return 0
    if file is None:
        raise UsageError("name a study file: prejudge study validate my-study.toml", code="options.missing")
    if found := problems_of(file, catalogue):
        echo(f"{file}: {len(found)} {'problem' if len(found) == 1 else 'problems'}", err=True)
        for problem in found:
            echo(f"- {problem}", err=True)
        return 1
    name, study = study_at(file, catalogue.folder_probe)
    echo(f"{file}: study {name!r} is valid. Probe {study.probe}; metrics {', '.join(study.metrics)}.")
    if is_study_folder(file):
        for line in _first_prompts(catalogue, file, study.roles):
            echo(*line.split("\n"))
    echo(f"To count its requests: prejudge plan {file}")
    return 0


def _first_prompts(catalogue: Catalogue, folder: str, proposed: Mapping[str, str]) -> Iterator[str]:
    """Yield the first prompts of a folder as they will be sent, and the models that it proposes."""
    stage = catalogue.instrument(catalogue.study(folder, {}, {})).main_stage
    for trial in islice(stage.trials({}), PROMPTS):
        request = trial.request
        yield f"\nPrompt {trial.id}"
        yield from (
            f"{turn.role}: "
            + "\n".join(p.text if isinstance(p, Text) else f"[image {p.sha256[:12]}]" for p in turn.parts)
            for turn in prompt_of(request)
        )
        if not prompt_of(request):
            yield str(getattr(request, "text", None) or getattr(request, "prompt", ""))
        if isinstance(request, Likelihood):
            yield f"[likelihood of] {' |'.join(request.continuations)}"
    yield from (
        f"\nThe folder proposes {model!r} as {role}: --model {role}={model}" for role, model in proposed.items()
    )
