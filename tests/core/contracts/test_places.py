"""What is a place on somebody's machine, and what only looks like one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from prejudge.core.contracts.places import Places, handed_on, place_in


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("/home/ada/pairs.csv", "/home/ada/pairs.csv"),
        ("hf-masked:/home/ada/my-bert", "/home/ada/my-bert"),
        ("hf-masked:~/my-bert", "~/my-bert"),
        ("~/pairs.csv", "~/pairs.csv"),
        ("~ada/pairs.csv", "~ada/pairs.csv"),
        ("C:\\Users\\ada\\pairs.csv", "C:\\Users\\ada\\pairs.csv"),
        ("llamacpp:D:/models/a.gguf", "D:/models/a.gguf"),
        ("\\\\server\\ada\\pairs.csv", "\\\\server\\ada\\pairs.csv"),
        ("file:///home/ada/pairs.csv", "file:///home/ada/pairs.csv"),
        ("pairs.csv", None),
        ("data/pairs.csv", None),
        ("hf-causal:gpt2", None),
        ("hf-causal:EleutherAI/pythia-70m", None),
        ("https://aclanthology.org/2025.x/", None),
        ("s3://bucket/ada/x", None),
        ("package:prejudge/probes/x.csv", None),
        ("/think", None),
        ("/", None),
        ("he/she", None),
        ("/a\n/b/c", None),
        ("", None),
    ],
)
def test_place_of_a_value(text, place):
    assert place_in(text) == place


def test_places_of_equal_names_are_told_apart():
    places = Places(["/a/ratings.csv", "/b/ratings.csv", "/b/ratings"])
    named = [places.text(place) for place in ("/a/ratings.csv", "/b/ratings.csv", "/b/ratings")]
    assert sorted(named) == ["ratings", "ratings-2.csv", "ratings.csv"] and len(set(named)) == 3


def test_record_is_named_in_values_names_and_sentences():
    record = {
        "data": {'/home/ada/it\'s "a".csv': "ab12"},
        "command": "prejudge run x --data '/home/ada/it'\"'\"'s \"a\".csv' --set words=/srv/ada/w.txt",
        "notes": ['/home/ada/it\'s "a".csv, line 3: odd'],
        "identities": {"subject": {"settings": {"system": "/home/ada/kept"}}},
        "number": 0.1,
    }
    named = json.loads(handed_on(json.dumps(record)))
    assert named["data"] == {'it\'s "a".csv': "ab12"} and named["notes"] == ['it\'s "a".csv, line 3: odd']
    assert "/ada" not in named["command"] and "w.txt" in named["command"]
    assert named["identities"] == record["identities"] and named["number"] == 0.1
    assert handed_on(json.dumps(named)) == json.dumps(named)


def test_home_is_not_named_within_other_texts():
    home = str(Path.home())
    assert home not in Places([]).text(f"cannot read {home}/models/x.bin: no such file")
    assert Places([]).text(f"{home}ly is a word") == f"{home}ly is a word"


def test_record_without_places_stays_as_it_is():
    text = '{"b": 1, "a": [1.50, null, true, "x"]}'
    assert handed_on(text) == text
