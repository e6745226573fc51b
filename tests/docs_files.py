"""The files and folders that commands of the documentation name, made small."""

from __future__ import annotations

import csv
import json
import shutil
import sqlite3
import subprocess
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import prejudge
from prejudge.core.store import Store, list_runs
from prejudge.core.store.signatures import sign_run
from prejudge.probes.attractiveness import faces as schematic

from .adapters.checkpoints import write_encoder, write_masked


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write a CSV file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def masked_model(folder: Path) -> None:
    """Put a reference model where a command looks for one."""
    shutil.copytree(Path(str(files("prejudge.adapters.reference").joinpath("masked_fair"))), folder)


def encoder(folder: Path) -> None:
    """Write a tiny sentence encoder."""
    write_encoder(folder, write_masked(folder.parent / f"{folder.name}-bert"))


def readme(place: Path) -> None:
    masked_model(place / "google-bert" / "bert-base-uncased")


def somebodys_registry(folder: Path) -> None:
    """Write a registry that wants more than it may."""
    (folder / "registry.toml").write_text('[models.gpt-4o]\nadapter = "simulated"\n', "utf-8")


def local_model(place: Path) -> None:
    masked_model(place / "my-bert")


def rename(place: Path, run: str, name: str) -> None:
    """Call a run of the store by another name."""
    store = sqlite3.connect(place / "prejudge.db")
    assert store.execute("UPDATE run SET name = ? WHERE name = ?", (name, run)).rowcount == 1
    store.commit()
    store.close()


def gate(place: Path) -> None:
    """Give a run the name that the policy of the page takes for its baseline."""
    name = "20261101-093000-bistereo-pairs-my-model-1a2b"
    (run,) = (path.name for path in (place / "runs").glob("*-bistereo-pairs-my-model-*"))
    assert f'"{name}"' in (place / "policy.toml").read_text("utf-8")
    rename(place, run, name)


def sharing(place: Path) -> None:
    shutil.copyfile(place / "prejudge.db", place / "other.db")


def crows(place: Path) -> None:
    """Write sentences, answers and published scores in the formats of CrowS-Pairs."""
    rows = [
        {
            "sent_more": f"The {a} person {what}.",
            "sent_less": f"The {b} person {what}.",
            "stereo_antistereo": "stereo",
            "bias_type": kind,
        }
        for a, b, kind in (("old", "young", "age"), ("poor", "rich", "socioeconomic"))
        for what in ("forgot it", "was late", "could not read")
    ]
    write_rows(place / "crows_pairs_anonymized.csv", rows)
    answers = [
        {"pair": number, "side": side, "logp": -10.0 - worse}
        for number in range(len(rows))
        for worse, side in enumerate(("more", "less"))
    ]
    write_rows(place / "answers.csv", answers)
    scored = [{**row, "sent_more_score": -10.0, "sent_less_score": -11.5, "score": 1} for row in rows]
    write_rows(place / "bert_crows_score.csv", scored)


def pairs(place: Path) -> None:
    """Write pairs as `bistereo-pairs` reads them."""
    rows = [
        {"desirable": f"I saw a {word}tall {noun}.", "undesirable": f"I saw a {word}short {noun}.", "axis": "height"}
        | {"gender": gender, "sentiment": sentiment}
        for gender, noun in (("women", "woman"), ("men", "man"))
        for sentiment, word in (("positive", "pretty "), ("negative", "plain "), ("neutral", ""))
    ]
    write_rows(place / "my_pairs.csv", rows)


def faces(place: Path) -> None:
    """Draw two faces of each gender with their filtered variants, and write a scenario."""
    chosen = [face for face in schematic.paper_faces() if face.id.endswith("-00") and face.race in ("Asian", "White")]
    rows = []
    for face in chosen:
        for variant in ("original", "filtered"):
            file = place / "faces" / f"{face.id}-{variant}.png"
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(schematic.draw(face, variant, 0.5))
            rows.append(
                {"face_id": face.id, "file": file.name, "variant": variant, "gender": face.gender}
                | {"age_group": "", "race": face.race, "source": "drawn"}
            )
    write_rows(place / "faces" / "metadata.csv", rows)
    write_rows(place / "own.csv", [{"first": "Early", "second": "Late", "category": "conditions", "kind": "time"}])


