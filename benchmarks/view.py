"""Measure the reading room on a run of a million exchanges: the index once, then pages as a browser asks for them.

The run is written to the store directly, with the shape of `scale_probe.py`; every answer has words of its own. Pages
are asked over HTTP from the server, behind its checks. Times are wall time; a broken bound gives exit code 1.
"""

from __future__ import annotations

import argparse
import http.client
import os
import resource
import sys
import tempfile
import threading
import time
from itertools import islice
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from scale import REGISTRY
from scale_probe import ENDINGS, Asked, ScaleOptions

from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts.adapter import Identity
from prejudge.core.contracts.canonical import encode, identity_digest, request_key
from prejudge.core.contracts.records import Generation, Usage
from prejudge.core.engine.manifest import Manifest
from prejudge.core.store import NewExchange, NewTrial, Store, get_run
from prejudge.core.view.app import application
from prejudge.core.view.room import Room
from prejudge.core.view.serve import serve

RUN = "scale"
OPEN, FILTER = 2.0, 1.0
"""Most seconds until a run is open, and until a filter answers."""
QUERIES = {
    "one filter": "?f.variant=filtered",
    "four filters": "?f.variant=filtered&f.group=second&f.order=3&f.seed=1",
    "one face of 462": "?f.face=face-0007",
    "two levels of a factor and an outcome": "?f.scenario=3&f.scenario=90&f.positive=true",
    "deep page": "?f.status=ok&from=900000",
    "search in answers": "?q=photograph+77",
    "search in requests": "?q=numbered+17.&in=asked",
    "search and filter": "?q=photograph+7&f.group=first",
    "nothing fits": "?q=no+such+words",
}


def write_run(store: Store, catalogue: Catalogue, faces: int) -> None:
    """Write a finished run of the scale study."""
    identity = Identity(adapter="none", version="1", model="written", digest="", settings={})
    model = store.ensure_model(identity)
    study = catalogue.study("scale", {"subject": "scale"}, {"faces": faces})
    manifest = encode(Manifest(run=RUN, study=study, identities={"subject": identity}, refusals="reader"))
    run_id, digest = store.begin_run(RUN, "scale", manifest), identity_digest(identity)
    trials = enumerate(Asked(ScaleOptions(faces=faces)).trials({}))
    while part := list(islice(trials, 10_000)):
        exchanges = []
        for number, trial in part:
            text = f"In photograph {number % 5000} {ENDINGS[number * 7 % 10 < 4]}."
            response = encode(
                Generation(text=text, finish_reason="stop", usage=Usage(input_tokens=90, output_tokens=9))
            )
            request = encode(trial.request)
            key = request_key(digest, request)
            exchanges.append(NewExchange(key, model, "generate", request, response, "ok", 90, 9, 0.1))
        found = store.add_exchanges(exchanges)
        rows = [
            NewTrial(run_id, "choices", n, t.id, msgspec.json.encode(t.factors).decode(), e.key, found[e.key])
            for (n, t), e in zip(part, exchanges, strict=True)
        ]
        store.add_trials(rows)
    store.end_run(run_id, "finished", manifest)


def ask(connection: http.client.HTTPConnection, path: str, cookie: str = "") -> tuple[float, http.client.HTTPResponse]:
    """Return the seconds until the last byte, and the answer."""
    began = time.perf_counter()
    connection.request("GET", path, headers={"Cookie": cookie} if cookie else {})
    answer = connection.getresponse()
    body = answer.read()
    if answer.status not in (200, 303):
        raise SystemExit(f"{path}: {answer.status} {body[:300]!r}")
    return time.perf_counter() - began, answer


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faces", type=int, default=462, help="faces, in two variants each; 462 make 1,009,008 trials")
    parser.add_argument("--keep", type=Path, help="a folder to work in, kept afterwards")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = (options.keep or Path(made)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "registry.toml").write_text(REGISTRY)
        catalogue = Catalogue.load(str(folder / "registry.toml"))
        if not (folder / "view.db").exists():
            began = time.perf_counter()
            with Store(folder / "view.db") as store:
                write_run(store, catalogue, options.faces)
            print(f"{'store written':38} {time.perf_counter() - began:8.2f} s")
        with Store(folder / "view.db", writable=False) as store:
            return measure(store, catalogue, folder)


def measure(store: Store, catalogue: Catalogue, folder: Path) -> int:
    """Build the index, ask for the pages, and say which bound was broken."""
    run = get_run(store, RUN)
    cache = folder / "cache"
    wall, used = time.perf_counter(), time.process_time()
    index = Room(store, catalogue, folder, cache).shelf.wait(run)
    size = sum(path.stat().st_size for path in cache.rglob("*") if path.is_file()) / 2**20
    spent = f"{time.perf_counter() - wall:8.2f} s ({time.process_time() - used:.2f} s of processor)"
    print(f"{f'index of {index.rows:,} trials':38} {spent}, {size:.0f} MiB on disk")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{'largest memory until then':38} {peak:8.0f} MiB")
    links: list[str] = []
    # A room that has seen nothing yet: what is measured includes opening the index.
    room = Room(store, catalogue, folder, cache)
    threading.Thread(
        target=serve, args=(application(room), 0, "/", lambda link, _: links.append(link)), daemon=True
    ).start()
    while not links:
        time.sleep(0.01)
    time.sleep(0.5)
    link = urlsplit(links[0])
    connection = http.client.HTTPConnection("127.0.0.1", link.port or 0, timeout=60)
    _, started = ask(connection, f"{link.path}?{link.query}")
    cookie = (started.getheader("set-cookie") or "").partition(";")[0]
    ask(connection, "/", cookie)  # templates are compiled once
    pages = {"run opened": "", **QUERIES}
    pages |= {"a trial, its twins counted": "/trial/654321", "its twins": "/twins/654321?vary=variant"}
    broken = []
    for name, page in pages.items():
        used, bound = time.process_time(), FILTER if page else OPEN
        seconds, _ = ask(connection, f"/run/{RUN}{page}", cookie)
        print(f"{name:38} {seconds:8.3f} s ({time.process_time() - used:.3f} s of processor), at most {bound:g} s")
        broken += [name] if seconds > bound else []
    print(f"broken: {', '.join(broken)}" if broken else "all within bounds")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    sys.exit(main())
