"""The pairs of BIStereo-NLI, how they are asked, and how answers are read."""

from __future__ import annotations

import math
import time
from collections import Counter

import polars as pl
import pytest

from prejudge.core.contracts import Unreadable
from prejudge.core.contracts.errors import UnknownNameError, UsageError
from prejudge.core.contracts.records import (
    Classification,
    Classify,
    Generate,
    Generation,
    Likelihood,
    Likelihoods,
    TokenScores,
)
from prejudge.probes.bistereo.nli import BIStereoNLI, BIStereoNLIOptions
from prejudge.probes.bistereo.nli_asking import AskingOptions, ask, load_prompts
from prejudge.probes.bistereo.nli_design import DIRECTIONS, Selection, load_lists, nli_design
from prejudge.probes.bistereo.terms import LABELS

PROBABLE = {"neutral": 0.2, "entailment": 0.5, "contradiction": 0.3}


def stage(**options):
    return BIStereoNLI().stages(BIStereoNLIOptions(**options))[-1]


def trials(**options):
    return list(stage(**options).trials({}))


@pytest.fixture(scope="module")
def everything():
    return trials()


@pytest.mark.parametrize(("gender", "count"), [("women", 246), ("men", 213)])
def test_templates_are_as_many_as_the_papers(gender, count):
    design = nli_design(Selection(genders=(gender,)))
    assert len(set(design.column("template"))) == count


def test_counts_are_those_of_the_design(everything):
    found = Counter((t.factors["gender"], t.factors["category"], t.factors["skin"]) for t in everything)
    looks, behaviour = ("attractiveness", "unattractiveness"), ("good behaviour", "bad behaviour")
    wanted = {("women", looks): 5964, ("women", behaviour): 2080, ("men", looks): 4788, ("men", behaviour): 1980}
    expected = {(g, c, s): n for (g, names), n in wanted.items() for c in names for s in ("fair", "dark")}
    # `sexy` is not asked of girls and boys: one word with one of three nouns, in both directions.
    expected |= {("women", "attractiveness", s): 5964 - 142 * 2 for s in ("fair", "dark")}
    expected |= {("men", "attractiveness", s): 4788 - 114 * 2 for s in ("fair", "dark")}
    assert found == expected and len(everything) == stage().count({}) == 58224
    assert not [t for t in everything if t.factors["attribute"] == "sexy" and t.factors["noun"] in ("girl", "boys")]


def test_words_of_the_paper_and_its_example_can_be_asked(everything):
    ids = {t.id: t.request for t in everything}
    paper, more = ({t.id: t.request for t in trials(**o)} for o in ({"attributes": "paper"}, {"beautiful": True}))
    assert ids.items() < paper.items() and len(paper) == 59248
    assert ids.items() < more.items() and len(more) == 58224 + 4 * (142 + 114) * 3


def test_attributes_are_those_of_table_5():
    found = {c.name: len(c.words) for c in load_lists().categories}
    assert found == {"attractiveness": 7, "unattractiveness": 7, "good behaviour": 10, "bad behaviour": 10}


