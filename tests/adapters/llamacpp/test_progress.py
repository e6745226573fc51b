"""A run on a GGUF model goes answer by answer: each is stored at once, with a latency of its own."""

from __future__ import annotations

import time

import pytest
import sqlalchemy as sa

import prejudge
from prejudge.core.store import Store
from prejudge.core.store.bulk import table_of
from prejudge.core.store.tables import Exchange

from ..gguf_files import write_pair

pytest.importorskip("llama_cpp")
pytestmark = pytest.mark.usefixtures("no_figures")


def test_every_answer_has_a_latency_of_its_own(tmp_path):
    file, _ = write_pair(tmp_path)
    registry = tmp_path / "registry.toml"
    registry.write_text(
        f'[models.tiny]\nadapter = "llamacpp"\nsettings = {{ model = "{file}", threads = 1, max_tokens = 24 }}\n'
    )
    settings = prejudge.Settings(
        store=str(tmp_path / "s.db"),
        runs=str(tmp_path / "runs"),
        registry=str(registry),
        accept_unfit=True,
        keep_going=True,
    )
    began = time.monotonic()
    run = prejudge.run("subtle-sai", "tiny", settings, per_cell=2, **{"subtle.resamples": 99})
    took = time.monotonic() - began
    exchange = table_of(Exchange)
    with Store(tmp_path / "s.db") as store, store.engine.connect() as connection:
        rows = connection.execute(sa.select(exchange.c.latency, exchange.c.created).order_by("id")).all()
    assert len(rows) > 16
    assert run.manifest.described["subject"]["architecture"] == "llama"
    assert "architecture llama" in run.report.read_text("utf-8")
    # Answers of one call share its seconds: their sum is then many times what the run took.
    assert sum(row.latency for row in rows) <= took
    assert len({row.latency for row in rows}) > len(rows) / 2
