"""`doctor --study`: what the study needs is checked, and nothing else."""

from __future__ import annotations

import asyncio
import hashlib

import msgspec
import pytest
from click.testing import CliRunner

from prejudge.core.catalogue.instrument import Instrument
from prejudge.core.cli.doctor import doctor
from prejudge.core.contracts import Options, Probe, Stage, StageRules, Trial, Unreadable
from prejudge.core.contracts.adapter import Identity, ModelAdapter, RemoteEndpoint, Services
from prejudge.core.contracts.errors import DataError, PermanentError
from prejudge.core.contracts.records import (
    Generate,
    Generation,
    Image,
    Likelihood,
    Likelihoods,
    Message,
    PseudoLikelihood,
    Sampling,
    Text,
    TokenScores,
    TopToken,
    Usage,
)
from prejudge.core.doctor.study import examine_study
from prejudge.testing import raises_code


def ask(text, **fields):
    return Generate(messages=(Message("user", (Text(text),)),), **fields)


class Asking(Stage):
    """Asks requests that a test chooses."""

    name, operation, factors, outcomes = "main", Generate, ("n",), ("yes",)

    def __init__(self, *requests, role="subject", operation=Generate, optional=False):
        self.requests, self.role, self.operation = requests, role, operation
        self.rules = StageRules(optional=optional)

    def trials(self, earlier):
        for number, request in enumerate(self.requests):
            yield Trial(str(number), {"n": number}, request)

    def read(self, factors, response):
        if isinstance(response, Generation):
            return {"yes": 1.0} if response.text.startswith("yes") else Unreadable("no yes")
        return {"yes": 1.0}


def instrument(*stages):
    class Fixed(Probe):
        def stages(self, options):
            return stages

    return Instrument(Fixed(), Options(), {})