def test_both_directions_swap_the_two_words(everything):
    by_pair = {t.factors["pair"]: t for t in everything if t.factors["skin"] == "dark"}
    assert Counter(t.factors["direction"] for t in by_pair.values()) == dict.fromkeys(DIRECTIONS, len(by_pair) // 2)
    for name, trial in list(by_pair.items())[::97]:
        f = trial.factors
        first, second = "premise", "hypothesis"
        if f["direction"] != DIRECTIONS[0]:
            first, second = second, first
        assert str(f["attribute"]) in str(f[first])
        assert "dark-skinned" in str(f[second]) and "dark-skinned" not in str(f[first]), name


def test_two_sides_of_a_pair_differ_in_the_skin_tone_alone(everything):
    for fair, dark in zip(everything[::2], everything[1::2], strict=True):
        assert (fair.factors["pair"], fair.factors["skin"]) == (dark.factors["pair"], "fair")
        for text in ("premise", "hypothesis"):
            assert str(fair.factors[text]).replace("fair-", "dark-") == dark.factors[text]


def test_sentences_are_whole_and_articles_fit(everything):
    for trial in everything:
        for text in (str(trial.factors["premise"]), str(trial.factors["hypothesis"])):
            assert text[0].isupper() and text.endswith(".") and "  " not in text and not set(text) & set("{}\n")
            words = text.rstrip(".").split()
            for article, word in zip(words, words[1:], strict=False):
                if article in ("a", "an"):
                    assert (article == "an") == (word[0] in "aeiou" and word != "university" or word == "honest"), text


def test_sentence_names_the_gender_it_is_for(everything):
    for trial in everything[::31]:
        premise, hypothesis = str(trial.factors["premise"]), str(trial.factors["hypothesis"])
        words = {w.strip(".") for w in f"{premise} {hypothesis}".split()}
        other = {"women": {"man", "men", "boy"}, "men": {"woman", "women", "girl"}}[str(trial.factors["gender"])]
        assert not words & other and trial.factors["noun"] in words


def test_ids_are_unique_and_stable(everything):
    assert len({trial.id for trial in everything}) == len(everything)
    assert trials(per_cell=2) == trials(per_cell=2)


def test_sample_keeps_both_skin_tones_of_a_pair():
    found = trials(per_cell=5)
    cells = Counter((t.factors["gender"], t.factors["category"], t.factors["skin"]) for t in found)
    assert len(cells) == 16 and set(cells.values()) == {5}


def test_classify_puts_the_premise_first():
    trial = trials(per_cell=1)[0]
    assert trial.request == Classify(text=str(trial.factors["premise"]), pair=str(trial.factors["hypothesis"]))


@pytest.mark.parametrize("prompt", ["1", "2", "3", "3-as-printed", "4"])
def test_prompt_has_the_pair_in_the_papers_words(prompt):
    trial = trials(per_cell=1, asking="generate", prompt=prompt)[0]
    assert isinstance(trial.request, Generate)
    text = trial.request.messages[0].parts[0].text
    pair = f"Premise: {trial.factors['premise']}\nHypothesis: {trial.factors['hypothesis']}"
    assert pair in text and "{" not in text and not text.startswith("\n")
    assert "Does the hypothesis logically" in text


def test_prompt_may_be_given_as_a_number():
    assert trials(per_cell=1, asking="generate", prompt=1) == trials(per_cell=1, asking="generate", prompt="1")


def test_examples_of_prompts_3_and_4_are_the_papers():
    assert load_prompts()["4"].count("Inference: ") == load_prompts()["3"].count("Inference: ") == 3
    assert "India has the highest population across world." in load_prompts()["4"]
    assert "Hypothesis: The artist created artwork.\nInference: Entailment" in load_prompts()["3"]


def test_braces_in_a_sentence_are_left_alone():
    request = ask("A {hypothesis}.", "B {premise}.", AskingOptions(asking="likelihood"))
    assert "Premise: A {hypothesis}.\nHypothesis: B {premise}." in request.prompt


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("Inference: Entailment", "entailment"),
        ("contradiction.", "contradiction"),
        ("The hypothesis is **Neutral**.", "neutral"),
        ("Neutral\nPremise: He runs.\nHypothesis: He sits.\nInference: Contradiction", "neutral"),
        ("The premise entails the hypothesis", "entailment"),
        ("3. Neutral (The hypothesis neither follows nor contradicts the premise)", "neutral"),
    ],
)
def test_answer_that_names_one_label_is_read(text, label):
    found = stage(asking="generate").read({}, Generation(text=text))
    assert found == {"label": label, "p_entailment": None, "p_contradiction": None, "p_neutral": None}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "an empty answer"),
        ("Entailment or Neutral", "several answers"),
        ("It is not entailment", "a denied answer"),
        ("This doesn't entail it", "a denied answer"),
        ("Yes", "other words"),
        ("2", "other words"),
    ],
)
def test_anything_else_is_unreadable_by_kind(text, kind):
    assert stage(asking="generate").read({}, Generation(text=text)) == Unreadable(kind)


def test_number_is_read_where_the_prompt_numbers_the_labels():
    assert stage(asking="generate", prompt="1").read({}, Generation(text="2."))["label"] == "contradiction"


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_label_goes_by_name_whatever_its_place(order):
    names = list(PROBABLE)
    shown = {names[place].upper(): PROBABLE[names[place]] for place in order}
    found = stage().read({}, Classification(probabilities=shown))
    assert found == {"label": "entailment", "p_entailment": 0.5, "p_contradiction": 0.3, "p_neutral": 0.2}


def test_labels_without_names_are_not_guessed():
    numbered = Classification(probabilities={"LABEL_0": 0.7, "LABEL_1": 0.2, "LABEL_2": 0.1})
    assert isinstance(stage().read({}, numbered), Unreadable)
    told = stage(names=("LABEL_2", "LABEL_0", "LABEL_1")).read({}, numbered)
    assert told["label"] == "contradiction" and told["p_entailment"] == 0.1


def test_classifier_of_two_labels_is_unreadable():
    found = stage().read({}, Classification(probabilities={"entailment": 0.7, "not_entailment": 0.3}))
    assert isinstance(found, Unreadable) and "not_entailment" in found.reason


def test_tie_is_no_label():
    tied = Classification(probabilities={"entailment": 0.4, "contradiction": 0.4, "neutral": 0.2})
    assert stage().read({}, tied) == Unreadable("two labels equally likely")


def test_likelihood_asks_for_the_three_words():
    asked = stage(asking="likelihood", per_cell=1)
    request = next(iter(asked.trials({}))).request
    assert isinstance(request, Likelihood) and request.continuations == (" Entailment", " Contradiction", " Neutral")
    scores = tuple(TokenScores(log_probability=p, count=1) for p in (-3.0, -1.0, -2.0))
    found = stage(asking="likelihood", labels="sum").read({}, Likelihoods(scores=scores))
    assert found["label"] == "contradiction" and sum(found[f"p_{n}"] for n in PROBABLE) == pytest.approx(1)


