"""The supervisor before workers that die, hang, run out of memory or disagree; they live in this process."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import asynccontextmanager

import msgspec
import pytest

from prejudge.core.contracts.abilities import Abilities
from prejudge.core.contracts.adapter import Identity, Limits, Services
from prejudge.core.contracts.canonical import decode_request, encode, encode_response
from prejudge.core.contracts.errors import ModelError, PermanentError, TransientError, UsageError
from prejudge.core.contracts.records import Embed, Embedding
from prejudge.core.workers import member as members
from prejudge.core.workers import supervisor as supervisors
from prejudge.core.workers.engine import Engine, Link
from prejudge.core.workers.places import Place
from prejudge.core.workers.supervisor import Supervisor
from prejudge.core.workers.wire import Answered, Ask, Beat, Broke, Described, End, Hello, Open, Opened, pack, to_worker

IDENTITY = Identity(adapter="fake", version="1", model="m")
LIMITS = Limits(concurrency=1, batch_items=100)
ABILITIES = Abilities(operations=frozenset({"embed"}))


class FakeLink(Link):
    """A worker that answers each text with its length, unless `behave` says otherwise."""

    def __init__(self, engine, place):
        self.name, self._engine, self._place = f"worker {place.number + 1}", engine, place
        self._out = asyncio.Queue()
        self._tasks = set()
        self._beats = None

    def send(self, frame):
        task = asyncio.create_task(self._take(to_worker.decode(frame)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _take(self, message):
        if isinstance(message, Open):
            identity = self._engine.identity(self._place.number)
            self._out.put_nowait(pack(Hello(self._engine.versions(self._place.number))))
            self._out.put_nowait(pack(Opened({"m": Described(identity, LIMITS, ABILITIES)})))
        elif isinstance(message, Ask):
            texts = [decode_request(one).text for one in message.requests]
            self._engine.asked.append((self._place.number, texts))
            said = await self._engine.behave(self, self._place.number, texts)
            if said is None:
                answers = [encode_response(Embedding(vector=(float(len(text)),))) for text in texts]
                said = Answered(message.call, answers, LIMITS)
            else:
                said = msgspec.structs.replace(said, call=message.call)
            self._out.put_nowait(pack(said))
        elif isinstance(message, End):
            self.kill()

    def garble(self, frame):
        self._out.put_nowait(frame)

    def beat(self):
        self._out.put_nowait(pack(Beat()))

    async def receive(self):
        return await self._out.get()

    def kill(self):
        for task in self._tasks:
            task.cancel()
        self._out.put_nowait(None)

    async def gone(self):
        return "was ended by signal 9 (SIGKILL)"


class FakeEngine(Engine):
    def __init__(self, behave=None, identity=lambda place: IDENTITY):
        self.asked, self.starts, self.identity = [], Counter(), identity
        self.links, self.versions = {}, lambda place: supervisors.versions()

        async def calm(link, place, texts):
            await asyncio.sleep(0.005)

        self.behave = behave or calm

    async def open(self, options):
        return []

    async def start(self, place):
        self.starts[place.number] += 1
        self.links[place.number] = FakeLink(self, place)
        return self.links[place.number]


@asynccontextmanager
async def opened(engine, number=2):
    described = {"m": Described(IDENTITY, LIMITS, ABILITIES)}
    supervisor = Supervisor(engine, [Place(one, {}) for one in range(number)], {}, described)
    await supervisor.open()
    try:
        supervisor.bind("m", Services())
        yield supervisor
    finally:
        await supervisor.aclose()


async def ask(supervisor, *texts, shared=None):
    """Ask, and take what a call as a whole met as the scheduler does."""
    try:
        return await supervisor.ask("m", [encode(Embed(text=text)) for text in texts], {}, shared or [""] * len(texts))
    except ModelError as error:
        return [error] * len(texts)


def lengths(answers):
    return [answer.vector[0] if isinstance(answer, Embedding) else type(answer) for answer in answers]


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(supervisors, "FIRST_WAIT", 0.01)
    monkeypatch.setattr(supervisors, "WATCH_SECONDS", 0.02)


def test_a_small_call_uses_all_workers_and_keeps_its_order():
    engine = FakeEngine()

    async def work():
        async with opened(engine, 4) as supervisor:
            return await ask(supervisor, *("x" * size for size in range(1, 11)))

    assert lengths(asyncio.run(work())) == list(range(1, 11))
    assert sorted(place for place, _ in engine.asked) == [0, 1, 2, 3]


def test_calls_go_to_the_worker_that_holds_what_they_share_and_idle_ones_steal():
    async def slow(link, place, texts):
        await asyncio.sleep(0.02)

    engine = FakeEngine(slow)

    async def work():
        async with opened(engine) as supervisor:
            first = [asyncio.create_task(ask(supervisor, name, shared=[name])) for name in ("a", "b")]
            await asyncio.gather(*first)
            mixed = [
                asyncio.create_task(ask(supervisor, f"{name}{n}", shared=[name])) for n in range(4) for name in "ba"
            ]
            await asyncio.gather(*mixed)
            held = list(engine.asked)
            await asyncio.gather(*(ask(supervisor, f"a{n}", shared=["a"]) for n in range(4, 8)))
            return held

    held = asyncio.run(work())
    by_name = {name: {place for place, texts in held if texts[0][0] == name} for name in "ab"}
    assert sorted(map(len, by_name.values())) == [1, 1] and by_name["a"] != by_name["b"]
    assert {place for place, _ in engine.asked[len(held) :]} == {0, 1}, "an idle worker takes what another holds"


def test_a_dead_worker_costs_only_its_own_call():
    deaths = iter(["now"])

    async def behave(link, place, texts):
        if place == 0 and next(deaths, None):
            link.kill()
        await asyncio.sleep(0.005)

    engine = FakeEngine(behave)

    async def work():
        async with opened(engine) as supervisor:
            answers = await ask(supervisor, "a", "bb", "ccc", "dddd")
            again = await ask(supervisor, "a", "bb")
            return lengths(answers), lengths(again), answers[0].code

    answers, again, code = asyncio.run(work())
    assert answers == [TransientError, TransientError, 3, 4] and code == "worker.lost" and again == [1, 2]
    assert engine.starts == {0: 2, 1: 1}


def test_a_request_that_ends_every_worker_is_found_and_spares_the_others():
    async def behave(link, place, texts):
        if "poison" in texts:
            link.kill()
            await asyncio.sleep(10)

    engine = FakeEngine(behave)

    async def work():
        async with opened(engine, 1) as supervisor:
            for _ in range(supervisors.LOSSES):
                lost = await ask(supervisor, "a", "poison", "ccc")
                assert lengths(lost) == [TransientError] * 3
            return lengths(await ask(supervisor, "a", "poison", "ccc"))

    assert asyncio.run(work()) == [1, TransientError, 3]


@pytest.mark.parametrize("name", ["MemoryError", "OutOfMemoryError"])
def test_out_of_memory_is_tried_on_a_fresh_worker_and_alone(name):
    async def behave(link, place, texts):
        return Broke(0, name, "no room") if len(texts) > 1 or texts == ["huge"] else None

    engine = FakeEngine(behave)

    async def work():
        async with opened(engine, 1) as supervisor:
            with pytest.raises(MemoryError):
                await ask(supervisor, "a", "huge")
            found = [(await ask(supervisor, "huge"))[0] for _ in range(supervisors.LOSSES)]
            return found, lengths(await ask(supervisor, "a"))

    found, after = asyncio.run(work())
    assert [type(one) for one in found] == [TransientError, PermanentError] and after == [1]
    assert {one.code for one in found} == {"worker.memory"}
    assert engine.starts[0] == 4


@pytest.mark.parametrize("constant", ["HALTED_SECONDS", "FIRST_SECONDS"])
def test_a_worker_that_is_halted_or_hangs_is_ended(monkeypatch, constant):
    monkeypatch.setattr(members, constant, 0.2)
    hangs = iter(["now"])

    async def behave(link, place, texts):
        while next(hangs, None):
            for _ in range(100):
                await asyncio.sleep(0.05)
                if constant == "FIRST_SECONDS":
                    link.beat()

    engine = FakeEngine(behave)

    async def work():
        async with opened(engine, 1) as supervisor:
            return (await ask(supervisor, "a"))[0], lengths(await ask(supervisor, "a"))

    error, after = asyncio.run(work())
    assert isinstance(error, TransientError) and error.code == "worker.lost" and after == [1]


@pytest.mark.parametrize("said", [b"no message", pack(Answered(1, [b"no answer"], LIMITS))])
def test_a_worker_that_sends_what_cannot_be_read_is_started_again(said):
    odd = iter([said])

    async def behave(link, place, texts):
        for frame in odd:
            link.garble(frame)
            await asyncio.sleep(10)

    engine = FakeEngine(behave)

    async def work():
        async with opened(engine, 1) as supervisor:
            return (await ask(supervisor, "a"))[0], lengths(await ask(supervisor, "a"))

    error, after = asyncio.run(work())
    assert isinstance(error, TransientError) and after == [1] and engine.starts[0] == 2


def test_workers_that_differ_are_refused_before_anything_is_asked():
    engine = FakeEngine(identity=lambda place: msgspec.structs.replace(IDENTITY, settings={"dtype": str(place)}))

    async def work():
        async with opened(engine):
            raise AssertionError

    with pytest.raises(UsageError) as caught:
        asyncio.run(work())
    assert caught.value.code == "workers.differ" and not engine.asked


@pytest.mark.parametrize(
    "theirs",
    [{"prejudge": "9.9"}, {"Python": "3.99.0"}, {"numpy": None}, {"other": "1"}],
    ids=lambda one: next(iter(one)),
)
def test_a_machine_with_other_versions_is_refused_before_anything_is_asked(theirs):
    engine, here = FakeEngine(), supervisors.versions()
    there = {name: version for name, version in (here | theirs).items() if version is not None}
    engine.versions = lambda place: there if place else here

    async def work():
        async with opened(engine):
            raise AssertionError

    with pytest.raises(UsageError) as caught:
        asyncio.run(work())
    assert caught.value.code == "workers.versions" and caught.value.fields["differing"] == tuple(theirs)
    assert not engine.asked and "\n" not in str(caught.value)


def test_a_call_that_nobody_waits_for_is_not_sent():
    async def slow(link, place, texts):
        await asyncio.sleep(0.05)

    engine = FakeEngine(slow)

    async def work():
        async with opened(engine, 1) as supervisor:
            first = asyncio.create_task(ask(supervisor, "a"))
            second = asyncio.create_task(ask(supervisor, "b"))
            await asyncio.sleep(0.01)
            second.cancel()
            await first
            await asyncio.sleep(0.02)

    asyncio.run(work())
    assert [texts for _, texts in engine.asked] == [["a"]]
