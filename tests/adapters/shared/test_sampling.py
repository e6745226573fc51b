"""The one rule by which tokens are drawn."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from prejudge.adapters.shared.sampling import Choice, Defaults, answer_length, choose, cut_at, noise, noise_key, pick
from prejudge.core.contracts.errors import PermanentError
from prejudge.core.contracts.records import Generate, Sampling
from prejudge.testing import raises_code

torch = pytest.importorskip("torch")
CHANCES = torch.tensor([0.5, 0.25, 0.15, 0.07, 0.03])
COUNT = 20_000


def asked(seed=None, sample=0, attempt=0, **fields):
    return Generate(messages=(), sampling=Sampling(seed=seed, **fields), sample=sample, attempt=attempt)


def key(*ids, images=(), **fields):
    return noise_key(asked(**fields), ids, images)


def draw(keys, step=0, chances=CHANCES, **limits):
    return pick(chances.log().expand(len(keys), -1), [Choice(one, 1.0, **limits) for one in keys], step)


def misfit(drawn, chances=CHANCES):
    from scipy.stats import chisquare

    found = Counter(drawn.tolist())
    return chisquare(
        [found[token] for token in range(len(chances))],
        (chances.double() / chances.double().sum() * len(drawn)).tolist(),
    ).pvalue


@pytest.mark.parametrize(
    "other",
    [
        key(1, 2, seed=4),
        key(1, 2),
        key(1, 2, seed=0),
        key(1, 3, seed=3),
        key(12, seed=3),
        key(1, 2, seed=3, sample=1),
        key(1, 2, seed=3, attempt=1),
        key(1, 2, seed=3, images=("ab",)),
        key(1, 2, seed=3, images=("ab", "c")),
    ],
)
def test_noise_follows_seed_prompt_and_images(other):
    assert other != key(1, 2, seed=3) == key(1, 2, seed=3)


def test_least_share_of_the_likeliest_excludes_the_rest():
    drawn = draw(range(COUNT), min_p=0.28)
    kept = torch.tensor([0.5, 0.25, 0.15])
    assert set(drawn.tolist()) == {0, 1, 2} and misfit(drawn, kept) > 1e-3
    # Of what is left, the two likeliest have 0.83 of the probability.
    assert set(draw(range(COUNT), min_p=0.28, top_p=0.8).tolist()) == {0, 1}
    assert set(draw(range(COUNT), min_p=0.28, top_k=1).tolist()) == {0}


def test_no_seed_is_not_seed_zero():
    assert key(1) != key(1, seed=0)


def test_images_are_told_apart():
    assert key(1, images=("a", "b")) != key(1, images=("b", "a"))


def test_other_temperature_is_the_same_draw():
    assert key(1, seed=3, temperature=2.0, max_tokens=5) == key(1, seed=3)


def test_noise_is_the_same_on_every_machine():
    # By hand, in Python's integers: hash, number in (0, 1), Gumbel.
    mask, (golden, first, second) = (1 << 64) - 1, (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)

    def mix(value):
        value = ((value ^ (value >> 30)) * first) & mask
        value = ((value ^ (value >> 27)) * second) & mask
        return value ^ (value >> 31)

    state = mix((12345 + 7 * golden) & mask)
    hashed = [mix((state + token * golden) & mask) for token in range(1, 6)]
    wanted = [-math.log(-math.log(((value >> 12) + 0.5) * 2.0**-52)) for value in hashed]
    assert noise([12345], [7], 5, "cpu")[0].tolist() == pytest.approx(wanted, rel=1e-12)


def test_draws_follow_the_softmax():
    assert misfit(draw([key(1, 2, seed=seed) for seed in range(COUNT)], step=3)) > 1e-3


def test_draws_of_one_seed_over_prompts_follow_the_softmax():
    assert misfit(draw([key(1, prompt, seed=3) for prompt in range(COUNT)])) > 1e-3


def test_draws_over_steps_follow_the_softmax():
    drawn = torch.stack([draw([key(1, seed=3)], step)[0] for step in range(3000)])
    assert misfit(drawn) > 1e-3


def test_one_seed_on_two_prompts_is_independent():
    from scipy.stats import chi2_contingency

    one, other = (draw([key(prompt, seed=seed) for seed in range(COUNT)]) for prompt in (1, 2))
    table = torch.zeros(5, 5).index_put((one, other), torch.ones(COUNT), accumulate=True)
    assert chi2_contingency(table.numpy()).pvalue > 1e-3


def test_noise_of_successive_steps_is_unrelated():
    keys = [key(1, seed=seed) for seed in range(40)]
    flat = torch.stack([noise(keys, [step] * len(keys), 500, "cpu") for step in range(5)])
    assert flat.mean().item() == pytest.approx(0.5772, abs=0.02)
    assert flat.var().item() == pytest.approx(math.pi**2 / 6, rel=0.03)
    for other in (flat.roll(1, 0), flat.roll(1, 1), flat.roll(1, 2)):
        assert abs(torch.corrcoef(torch.stack([flat.flatten(), other.flatten()]))[0, 1].item()) < 0.02


def test_draw_does_not_depend_on_batch():
    keys = [key(1, seed=seed) for seed in range(50)]
    together = draw(keys, step=2, top_p=0.9)
    assert [draw([one], step=2, top_p=0.9).item() for one in keys] == together.tolist()


def test_greedy_rows_are_not_drawn():
    logits = torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    choices = [Choice(1, 0.0), Choice(2, 0.0), Choice(3, 1e-6)]
    assert pick(logits, choices, 0).tolist() == [1, 0, 1]


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_temperature_sharpens(temperature):
    logits = torch.tensor([1.0, 0.0]).expand(4000, -1)
    drawn = pick(logits, [Choice(key(1, seed=seed), temperature) for seed in range(4000)], 0)
    share = drawn.eq(0).float().mean().item()
    assert share == pytest.approx(1 / (1 + math.exp(-1 / temperature)), abs=0.03)


@pytest.mark.parametrize(
    ("limits", "kept"), [({"top_p": 0.5}, {0}), ({"top_p": 0.6}, {0, 1}), ({"top_k": 2}, {0, 1}), ({}, {0, 1, 2})]
)
def test_top_p_and_top_k_rule_tokens_out(limits, kept):
    chances = torch.tensor([0.5, 0.3, 0.2])
    assert set(draw(range(500), chances=chances, **limits).tolist()) == kept


def test_limited_draws_follow_what_is_left():
    drawn = draw([key(1, seed=seed) for seed in range(COUNT)], top_p=0.8)
    assert misfit(drawn, CHANCES[:3]) > 1e-3


def test_request_goes_before_defaults():
    own = Defaults(1.5, 0.7, 9)
    assert choose(asked(), own, [1])[1:] == (1.5, 0.7, 9, 0.0)
    assert choose(asked(temperature=0.3, top_p=0.9), own, [1])[1:] == (0.3, 0.9, 9, 0.0)


@pytest.mark.parametrize("fields", [{"temperature": -1}, {"temperature": math.inf}, {"top_p": 0}, {"top_p": 1.1}])
def test_value_out_of_range_is_permanent(fields):
    with raises_code(PermanentError, "request.value", next(iter(fields))):
        choose(asked(**fields), Defaults(), [1])


def test_prompt_without_room_for_an_answer_is_refused():
    with raises_code(PermanentError, "request.too-long"):
        answer_length(asked(), 7, 0)


@pytest.mark.parametrize(("most", "room", "found"), [(None, None, 7), (3, None, 3), (30, 5, 5), (None, 1, 1)])
def test_answer_length_is_the_least_of_all(most, room, found):
    assert answer_length(asked(max_tokens=most), 7, room) == found


def test_first_stop_text_cuts():
    assert cut_at("one two three", ("three", "two", "four")) == 4
    assert cut_at("one", ("two",)) is None