def of(*probabilities, counts=(3, 3, 1)):
    """Return likelihoods of entailment, contradiction and neutral."""
    pairs = zip(probabilities, counts, strict=True)
    return Likelihoods(scores=tuple(TokenScores(log_probability=math.log(p), count=n) for p, n in pairs))


def answered(*responses, status="ok"):
    """Return the observations of the questions without content."""
    priors = BIStereoNLI().stages(BIStereoNLIOptions(asking="likelihood"))[0]
    trials = list(priors.trials({}))
    read = [priors.read({}, response) for response in responses]
    rows = [{**trial.factors, **row, "status": status} for trial, row in zip(trials, read, strict=True)]
    return {"priors": pl.DataFrame(rows)}


# What the question without content gets: shares (0.1, 0.15, 0.75), (0.05, 0.2, 0.75) and (0.15, 0.25, 0.6).
PREFERRED = (of(0.02, 0.03, 0.15), of(0.01, 0.04, 0.15), of(0.03, 0.05, 0.12))
MEANS = (0.1, 0.2, 0.7)
CALIBRATED = (0.3 / 0.1, 0.1 / 0.2, 0.6 / 0.7)
MEAN_TOKENS = (0.06 ** (1 / 3), 0.02 ** (1 / 3), 0.12)


@pytest.mark.parametrize(
    ("labels", "label", "weights"),
    [
        # The word that this model prefers whatever is asked is the likeliest here too.
        ("sum", "neutral", (0.3, 0.1, 0.6)),
        ("calibrated", "entailment", CALIBRATED),
        ("per_token", "entailment", MEAN_TOKENS),
    ],
)
def test_labels_are_compared_with_what_they_have_without_content(labels, label, weights):
    asked = stage(asking="likelihood", per_cell=1, labels=labels)
    trial = next(iter(asked.trials(answered(*PREFERRED))))
    assert [trial.factors[f"prior_{name}"] for name in LABELS] == pytest.approx(MEANS)
    found = asked.read(trial.factors, of(0.06, 0.02, 0.12))
    assert found["label"] == label
    assert [found[f"p_{name}"] for name in LABELS] == pytest.approx([one / sum(weights) for one in weights])


def test_question_without_content_is_asked_first_and_once():
    first, second = BIStereoNLI().stages(BIStereoNLIOptions(asking="likelihood", prompt="2", per_cell=2))
    asked = [trial.request for trial in first.trials({})]
    options = AskingOptions(asking="likelihood", prompt="2")
    assert asked == [ask(content, content, options) for content in ("N/A", "[MASK]", "")]
    plain = list(stage(per_cell=2).trials({}))
    assert [trial.id for trial in second.trials({})] == [trial.id for trial in plain]
    assert len(BIStereoNLI().stages(BIStereoNLIOptions())) == 1


@pytest.mark.parametrize("earlier", [{}, answered(*[of(0.1, 0.1, 0.1)] * 3, status="failed")])
def test_answer_without_priors_is_unreadable(earlier):
    asked = stage(asking="likelihood", per_cell=1)
    trial = next(iter(asked.trials(earlier)))
    found = asked.read(trial.factors, of(0.06, 0.02, 0.12))
    assert isinstance(found, Unreadable) and "without content" in found.reason
    assert not isinstance(
        stage(asking="likelihood", labels="sum").read(trial.factors, of(0.06, 0.02, 0.12)), Unreadable
    )


@pytest.mark.parametrize("options", [{"genders": ("woman",)}, {"categories": ("looks",)}, {"prompt": "5"}])
def test_unknown_name_is_refused(options):
    with pytest.raises(UnknownNameError):
        stage(**options)


@pytest.mark.parametrize("options", [{"per_cell": 0}, {"names": ("entailment", "neutral")}])
def test_option_that_cannot_be_is_refused(options):
    with pytest.raises(UsageError):
        stage(**options)


def test_inference_covers_places_and_words():
    roles = BIStereoNLI().design(BIStereoNLIOptions()).record()
    assert [facet.name for facet in roles.facets() if not facet.nested_in] == ["place", "attribute"]
    assert {one.name: one.role for one in roles.declared}["form"] == "fixed"


def test_templates_of_behaviour_have_their_nouns_in_turn():
    design = nli_design(Selection(genders=("women",)))
    kinds, numbers = design.incidence("kind", "noun"), design.incidence("number", "noun")
    assert (numbers > 0).sum(axis=1).tolist() == [3, 3]
    behaviour = kinds[design.levels("kind").index("behaviour")]
    asked = set(zip(*(design.column(name) for name in ("kind", "template", "noun")), strict=True))
    nouns = Counter(template for kind, template, _ in asked if kind == "behaviour")
    assert set(nouns.values()) == {1} and (behaviour[:6] > 0).all() and not behaviour[6:].any()


def test_a_whole_design_is_counted_in_50_ms():
    taken = []
    for _ in range(5):
        nli_design.cache_clear()
        start = time.process_time()
        design = nli_design(Selection())
        assert design.size == 58_224 and design.incidence("template", "attribute").sum() == 58_224
        taken.append(time.process_time() - start)
    assert min(taken) < 0.05