class Model(ModelAdapter):
    """Says yes, draws honestly, counts tokens; a test breaks one of these."""

    identity = Identity(adapter="a", version="1", model="m")
    endpoint = RemoteEndpoint(name="e")
    reads = 10**9

    def __init__(self):
        self.asked = []

    def text(self, request):
        return f"yes {request.sample}"

    async def generate(self, request):
        self.asked.append(request)
        said = request.messages[-1].parts[0].text
        text = (
            " ".join(f"w{hash((n, request.sample)) % 9999}" for n in range(20))
            if "random" in said
            else self.text(request)
        )
        tops = tuple((TopToken("a", -0.1234567 * (n + 1)),) for n in range(3)) if request.top_logprobs else ()
        used = Usage(input_tokens=min(self.reads, len(said) // 4 + 1), output_tokens=5)
        return Generation(text=text, top_logprobs=tops, usage=used)


def examined(*stages, **adapters):
    return {c.name: c for c in asyncio.run(examine_study(instrument(*stages), adapters))}


def verdicts(checks):
    return {name.partition(": ")[2] or name: check.verdict for name, check in checks.items()}


OWN = [ask(f"question {n}") for n in range(8)]
DRAWN = [ask(f"question {n}", sample=k, sampling=Sampling(temperature=0.7)) for n in range(4) for k in range(2)]


def test_study_without_draws_is_asked_for_no_draws():
    model = Model()
    found = verdicts(examined(Asking(*OWN), subject=model))
    assert "fail" not in found.values() and not [name for name in found if "draw" in name]
    assert not [one for one in model.asked if "random" in one.messages[-1].parts[0].text]


def test_endpoint_that_repeats_fails_only_where_the_study_samples():
    class Deaf(Model):
        async def generate(self, request):
            asked = request.messages[-1].parts[0].text
            trees = "alder birch cedar elm fir hazel larch maple oak pine rowan"
            drawn = " ".join(map(str, range(100, 120))) if "numbers" in asked else trees
            text = f"yes {drawn if 'random' in asked else ''}"
            return Generation(text=text, usage=Usage(input_tokens=9, output_tokens=9))

    assert "fail" not in verdicts(examined(Asking(*OWN), subject=Deaf())).values()
    found = verdicts(examined(Asking(*DRAWN), subject=Deaf()))
    assert [name for name, verdict in found.items() if verdict == "fail"] == ["repeats are draws of their own"]


def test_endpoint_whose_draws_are_alike_at_the_temperature_of_the_study_only_passes_and_is_told():
    class Cold(Model):
        async def generate(self, request):
            drawn = request.sample if (request.sampling.temperature or 0) >= 1 else 0
            return await super().generate(msgspec.structs.replace(request, sample=drawn))

    (check,) = [c for name, c in examined(Asking(*DRAWN), subject=Cold()).items() if "draws" in name]
    assert check.verdict == "pass"
    # The draws that are counted are those at the study's own temperature: all alike.
    assert check.detail.startswith("1 distinct answer ") and "at 1 they differ" in check.detail


def test_endpoint_that_refuses_seeds_fails_where_the_study_repeats():
    class Strict(Model):
        async def generate(self, request):
            if request.sample:
                raise PermanentError("no seed", code="endpoint.seed")
            return await super().generate(request)

    found = examined(Asking(*DRAWN), subject=Strict())
    assert verdicts(found)["repeats are draws of their own"] == "fail"
    assert any("endpoint.seed" in check.detail for check in found.values())


def test_model_that_raises_what_it_may_not_fails_and_is_named():
    class Broken(Model):
        async def generate(self, request):
            raise RuntimeError("The size of tensor a (4)\nmust match")

    found = examined(Asking(*OWN), subject=Broken())
    failed = [check for check in found.values() if check.verdict == "fail"]
    assert len(failed) == 3 and all("'a'" in one.detail and "(4) must match" in one.detail for one in failed)


def test_answers_that_cannot_be_read_fail():
    model = Model()
    model.text = lambda request: "hm"
    found = examined(Asking(*OWN), subject=model)
    assert found["main (subject): answers can be read"].verdict == "fail"
    assert "no yes" in found["main (subject): answers can be read"].detail


def test_longest_prompt_is_held_against_context_and_against_a_short_one():
    long = [ask("q"), ask("word " * 2000)]
    assert "fail" not in verdicts(examined(Asking(*long), subject=Model())).values()
    cut, short, known = "the longest prompt is answered, and not cut off", Model(), Model()
    short.reads = 1
    assert verdicts(examined(Asking(*long), subject=short))[cut] == "fail"
    known.endpoint = RemoteEndpoint(name="e", context=500)
    assert verdicts(examined(Asking(*long), subject=known))[cut] == "fail"


def test_log_probabilities_are_needed_where_they_are_asked():
    wanted = [ask(f"q {n}", top_logprobs=5) for n in range(5)]
    assert verdicts(examined(Asking(*wanted), subject=Model()))["log-probabilities are given as they are"] == "pass"

    class Mute(Model):
        async def generate(self, request):
            return Generation(text="yes", usage=Usage(input_tokens=1, output_tokens=1))

    assert verdicts(examined(Asking(*wanted), subject=Mute()))["log-probabilities are given as they are"] == "fail"
    assert "log-probabilities are given as they are" not in verdicts(examined(Asking(*OWN), subject=Mute()))


def test_floor_in_likelihoods_fails():
    class Floored(ModelAdapter):
        identity = Identity(adapter="a", version="1", model="m")

        async def likelihood(self, request):
            values = [-9999.0 if text == "b" else -1.0 - len(request.prompt) / 7 for text in request.continuations]
            return Likelihoods(scores=tuple(TokenScores(log_probability=v, count=1, values=(v,)) for v in values))

    requests = [Likelihood(prompt="p" * n, continuations=("a", "b")) for n in range(1, 6)]
    found = verdicts(examined(Asking(*requests, operation=Likelihood), subject=Floored()))
    assert found["log-probabilities are given as they are"] == "fail"


def test_operation_that_is_lacking_fails_without_a_request():
    model = Model()
    found = examined(Asking(PseudoLikelihood(text="x"), operation=PseudoLikelihood), subject=model)
    assert verdicts(found) == {"it can pseudo_likelihood": "fail"} and not model.asked


def test_every_role_is_checked_and_one_without_a_model_is_named():
    judge = Asking(role="judge")
    judge.name = "judging"
    found = examined(Asking(*OWN), judge, subject=Model())
    assert found["judging (judge)"].verdict == "skip" and "judge=NAME" in found["judging (judge)"].detail
    both = examined(Asking(*OWN), judge, subject=Model(), judge=Model())
    assert both["judging (judge): its questions"].verdict == "skip"
    assert both["judging (judge): the model answers"].verdict == "pass"


def test_empty_study_is_an_error():
    with raises_code(DataError, "study.empty"):
        examined(Asking(), subject=Model())


@pytest.mark.parametrize("wrong", ["--study s", "m --study s --operation generate", "m --set a=1", "--data x"])
def test_command_refuses_what_does_not_belong_together(wrong):
    result = CliRunner().invoke(doctor, wrong.split())
    assert getattr(result.exception, "code", "") == "options.conflict"


def test_study_about_images_fails_on_an_endpoint_that_drops_them():
    model = Model()
    model.text = lambda request: "yes"
    model.services = Services(keep=lambda data, kind: hashlib.sha256(data).hexdigest())
    about = [Generate(messages=(Message("user", (Image("ab"), Text(f"q {n}"))),)) for n in range(3)]
    stage = Asking(*about)
    found = {c.name.partition(": ")[2]: c for c in asyncio.run(examine_study(instrument(stage), {"subject": model}))}
    assert found["the model uses an image"].verdict == "fail"
