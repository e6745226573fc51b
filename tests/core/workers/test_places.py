"""Where workers run: GPUs that are there, or a share of the processors; one line where that cannot be."""

from __future__ import annotations

import pytest

from prejudge import Settings
from prejudge.core.contracts.errors import UsageError
from prejudge.core.workers import places
from prejudge.core.workers.options import WorkerOptions, worker_options
from prejudge.core.workers.places import VISIBLE, Machine, find_places, find_places_of, visible_devices


def gpus(found):
    return [place.environment.get(VISIBLE) for place in found]


@pytest.mark.parametrize(
    ("options", "visible", "expected"),
    [
        ({"devices": "all"}, "0,1,2", ["0", "1", "2"]),
        ({}, "0,1", ["0", "1"]),
        ({"devices": "0,2"}, "4,5,GPU-6f", ["4", "GPU-6f"]),
        ({"number": 2}, "0,1,2", ["0", "1"]),
        ({"devices": "1", "number": 2}, "0,1", ["1", "1"]),
        ({"devices": "0,0,1"}, "0,1", ["0", "0", "1"]),
        ({"devices": "all", "number": 4}, "0,1", ["0", "1", "0", "1"]),
        ({"number": 3}, "", [None, None, None]),
        ({"number": 2}, "-1,0", [None, None]),
    ],
)
def test_a_worker_has_a_gpu_of_those_that_can_be_seen(options, visible, expected):
    assert gpus(find_places(WorkerOptions(**options), {VISIBLE: visible})) == expected


@pytest.mark.parametrize(
    ("options", "visible"),
    [({"devices": "all"}, ""), ({"devices": "0,2"}, "0,1"), ({"number": 3}, "0,1"), ({}, "")],
)
def test_fewer_gpus_than_asked_are_refused(options, visible):
    with pytest.raises(UsageError) as caught:
        find_places(WorkerOptions(**options), {VISIBLE: visible})
    assert caught.value.code == "workers.devices" and "\n" not in str(caught.value)


def test_workers_share_the_processors(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 12)
    (one, *_) = find_places(WorkerOptions(number=4), {VISIBLE: "", "MKL_NUM_THREADS": "2"})
    assert one.environment == {"OMP_NUM_THREADS": "3", "OPENBLAS_NUM_THREADS": "3"}


@pytest.mark.parametrize(
    ("number", "processors", "share"),
    [
        (2, [4, 4], 4),
        (2, [4, 3, 3], 3),
        (3, [4, 3, 3], 3),
        (4, [3, 3], 1),
        (8, [2], 0.25),
        (6, [2, 3], 0.5),
        (2, [0], 0),
    ],
)
def test_workers_share_the_processors_of_a_cluster(number, processors, share):
    """The share is the largest with which all have room, counted by hand."""
    machines = [Machine(one) for one in processors]
    found = find_places_of(WorkerOptions(engine="ray", number=number), machines, {})
    assert [place.processors for place in found] == [share] * number and {place.gpus for place in found} == {0.0}
    assert {place.environment["OMP_NUM_THREADS"] for place in found} == {str(max(1, int(share)))}


@pytest.mark.parametrize(
    ("options", "gpus", "expected"),
    [
        ({"devices": "all"}, [2, 1], [1.0] * 3),
        ({}, [2], [1.0] * 2),
        ({"number": 2}, [4], [1.0] * 2),
        ({"devices": "all", "number": 4}, [1, 1], [0.5] * 4),
        ({"devices": "all"}, [0], None),
        ({"number": 3}, [1, 1], None),
        ({}, [0], None),
    ],
)
def test_a_worker_has_a_gpu_of_the_cluster_or_is_refused(options, gpus, expected):
    machines = [Machine(4, one) for one in gpus]
    if expected is not None:
        assert [one.gpus for one in find_places_of(WorkerOptions(engine="ray", **options), machines)] == expected
        return
    with pytest.raises(UsageError) as caught:
        find_places_of(WorkerOptions(engine="ray", **options), machines)
    assert caught.value.code == "workers.devices" and "\n" not in str(caught.value)


def test_a_machine_without_a_driver_has_no_gpu(monkeypatch):
    monkeypatch.setattr(places, "QUERY", ("no-such-program",))
    assert visible_devices({}) == []


@pytest.mark.parametrize(
    ("choice", "code"),
    [
        ({"engine": "spark"}, "unknown-engine"),
        ({"engine": "ray", "devices": "0,1"}, "workers.devices"),
        ({"address": "10.0.0.1:6379"}, "workers.address"),
        ({"workers": 0}, "workers.number"),
        ({"devices": "0,x"}, "workers.devices"),
        ({"devices": ""}, "workers.devices"),
    ],
)
def test_settings_refuse_workers_that_cannot_be(choice, code):
    with pytest.raises(UsageError) as caught:
        Settings(**choice)
    assert caught.value.code == code


def test_without_a_word_of_workers_there_are_none():
    assert worker_options(None, None, None) is None and Settings().run_options.workers is None
    assert Settings(workers=2).run_options.workers == WorkerOptions(number=2)