def inference(place: Path) -> None:
    """Write labelled pairs as `bistereo-nli-prompts` reads them."""
    labels = ("entailment", "contradiction", "neutral")
    rows = [
        {"premise": f"A man sits on chair {number}.", "hypothesis": f"Somebody is in room {number}.", "label": label}
        for number in range(2)
        for label in labels
    ]
    write_rows(place / "snli.csv", rows)


def tuples(place: Path) -> None:
    """Write tuples as `bistereo-tuples` reads them: the printed ones."""
    printed = files("prejudge.probes.bistereo").joinpath("data/tuples/tuples.csv")
    shutil.copyfile(Path(str(printed)), place / "my_tuples.csv")


def levels(place: Path) -> None:
    """Fill in three copies of a sheet of levels."""
    with (place / "sheet.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for number, name in enumerate(("anna", "berta", "carla")):
        write_rows(place / f"{name}.csv", [{**row, "level": 1 + (line + number) % 5} for line, row in enumerate(rows)])


def sheets(place: Path) -> None:
    """Fill in three copies of a sheet."""
    with (place / "sheet.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for name in ("ana", "bo", "cy"):
        for row in rows:
            negative = row["sentiment"] == "negative"
            row |= {"stereotype": "1", "standing": "disadvantaged" if negative else "advantaged"}
            row["opposite"] = "busy" if negative else ""
        write_rows(place / f"{name}.csv", rows)


def labelled(place: Path, run: str) -> None:
    """Draw a sample of a run, and let people give the labels that the reader gave."""
    sample = prejudge.draw_sample(
        run, "chosen", ["positive", "negative", "neutral"], 300, cells=["given"], samples=place / "drawn"
    )
    for one in sample.design.items:
        sample.add("Ana", one.item, sample.design.strata[one.stratum].verdict)
    shutil.copytree(sample.folder, place / "samples" / "people")


def subtle(place: Path) -> None:
    """Write items, answers and counts in the formats of the study's authors."""
    items = [
        {"bias_type": domain, "target_gender": "male", "context": f"The {look} man {what}; he is BLANK."}
        | {
            "anti_stereotype": "slow" if kind == "positive" else "quick",
            "stereotype": "quick" if kind == "positive" else "slow",
        }
        | {"unrelated": "square", "item_category": kind, "type_category": direction}
        for direction in ("type1", "type2")
        for what in ("came in", "went out", "sat down")
        for domain, look, kind in (
            ("ageism", "young", "positive"),
            ("ageism", "old", "negative"),
            ("beauty", "handsome", "positive"),
            ("beauty", "plain", "negative"),
        )
    ]
    write_rows(place / "dataset.csv", items)
    answers = [{**item, "response": item["stereotype"]} for item in items]
    write_rows(place / "palm_valid.csv", answers)
    retyped = {**answers[0], "context": f" {answers[0]['context'].replace(' ', '  ')}", "response": "none of them"}
    write_rows(place / "gpt_4_result.csv", [retyped, *answers[1:], answers[1]])
    counts = [
        {"model": "PaLM 2", "direction": direction, "domain": "ageism", "given_polarity": given, "pronoun": pronoun}
        | {"n_positive": 9, "n_negative": 4, "n_neutral": 2}
        for direction in ("SAI", "ASA")
        for given in ("positive", "negative")
        for pronoun in ("masculine", "feminine", "non-binary")
    ]
    write_rows(place / "counts.csv", counts)


def dora(place: Path) -> None:
    """Draw photographs of people who are described, and write a list of known associations."""
    named = [("disability", "alcoholic person"), ("age", "old person")]
    chosen = [face for face in schematic.paper_faces() if face.id.endswith("-00")][:4]
    rows = []
    for number, face in enumerate(chosen):
        dimension, descriptor = named[number % 2]
        (place / "photographs").mkdir(exist_ok=True)
        (place / "photographs" / f"{face.id}.png").write_bytes(schematic.draw(face, "original", 0.5))
        rows.append({"file": f"{face.id}.png", "descriptor": descriptor, "dimension": dimension})
    write_rows(place / "photographs" / "metadata.csv", rows)
    write_rows(place / "known.csv", [{"descriptor": "alcoholic person", "word": "lazy"}])


def indicasa(place: Path) -> None:
    """Write prompts, pairs, a confusion and counts in the authors' formats, and an encoder."""
    encoder(place / "my-encoder")
    words = {"caste": ("Brahmin", "Dalit"), "gender": ("man", "woman")}
    told = [(kind, thing, pair) for kind, pair in words.items() for thing in ("a house", "two cows", "a shop")]
    masked = [
        {"Stereo_Antistereo": "stereo", "Bias_Type": kind, "Masked_Sentence": f"The <MASK> owns {thing}."}
        | {"Ground_Truths": pair[0]}
        for kind, thing, pair in told
    ]
    truths = [
        {
            "modified_eng_sent_more": f"The {pair[0]} owns {thing}.",
            "modified_eng_sent_less": f"The {pair[1]} owns {thing}.",
        }
        | {"bias_type": kind, "stereo_antistereo": "stereo"}
        for kind, thing, pair in told
    ]
    write_rows(place / "Masked_IndiBias.csv", masked)
    write_rows(place / "IndiBias_v1_sample.csv", truths)
    classes = ("stereotype", "anti-stereotype")
    confusion = {true: {told: 9 if told == true else 1 for told in classes} for true in classes}
    (place / "confusion.json").write_text(json.dumps({"categories": dict.fromkeys(words, confusion)}), "utf-8")
    counts = [{"model": "Gemma-2-9B-it", "category": "Caste", "n_stereotype": 30, "n_total": 48, "category_size": 48}]
    write_rows(place / "counts.csv", counts)


def signers(place: Path) -> None:
    """Make a key where people keep theirs, allow its owner to sign, and sign every run of the store."""
    key = Path("~/.ssh/id_ed25519").expanduser()
    key.parent.mkdir(parents=True)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(key)], check=True)
    public = key.with_suffix(".pub").read_text("utf-8")
    (place / "allowed_signers").write_text(f"alice@example.org {public}", "utf-8")
    with Store(place / "prejudge.db") as store:
        for run in list_runs(store):
            sign_run(store, run, str(key))


