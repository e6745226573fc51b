"""The exact tests against fractions: every table, every permutation, and what a distribution of answers implies."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import polars as pl
import pytest
from scipy import stats

from prejudge.probes.dora.associations import count, measure_cells
from prejudge.probes.dora.compared import atlas, differing
from prejudge.probes.dora.discovered import Discovered, discover
from prejudge.probes.dora.exact import CAP, odds_differ, over_answers, over_prompts

Chances = dict[int, Fraction]


def hypergeometric(total: int, drawn: int, marked: int) -> Chances:
    values = range(max(0, drawn + marked - total), min(drawn, marked) + 1)
    return {x: Fraction(comb(marked, x) * comb(total - marked, drawn - x), comb(total, drawn)) for x in values}


def tail(parts: list[Chances], least: int) -> float:
    """Return the chance that independent counts sum to at least `least`."""
    total = {0: Fraction(1)}
    for part in parts:
        added: Chances = {}
        for a, p in total.items():
            for b, q in part.items():
                added[a + b] = added.get(a + b, Fraction(0)) + p * q
        total = added
    return float(sum(p for value, p in total.items() if value >= least))


def test_answers_in_strata_are_the_conditional_test():
    rng = np.random.default_rng(0)
    cells, expected = [], []
    for pair in range(30):
        parts, least = [], 0
        for _ in range(rng.integers(1, 4)):
            total = int(rng.integers(5, 40))
            own, said = int(rng.integers(1, min(total, 8))), int(rng.integers(1, total))
            together = int(rng.integers(max(0, own + said - total), min(own, said) + 1))
            least += together
            parts.append(hypergeometric(total, own, said))
            cells.append((pair, together, own, said, total))
        expected.append(tail(parts, least))
    found = over_answers(pl.DataFrame(cells, ["pair", "together", "own", "said", "all"], orient="row"))
    assert found["p"].to_list() == pytest.approx(expected, rel=1e-10)


def table(rng, most=25):
    """Return a 2 x 2 table: together, own, said and all."""
    total = int(rng.integers(5, most))
    own, said = int(rng.integers(1, total)), int(rng.integers(1, total))
    return int(rng.integers(max(0, own + said - total), min(own, said) + 1)), own, said, total


def test_two_odds_ratios_are_compared_given_all_margins():
    rng = np.random.default_rng(4)
    cells, expected = [[], []], []
    for pair in range(25):
        sides = [[table(rng) for _ in range(rng.integers(1, 3))] for _ in cells]
        for own, parts in zip(cells, sides, strict=True):
            own += [(pair, *part) for part in parts]
        chances = []
        for parts in sides:
            sums = {0: Fraction(1)}
            for _, own, said, total in parts:
                one = hypergeometric(total, own, said)
                sums = {
                    value: sum((p * one.get(value - a, 0) for a, p in sums.items()), Fraction(0))
                    for value in {a + b for a in sums for b in one}
                }
            chances.append(sums)
        ours, every = (sum(part[0] for part in parts) for parts in (sides[0], sides[0] + sides[1]))
        joint = {k: p * chances[1].get(every - k, 0) for k, p in chances[0].items()}
        tails = [sum(p for k, p in joint.items() if sign * k >= sign * ours) for sign in (1, -1)]
        expected.append(min(1.0, float(2 * min(tails) / sum(joint.values()))))
    found = odds_differ(*(pl.DataFrame(own, ["pair", "together", "own", "said", "all"], orient="row") for own in cells))
    assert found.tolist() == pytest.approx(expected, rel=1e-9)


def test_prompts_are_permuted_among_descriptors():
    rng = np.random.default_rng(1)
    size, said = {}, {}
    for d in range(7):
        for b in range(3):
            if readable := int(rng.integers(0, 4)):
                size[d, b] = readable
                words = rng.integers(0, 4, readable)
                said |= {(d, w, b): int((words == w).sum()) for w in range(4)}
    hits = [(f"d{d}", f"w{w}", str(b), n) for (d, w, b), n in said.items() if n]
    asked = [(f"d{d}", str(b), n) for (d, b), n in size.items()]
    found, nulls = over_prompts(
        pl.DataFrame(hits, ["descriptor", "word", "prompt", "hits"], orient="row"),
        pl.DataFrame(asked, ["descriptor", "prompt", "answers"], orient="row"),
    )
    for descriptor, word, prompts, p in found.rows():
        d, w = int(descriptor[1:]), int(word[1:])
        mine = [b for b in range(3) if (d, b) in size]
        parts = []
        for b in mine:
            others, mix = [e for e in range(7) if (e, b) in size], {}
            for e in others:
                few, of, k = size[d, b], size[e, b], said[e, w, b]
                one = hypergeometric(of, few, k) if of >= few else {-(-few * k // of): Fraction(1)}
                for value, chance in one.items():
                    mix[value] = mix.get(value, Fraction(0)) + chance / len(others)
            parts.append(mix)
        assert p == pytest.approx(tail(parts, sum(said[d, w, b] for b in mine)), rel=1e-10)
        assert prompts == sum(said[d, w, b] > 0 for b in mine)


def test_possible_p_are_those_of_descriptors_with_the_usual_answers():
    # Five descriptors with two answers to each of two prompts, and one with one answer to the second.
    hits = [("a", "w", "1", 2), ("b", "w", "1", 1), ("a", "w", "2", 1), ("f", "v", "1", 1)]
    asked = [(d, b, 1 if (d, b) == ("f", "2") else 2) for d in "abcdef" for b in "12"]
    _, nulls = over_prompts(
        pl.DataFrame(hits, ["descriptor", "word", "prompt", "hits"], orient="row"),
        pl.DataFrame(asked, ["descriptor", "prompt", "answers"], orient="row"),
    )
    first = {0: Fraction(4, 6), 1: Fraction(1, 6), 2: Fraction(1, 6)}
    # Of one answer the share is taken and rounded up; of two answers one is a hit once.
    second = {0: Fraction(5, 6), 1: Fraction(1, 6)}
    v = [1, tail([{0: Fraction(5, 6), 1: Fraction(1, 6)}], 1)]
    assert nulls.tails[0][:2] == pytest.approx(v)
    assert nulls.tails[1][:4] == pytest.approx([tail([first, second], k) for k in range(4)])
    assert nulls.counts.tolist() == [6, 5] and nulls.others == 1


def test_many_answers_to_a_prompt_are_rounded_against_the_claim():
    sizes = {"a": 100, "b": 100, "c": 100}
    asked = pl.DataFrame([(d, "p", n) for d, n in sizes.items()], ["descriptor", "prompt", "answers"], orient="row")
    hits = [("a", "w", "p", 51), ("b", "w", "p", 50), ("c", "w", "p", 1)]
    found, _ = over_prompts(pl.DataFrame(hits, ["descriptor", "word", "prompt", "hits"], orient="row"), asked)
    assert CAP < 100 and dict(found.select("descriptor", "p").rows()) == pytest.approx({"a": 2 / 3, "b": 2 / 3, "c": 1})


def described(groups: int, texts: int, always: int, elsewhere: int) -> pl.DataFrame:
    """Return texts of many words: one word in `always` of the first group's texts, in `elsewhere` of all others."""
    rows = []
    for g in range(groups):
        for t in range(texts):
            marked = t < always if g == 0 else (g - 1) * texts + t < elsewhere
            words = " ".join(f"filler{'abcdefghij'[(g + t + k) % 10]}" for k in range(5))
            rows.append((f"g{g}", f"{words} bench" if marked else words, f"image{g}-{t}"))
    frame = pl.DataFrame(rows, ["descriptor", "text", "image"], orient="row")
    return frame.with_columns(
        stage=pl.lit("descriptions"), modality=pl.lit("t2i"), setting=pl.lit("singular"), dimension=pl.lit("all"),
        status=pl.lit("ok"), key=pl.col("image").cast(pl.Binary),
    )  # fmt: skip


