"""Plugin of BIStereo: probes, metrics, studies and commands."""

from __future__ import annotations

from importlib.resources import files

from ...core.contracts.plugin import Plugged, StudyFile, hookimpl


@hookimpl
def prejudge_probes() -> list[Plugged]:
    """Return the probes."""
    return [
        Plugged(
            "bistereo-pairs",
            "prejudge.probes.bistereo.pairs:BIStereoPairs",
            "Pairs of sentences that differ only in a description of the body (BIStereo-Pairs).",
        ),
        Plugged(
            "bistereo-nli",
            "prejudge.probes.bistereo.nli:BIStereoNLI",
            "Premises and hypotheses about skin tones, looks and behaviour; no hypothesis follows (BIStereo-NLI).",
        ),
        Plugged(
            "bistereo-tuples",
            "prejudge.probes.bistereo.tuples:BIStereoTuples",
            "Analogies between an advantaged and a disadvantaged group in one dimension of the body (BIStereo-Tuples).",
        ),
        Plugged(
            "bistereo-tuples-draft",
            "prejudge.probes.bistereo.tuples_draft:BIStereoTuplesDraft",
            "Tuples (descriptor, noun, attribute) written by a model, for people to validate.",
        ),
        Plugged(
            "bistereo-nli-prompts",
            "prejudge.probes.bistereo.nli_prompts:NLIPrompts",
            "Inference on labelled pairs of your own by each of the paper's prompts, to choose one for bistereo-nli.",
        ),
    ]


@hookimpl
def prejudge_metrics() -> list[Plugged]:
    """Return the metrics."""
    return [
        Plugged(
            "trisentbias",
            "prejudge.metrics.bistereo.trisentbias:TriSentBias",
            "Preferences for the desirable description: z1, z2, z3, favouritism, discrimination, magnitudes.",
        ),
        Plugged(
            "bistereo-nli",
            "prejudge.metrics.bistereo.nli:BIStereoNLI",
            "Shares of entailment, contradiction and neutral by skin tone; halo and horn effects.",
        ),
        Plugged(
            "bistereo-tuples",
            "prejudge.metrics.bistereo.tuples:BIStereoTuples",
            "How often an analogy is completed with the stereotype, raw and minus the words' prior, by gender.",
        ),
        Plugged(
            "bistereo-tuples-draft",
            "prejudge.metrics.bistereo.tuples_draft:BIStereoTuplesDraft",
            "Number of drafted tuples, and of lines that are not tuples.",
        ),
        Plugged(
            "bistereo-nli-prompts",
            "prejudge.metrics.bistereo.nli_prompts:NLIPrompts",
            "Accuracy of each prompt, and the best compared with every other.",
        ),
    ]


@hookimpl
def prejudge_studies() -> list[StudyFile]:
    """Return the studies."""
    names = ("bistereo-pairs", "bistereo-nli", "bistereo-nli-prompts", "bistereo-tuples", "bistereo-tuples-draft")
    return [files(__package__) / f"{name}.toml" for name in names]


@hookimpl
def prejudge_commands() -> list[Plugged]:
    """Return the commands."""
    return [
        Plugged(
            "tuples",
            "prejudge.probes.bistereo.command:tuples",
            "Write annotation sheets for drafted tuples, and read the completed sheets.",
        ),
    ]
