"""What a plan says of the requests of a stage."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from prejudge.core.cli.plan import _show, _spending
from prejudge.core.engine.plan import Cell, StagePlan


def printed(**stated):
    values = {"stage": "pairs", "role": "subject", "model": "m", "unit": "pair", "trials": 1200, "units": 600}
    stage = StagePlan(**(values | {"cached": None, "cells": ()} | stated))
    console = Console(file=io.StringIO(), width=200)
    console.print(_spending(stage))
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("trials", "cached", "words"), [(1200, 300, "300 (25 %)"), (1200, 1200, "1,200 (100 %)"), (0, 0, "0 (0 %)")]
)
def test_stored_answers_are_counted_and_are_a_share_of_the_trials(trials, cached, words):
    assert words in printed(trials=trials, cached=cached)


def test_without_a_model_stored_answers_are_not_known():
    assert "—" in printed() and "%" not in printed() and "no price known" in printed()


def test_tokens_and_cost_are_estimates():
    page = printed(requests=900, input_tokens=12_345.6, output_tokens=78.4, cost=1.5)
    assert all(words in page for words in (" 900 ", "~12,346", "~78", "~1.5000"))


def test_counts_of_a_paper_stand_beside_those_of_the_plan_where_it_prints_them(capsys):
    cells = (Cell({"setting": "noun"}, 144, 105_560.0), Cell({"setting": "verb"}, 72, None))
    _show(StagePlan(stage="s", role="r", model="m", unit="prompt", trials=216, units=216, cached=0, cells=cells))
    lines = capsys.readouterr().out.splitlines()
    noun, verb = (next(line for line in lines if word in line) for word in ("noun", "verb"))
    assert "144" in noun and "105,560" in noun and "72" in verb and "—" in verb


@pytest.mark.parametrize(("first", "said"), [(50, True), (0, False)])
def test_first_trials_are_said_to_be_among_the_others(capsys, first, said):
    stage = StagePlan(stage="s", role="r", model="m", unit="p", trials=90, units=90, cached=0, cells=(), first=first)
    _show(stage)
    assert ("Of these, up to 50 are asked first" in " ".join(capsys.readouterr().out.split())) == said