def test_texts_are_counted_as_answers_not_as_words():
    # A word in 20 of 20 texts of one group and in 31 % of all: the 2 x 2 table of texts, not of the words in them.
    found = measure_cells(count(described(20, 20, 20, 104))).filter(descriptor="g0", word="bench").row(0, named=True)
    expected = float(hypergeometric(400, 20, 124)[20])
    assert expected == pytest.approx(2.2e-11, rel=0.1)
    assert found["p_fisher"] == pytest.approx(expected, rel=1e-9)
    assert found["expected"] == pytest.approx(20 * 124 / 400) and found["pmi"] == pytest.approx(np.log2(400 / 124))
    assert found["salient_exact"] and found["q_fisher"] <= 0.05


def completed(answers: dict[tuple[str, str, int], list[str]]) -> pl.DataFrame:
    """Return completions by descriptor, letter and wording."""
    rows = [
        (d, letter, wording, word, f"{d}{letter}{wording}{n}".encode())
        for (d, letter, wording), words in answers.items()
        for n, word in enumerate(words)
    ]
    frame = pl.DataFrame(rows, ["descriptor", "letter", "wording", "word", "key"], orient="row")
    return frame.with_columns(
        stage=pl.lit("completions"), modality=pl.lit("t2t"), setting=pl.lit("noun"), dimension=pl.lit("all"),
        status=pl.lit("ok"),
    )  # fmt: skip