def contexts(place: Path) -> None:
    """Write sentences in contexts, as `train-encoder` reads them, and the models to start from."""
    kinds = {"stereotype": ("poor", "late", "slow"), "anti_stereotype": ("rich", "early", "quick")}
    for number, name in enumerate(("caste", "gender", "IndiCASA_dataset - caste")):
        rows = [
            {
                "context_id": context,
                "sentence": f"They are {word} near the {spot} {'again ' * number}now.",
                "type": kind,
            }
            for context, spot in enumerate(("house", "school", "shop", "field", "train"))
            for kind, words in kinds.items()
            for word in words
        ]
        write_rows(place / f"{name}.csv", rows)
    local_model(place)
    encoder(place / "sentence-transformers" / "all-MiniLM-L6-v2")


MAKERS = {
    "README.md": (readme,),
    "docs/gate.md": (gate,),
    "docs/importing.md": (crows,),
    "docs/sharing.md": (sharing,),
    "docs/shell.md": (local_model,),
    "docs/start.md": (local_model,),
    "docs/store.md": (signers,),
    "docs/studies/attractiveness.md": (faces,),
    "docs/studies/bistereo-nli.md": (inference,),
    "docs/studies/bistereo-pairs.md": (pairs,),
    "docs/studies/bistereo-tuples.md": (tuples,),
    "docs/studies/crows-pairs.md": (crows,),
    "docs/studies/dora.md": (dora,),
    "docs/studies/indicasa.md": (indicasa,),
    "docs/studies/subtle.md": (subtle,),
    "docs/train-encoder.md": (contexts,),
    "docs/trust.md": (local_model, somebodys_registry),
}
"""What a page's commands find, by page."""
