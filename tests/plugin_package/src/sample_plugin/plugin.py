"""What this package offers."""

from importlib.resources import files

import prejudge


@prejudge.hookimpl
def prejudge_adapters():
    """Return the adapters."""
    return [prejudge.Plugged("sample-echo", "sample_plugin.adapter:Echo", "Answers with the question.")]


@prejudge.hookimpl
def prejudge_probes():
    """Return the probes."""
    return [
        prejudge.Plugged("sample-greetings", "sample_plugin.probe:Greetings", "Greets people."),
        prejudge.Plugged("sample-praise", "sample_plugin.praise:Praise", "Asks in German who has which trait."),
    ]


@prejudge.hookimpl
def prejudge_metrics():
    """Return the metrics."""
    return [prejudge.Plugged("sample-length", "sample_plugin.metric:Length", "How long answers are.")]


@prejudge.hookimpl
def prejudge_studies():
    """Return the study files."""
    return [files(__package__) / "greetings.toml", files(__package__) / "praise.toml"]


@prejudge.hookimpl
def prejudge_commands():
    """Return the commands."""
    return [prejudge.Plugged("sample-people", "sample_plugin.command:people", "List who is greeted.")]