def test_refusing_other_letters_is_no_association():
    # Everybody says zulu and zeta alike. One descriptor refuses all other letters: in the pooled table its share of
    # zulu is ten times that of the others.
    answers = {}
    for d in range(10):
        for letter in "abcdefghiz":
            if d and letter != "z":
                answers[f"d{d}", letter, 0] = [f"{letter}olo", f"{letter}umi"] * 5
        answers[f"d{d}", "z", 0] = ["zulu", "zeta"] * 5
    found = measure_cells(count(completed(answers))).filter(descriptor="d0", word="zulu").row(0, named=True)
    pooled = tail([hypergeometric(910, 10, 50)], 5)
    assert pooled < 1e-3 and found["p_fisher"] == pytest.approx(tail([hypergeometric(100, 10, 50)], 5))
    assert found["p_fisher"] > 0.5 and not found["salient_exact"]


def noisy(seed: int, spread: float, effect: float = 0.0) -> pl.DataFrame:
    """Return answers of a model whose words lean by `spread` nats in each prompt, and by `effect` for d0 in all."""
    rng = np.random.default_rng(seed)
    words = [f"b{x}{y}" for x in "aeiou" for y in "kltz"]
    answers = {}
    for d in range(20):
        for wording in range(5):
            scores = spread * rng.normal(size=len(words)) + effect * np.eye(len(words))[0] * (d == 0)
            chances = np.exp(scores) / np.exp(scores).sum()
            answers[f"d{d}", "b", wording] = rng.choice(words, 4, p=chances).tolist()
    return completed(answers)


def test_noise_of_prompts_is_not_taken_for_the_group():
    # Where nothing is planted every find is false; where a group has a word of its own in all wordings it is found.
    finds = {"exact": 0, "fisher": 0}
    for seed in range(40):
        measured = measure_cells(count(noisy(seed, 1.5)))
        for method in finds:
            finds[method] += bool(measured[f"salient_{method}"].any())
    assert finds["exact"] <= 5 < finds["fisher"]
    strong = measure_cells(count(noisy(0, 1.0, effect=5.0)))
    own = strong.filter(descriptor="d0").sort("p_exact").row(0, named=True)
    assert own["salient_exact"] and own["word"] == "bak" and own["wordings"] == 5 and own["prompts"] == 5


def test_one_wording_is_tested_by_answers_and_only_for_this_wording():
    frame = noisy(3, 1.0, effect=4.0).with_columns(wording=pl.lit(0))
    found = measure_cells(count(frame))
    assert found["p_exact"].to_list() == found["p_fisher"].to_list() and set(found["wordings"]) == {1}


def test_an_association_says_in_how_many_settings_it_was_found():
    strong, none = noisy(0, 0.5, effect=5.0), noisy(1, 0.5)
    none = none.filter((pl.col("descriptor") != "d0") | (pl.col("word") != "bak"))
    both = pl.concat([strong, strong.with_columns(setting=pl.lit("verb")), none.with_columns(setting=pl.lit("plural"))])
    found = measure_cells(count(both)).filter(descriptor="d0", word="bak")
    assert found.height == 2 and set(found.select("found_in", "asked_in").rows()) == {(2, 3)}


def test_prompts_of_all_settings_are_tested_together():
    # An effect that is too small for the 20 answers of one setting is found in the 100 of five.
    parts = [noisy(seed, 0.5, effect=1.5).with_columns(setting=pl.lit(f"s{seed}")) for seed in range(5)]
    alone = measure_cells(count(parts[0])).filter(descriptor="d0", word="bak").row(0, named=True)
    found = measure_cells(count(pl.concat(parts))).filter(descriptor="d0", word="bak")
    assert not alone["salient_exact"] and found["salient_exact"].all() and found["p_exact"].n_unique() == 1
    assert found["prompts"].to_list() == [found["prompts"].max()] * found.height and found["asked_in"].max() == 5


def test_nothing_planted_in_several_settings_is_nothing_found():
    runs = 0
    for start in range(0, 120, 3):
        parts = [noisy(start + n, 1.5).with_columns(setting=pl.lit(f"s{n}")) for n in range(3)]
        runs += bool(measure_cells(count(pl.concat(parts)))["salient_exact"].any())
    assert runs <= 5


def test_an_image_of_its_own_is_no_association_however_many_questions_are_asked_about_it():
    # What one image shows is said in the answers to all questions about it: a prompt, not four.
    runs = 0
    for seed in range(20):
        frame = noisy(seed, 2.0)
        each = [frame.with_columns(setting=pl.lit(f"s{n}"), modality=pl.lit("i2t")) for n in range(4)]
        runs += bool(measure_cells(count(pl.concat(each)))["salient_exact"].any())
    assert runs <= 4


def two_runs() -> list[Discovered]:
    """Return two runs, the second of which never says one word of one descriptor that the first says in 12 of 20."""
    said = ["bold"] * 12 + ["busy"] * 8
    both = {(f"d{d}", "b", 0): ["bold", "busy"] * 10 for d in range(1, 4)}
    frames = [completed({("d0", "b", 0): said} | both), completed({("d0", "b", 0): ["busy"] * 19 + ["brisk"]} | both)]
    return [discover(name, "model", frame) for name, frame in zip(("one", "two"), frames, strict=True)]


def test_associations_that_differ_between_runs_are_tested_exactly():
    found = differing(*two_runs())
    first = found.row(0, named=True)
    assert (first["descriptor"], first["word"], first["first"], first["second"]) == ("d0", "bold", 12, 0)
    expected = stats.fisher_exact([[12, 8], [0, 20]], alternative="greater").pvalue
    assert first["p"] == pytest.approx(2 * expected)
    assert found["q"].to_list() == pytest.approx(stats.false_discovery_control(found["p"].to_numpy()).tolist())
    assert found.filter((pl.col("descriptor") != "d0") & (pl.col("q") < 1)).is_empty()


def test_the_atlas_has_a_row_per_association_and_columns_per_run():
    table = atlas(two_runs(), "all")
    row = table.filter(descriptor="d0", word="bold").row(0, named=True)
    assert (row["answers_one t2t noun"], row["answers_two t2t noun"]) == (12, None)
    assert table.height == 2 * 4 + 1
