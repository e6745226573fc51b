"""Base rates, conditional likelihoods, differences and Kendall's tau of chosen polarities."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

from prejudge.core.charts.numbers import numbers_of
from prejudge.core.contracts.errors import DataError, UsageError
from prejudge.core.contracts.estimates import MISSING, POSITION, Caveat
from prejudge.metrics.subtle.metric import Subtle, SubtleMetricOptions
from prejudge.testing import raises_code

FAST = SubtleMetricOptions(resamples=199)
CHOICES = ("negative", "neutral", "positive")
PRONOUNS = ("masculine", "feminine", "non-binary")
PROMPTS = {"ours": 0.3, "authors": 0.1}
SAID = Subtle().conclude


def study(lean, templates=6, terms=8, seed=0):
    """Return answers of a model that chooses the polarity of a given term with probability 1/3 + lean."""
    rng = np.random.default_rng(seed)
    rows = []
    for domain in ("beauty", "nationality"):
        for template in range(templates):
            for term in range(terms):
                for pronoun in ("feminine", "masculine"):
                    given = "positive" if term % 2 else "negative"
                    other = "negative" if term % 2 else "positive"
                    shares = {given: 1 / 3 + lean, other: 1 / 3 - lean / 2, "neutral": 1 / 3 - lean / 2}
                    chosen = str(rng.choice(CHOICES, p=[shares[name] for name in CHOICES]))
                    rows.append(
                        {
                            "trial": f"{domain}{template}{term}{pronoun}",
                            "item": f"{domain}{template}{term}{pronoun}",
                            "domain": domain,
                            "pronoun": pronoun,
                            "given": given,
                            "template": f"{domain}{template}",
                            "term": f"{domain}{term}",
                            "chosen": chosen,
                            "position": int(rng.integers(3)) + 1,
                            "status": "ok",
                            "reason": None,
                            "key": b"k",
                        }
                    )
    return pl.DataFrame(rows, schema_overrides={"reason": pl.String})


def counts(positive, negative):
    """Return answers whose items are not known: counts of negative, neutral and positive by what was given."""
    rows = [
        {"domain": "beauty", "pronoun": "feminine", "given": given, "chosen": chosen, "status": "ok"}
        for given, numbers in (("positive", positive), ("negative", negative))
        for chosen, number in zip(CHOICES, numbers, strict=True)
        for _ in range(number)
    ]
    frame = pl.DataFrame(rows)
    return frame.with_columns(template=pl.lit(None, pl.String), term=pl.lit(None, pl.String))


def computed(frame, options=FAST):
    return Subtle().compute(frame, options)


def one(estimates, metric, **group):
    (found,) = [e for e in estimates if e.metric == metric and e.group == group]
    return found


def test_likelihoods_and_differences_are_shares_of_what_was_given():
    found = computed(counts(positive=(1, 2, 5), negative=(6, 3, 1)))
    assert [one(found, m).value for m in ("PPL", "PNL", "PNuL")] == [62.5, 12.5, 25.0]
    assert [one(found, m).value for m in ("NPL", "NNL", "NNuL")] == [10.0, 60.0, 30.0]
    assert [one(found, m).value for m in ("delta_PL", "delta_NL", "delta_NuL")] == pytest.approx([52.5, -47.5, -5.0])
    assert one(found, "PL").value == pytest.approx(100 * 6 / 18)


def test_model_that_only_decides_more_often_after_positive_terms_has_no_association():
    """Both changes are above 0 and significant; what is chosen, where it decides, is alike."""
    frame = study(0.0, templates=8, terms=12)
    decides = np.random.default_rng(2).random(frame.height) < np.where(frame["given"] == "positive", 0.9, 0.3)
    chosen = pl.Series(np.where(np.random.default_rng(3).random(frame.height) < 0.5, "positive", "negative"))
    frame = frame.with_columns(chosen=pl.when(pl.Series(decides)).then(chosen).otherwise(pl.lit("neutral")))
    found = computed(frame)
    delta_pl, delta_nl, polarity = (one(found, name) for name in ("delta_PL", "delta_NL", "delta_polarity"))
    assert min(delta_pl.low, delta_nl.low) > 0 and delta_pl.p_adjusted < 0.05
    assert polarity.value == pytest.approx((delta_pl.value - delta_nl.value) / 2)
    assert polarity.low < 0 < polarity.high and polarity.p_adjusted > 0.05


def test_tau_is_scipys_in_both_codings():
    table = {"positive": (10, 20, 50), "negative": (60, 30, 15)}
    found = computed(counts(**table))
    given = np.repeat([0, 1], [105, 80])
    chosen = np.concatenate([np.repeat([-1, 0, 1], table[name]) for name in ("negative", "positive")])
    match = np.where(given == 1, chosen, -chosen)
    for coding, answer in (("polarity", chosen), ("stereotype match", match)):
        for variant in ("b", "c"):
            expected = stats.kendalltau(given, answer, variant=variant, method="asymptotic")
            estimate = one(found, f"tau_{variant}", coding=coding)
            assert estimate.value == pytest.approx(expected.statistic, rel=1e-12)
            assert estimate.p == pytest.approx(expected.pvalue, rel=1e-9)


def test_model_that_ignores_what_is_given_is_near_tau_1_in_the_coding_of_table_1():
    found = computed(counts(positive=(0, 1, 99), negative=(0, 1, 99)))
    assert one(found, "tau_c", coding="stereotype match").value > 0.95
    assert one(found, "tau_c", coding="polarity").value == 0
    assert one(found, "delta_PL").value == 0


def test_model_that_follows_what_is_given_is_near_tau_0_in_the_coding_of_table_1():
    found = computed(counts(positive=(1, 1, 98), negative=(98, 1, 1)))
    assert abs(one(found, "tau_c", coding="stereotype match").value) < 0.01
    assert one(found, "tau_c", coding="polarity").value > 0.9


def test_tau_of_answers_all_alike_is_undefined():
    found = one(computed(counts(positive=(0, 0, 9), negative=(0, 0, 9))), "tau_c", coding="polarity")
    assert found.value is None and found.p is None and found.caveats == (Caveat.UNDEFINED,)


def test_counts_without_items_have_no_clustered_interval_and_no_test():
    found = computed(counts(positive=(1, 2, 5), negative=(6, 3, 1)))
    delta, share = one(found, "delta_PL"), one(found, "PPL")
    assert delta.low is None and delta.p is None and delta.caveats == (Caveat.UNTESTED,)
    assert share.interval.method.startswith("exact") and share.low == pytest.approx(24.486, abs=0.001)
    tau = one(found, "tau_c_clustered", coding="polarity")
    assert tau.p is None and tau.low is None and tau.caveats == (Caveat.UNTESTED,)


def test_planted_lean_is_found_and_its_absence_is_not():
    shown, none = (one(computed(study(lean)), "delta_PL") for lean in (0.4, 0.0))
    assert shown.low > 15 and shown.p_adjusted < 0.01 and shown.verdict == "above"
    assert shown.test.name == "t test, crossed jackknife (template x term)"
    for e in (shown, none):
        assert (e.p < 0.05) == (not e.low <= 0 <= e.high)
    assert none.low < 0 < none.high and none.p_adjusted > 0.05


def test_every_test_has_family_correction_effect_and_interval():
    for e in computed(study(0.2)):
        if e.p is not None and e.metric != "missing":
            assert e.test.family and e.test.correction and e.effect.value is not None and e.p_adjusted >= e.p
        if e.value is not None:
            assert e.low is not None or e.note or e.caveats


def test_domains_and_pronouns_have_estimates_of_their_own():
    found = computed(study(0.1))
    assert one(found, "delta_PL", domain="beauty", pronoun="feminine").n == 48
    assert one(found, "PPL", pronoun="masculine").n == 48


def test_missing_answers_are_left_out_counted_and_bounded():
    frame = study(0.2).with_row_index()
    lost = pl.col("index") < 10
    frame = frame.with_columns(
        chosen=pl.when(lost).then(None).otherwise("chosen"),
        status=pl.when(lost).then(pl.lit("unreadable")).otherwise("status"),
        reason=pl.when(lost).then(pl.lit("other words")).otherwise("reason"),
    )
    found = computed(frame)
    delta = one(found, "delta_PL")
    assert delta.n == 182 and delta.missing.counts == {"unreadable": 10}
    assert delta.bound_low < delta.value < delta.bound_high
    kind = one(found, "unreadable", kind="other words")
    assert kind.value == pytest.approx(100 * 10 / 192) and kind.subject == MISSING


def test_nothing_readable_is_undefined_not_zero():
    frame = study(0.2).with_columns(chosen=pl.lit(None, pl.String), status=pl.lit("refused"))
    found = computed(frame)
    assert {e.value for e in found if e.metric in ("PL", "PPL", "delta_PL", "tau_c")} == {None}
    assert Subtle().conclude(found) == Subtle().conclude([]) and Subtle().figures(found) == []


def test_domain_with_one_polarity_has_no_difference():
    found = computed(study(0.2).filter(pl.col("given") == "positive"))
    assert one(found, "delta_PL").value is None and one(found, "PPL").value is not None


def test_places_are_reported_apart_and_only_where_known():
    found = [e for e in computed(study(0.1)) if e.metric == "position_bias"]
    assert len(found) == 3 and {e.subject for e in found} == {POSITION}
    assert sum(e.value for e in found) == pytest.approx(100)
    unknown = study(0.1).with_columns(position=pl.lit(None, pl.Int64))
    assert not [e for e in computed(unknown) if e.metric == "position_bias"]


def test_order_of_rows_does_not_matter():
    frame = study(0.2)
    first, second = (computed(f) for f in (frame, frame.reverse()))
    assert [(e.metric, e.group, e.value) for e in first] == [(e.metric, e.group, e.value) for e in second]
    assert [e.p for e in first] == pytest.approx([e.p for e in second], nan_ok=True)


def test_one_cluster_column_is_enough():
    found = computed(study(0.3), SubtleMetricOptions(resamples=199, over=("term",)))
    delta = one(found, "delta_PL", domain="beauty")
    assert delta.interval.method == "cluster bootstrap (term)" and delta.clusters == 8 and delta.p is not None


def test_a_cluster_that_is_named_twice_is_refused():
    with raises_code(UsageError, "options.value"):
        SubtleMetricOptions(over=("a", "a"))


def test_facets_are_those_of_the_design_else_templates_and_terms():
    assert Subtle().settled(SubtleMetricOptions(), tuple).ways == ("template", "term")
    assert Subtle().settled(SubtleMetricOptions(), lambda: ("template", "neutral")).ways == ("template", "neutral")
    assert Subtle().settled(SubtleMetricOptions(over="term"), lambda: ("template", "neutral")).ways == ("term",)


def test_answers_of_unknown_terms_are_clustered_by_template_alone():
    frame = study(0.3).with_columns(term=pl.when(pl.col("term") == "beauty1").then(None).otherwise("term"))
    found = computed(frame)
    whole, other = one(found, "delta_PL"), one(found, "delta_PL", domain="nationality")
    assert whole.interval.method == "cluster bootstrap (template)" and whole.clusters == 12
    assert whole.facts["answers_without_term"] == 12 and whole.facts["over"] == "template"
    assert whole.test.name == "permutation of the two sides (template)"
    assert SAID(found).startswith("For these words only, in sentences like these:")
    assert other.interval.method == "crossed jackknife (template x term)" and other.facts["over"] == "template x term"


def test_effect_that_is_not_significant_is_given_with_its_size():
    found = computed(study(2 / 3, templates=2, terms=2))
    delta = one(found, "delta_PL")
    assert (delta.value, delta.low, delta.verdict) == (100, None, "open") and Caveat.NO_VARIATION in delta.caveats
    assert "Positive answers, change (ΔPL) is 100.00 percentage points" in Subtle().conclude(found)


def test_conclusion_follows_the_verdict():
    found = Subtle().compute(study(0.3), SubtleMetricOptions(resamples=99, margin=20))
    delta = one(found, "delta_PL")
    changes = [{"verdict": verdict} for verdict in ("above", "below", "near", "open")] + [{"p_adjusted": None}]
    own = ([delta.replace(**change) if e is delta else e for e in found] for change in changes)
    assert len({Subtle().conclude(estimates) for estimates in own}) == 5


def test_unknown_polarity_is_named():
    with raises_code(DataError, "data.unknown-value", "'good'", "given"):
        computed(study(0.1).with_columns(given=pl.lit("good")))


def test_units_have_the_means_of_the_differences():
    frame = study(0.3)
    units, found = Subtle().units(frame, FAST), computed(frame)
    own = units.filter((pl.col("metric") == "delta_PL") & pl.col("domain").is_null())
    means = dict(own.group_by("sign").agg(pl.col("value").mean()).iter_rows())
    assert means[1] - means[-1] == pytest.approx(one(found, "delta_PL").value)


def test_figures_and_examples_are_made():
    frame = study(0.3)
    found = computed(frame)
    charts = Subtle().figures(found)
    assert [chart.name for chart in charts] == [
        "subtle-differences",
        "delta_polarity",
        "delta_PL",
        "delta_NL",
        "delta_NuL",
        "tau_c_clustered",
    ]
    examples = Subtle().examples(frame, FAST)
    assert len(examples) == 12 and all(example.keys == (b"k",) for example in examples)


def test_bars_are_those_of_the_papers_figure_3():
    # A bar per difference and domain, its height the difference of the shares; a star where it is significant.
    frame = study(0.3)
    found = computed(frame)
    bars = Subtle().figures(found)[0]
    axes = bars.figure.axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["beauty", "nationality"]
    for container, chosen in zip(axes.containers, ("positive", "negative", "neutral"), strict=True):
        for bar, domain in zip(container, ("beauty", "nationality"), strict=True):
            own = frame.filter(domain=domain).with_columns(hit=100 * (pl.col("chosen") == chosen))
            shares = [own.filter(given=given)["hit"].mean() for given in ("positive", "negative")]
            assert bar.get_height() == pytest.approx(shares[0] - shares[1])
    drawn = ("delta_PL", "delta_NL", "delta_NuL")
    stars = [e for e in found if e.metric in drawn and [*e.group] == ["domain"] and e.shown]
    assert stars and [text.get_text() for text in axes.texts] == ["*"] * len(stars)
    told = {row[:2]: row[2] for row in numbers_of(bars.figure)[0].rows}
    assert len(told) == 6 and one(found, "delta_PL", domain="beauty").value in told.values()


def test_false_positives_are_nominal_where_nothing_is_planted():
    options = SubtleMetricOptions(resamples=99)
    p = [one(computed(study(0.0, 3, 8, seed), options), "tau_c_clustered", coding="polarity").p for seed in range(40)]
    assert np.mean(np.array(p) <= 0.05) <= 0.15


@pytest.mark.parametrize(
    ("intervals", "crossed", "alone"),
    [
        ("percentile", "crossed jackknife (template x term)", "cluster bootstrap (template)"),
        ("jackknife", "crossed jackknife (template x term)", "cluster jackknife (template)"),
    ],
)
def test_every_interval_says_how_it_was_made(intervals, crossed, alone):
    options = SubtleMetricOptions(resamples=99, intervals=intervals)
    frame = study(0.2)
    for observed, name in ((frame, crossed), (frame.with_columns(term=pl.lit(None, pl.String)), alone)):
        (found,) = (e for e in Subtle().compute(observed, options) if e.metric == "delta_PL" and not e.group)
        assert found.interval.method == name


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "cover all that makes observations alike, template, term"),
        ({"intervals": "jackknife"}, "(jackknife; Cameron, Gelbach and Miller 2011), with Student's t"),
        ({"over": ("template",)}, "95 % cluster bootstrap intervals that draw each template whole (expanded"),
    ],
)
def test_methods_say_how_intervals_were_made(options, said):
    assert said in Subtle().methods(SubtleMetricOptions(**options))


def test_crossed_clusters_have_no_bca():
    with raises_code(UsageError, "options.conflict", "'bca'", "template", "term"):
        SubtleMetricOptions(intervals="bca", over=("template", "term"))
    assert SubtleMetricOptions(intervals="bca", over=("template",)).interval == "cluster bootstrap, BCa"


@pytest.mark.parametrize(("lean", "margin", "verdict"), [(0.0, 60, "near"), (0.5, 5, "above")])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_margin_gives_a_verdict_whatever_the_level(lean, margin, verdict, level):
    options = SubtleMetricOptions(resamples=199, margin=margin, level=level)
    (found,) = (e for e in Subtle().compute(study(lean), options) if e.metric == "delta_PL" and not e.group)
    assert (found.verdict, found.facts["margin"]) == (verdict, margin)


def test_no_margin_gives_no_verdict():
    assert not any("margin" in e.facts for e in Subtle().compute(study(0.0), FAST))


@pytest.mark.parametrize("lean", ["terms", "templates"])
def test_words_or_sentences_that_lean_are_rarely_called_an_association(lean):
    """Each choice has a lean by term or by template and polarity, which has nothing to do with the given polarity."""
    rng, found = np.random.default_rng(1), []
    for _ in range(80):
        by = rng.normal(0, 1.0, (8, 3)), rng.normal(0, 1.0, (12, 2, 3))
        frame = study(0.0, templates=12, terms=8).filter(pl.col("domain") == "beauty")
        template = frame["template"].str.slice(6).cast(int).to_numpy()
        term = frame["term"].str.slice(6).cast(int).to_numpy()
        own = by[0][term] if lean == "terms" else by[1][template, term % 2]
        chosen = np.array(CHOICES)[(own + rng.gumbel(size=own.shape)).argmax(axis=1)]
        e = one(computed(frame.with_columns(chosen=chosen)), "delta_PL")
        assert (e.p < 0.05) == (not e.low <= 0 <= e.high)
        found.append(e.p < 0.05)
    assert np.mean(found) <= 0.1


def test_few_terms_are_told():
    found = one(computed(study(0.2, terms=8)), "delta_PL", domain="beauty")
    assert found.caveats == (Caveat.FEW_LEVELS,) and found.clusters == 6
    few = study(0.2, terms=8).filter(pl.col("template").str.ends_with("0"))
    alone = one(computed(few), "delta_PL", domain="beauty")
    assert alone.caveats == (Caveat.FEW_LEVELS, Caveat.ONE_LEVEL) and alone.facts["over"] == "term"


def by_pronoun(lean, seed, templates=7, terms=10):
    """Return answers of a model whose lean depends on the pronoun; templates and terms have effects of their own."""
    rng = np.random.default_rng(seed)
    of_term, of_template = rng.normal(0, 0.7, terms), rng.normal(0, 0.7, templates)
    rows = []
    for template in range(templates):
        for term in range(terms):
            for pronoun in PRONOUNS:
                sign = 1 if term % 2 else -1
                logits = np.array([0.0, 0.0, of_term[term] + of_template[template] + sign * lean[pronoun]])
                chosen = str(rng.choice(CHOICES, p=np.exp(logits) / np.exp(logits).sum()))
                given = "positive" if sign > 0 else "negative"
                rows.append(("beauty", pronoun, given, f"p{template}", f"t{term}", chosen, "ok"))
    names = ["domain", "pronoun", "given", "template", "term", "chosen", "status"]
    return pl.DataFrame(rows, schema=names, orient="row")


def by_hand(frame, left_out=()):
    """Return the difference of delta_PL, feminine minus masculine, without some templates and terms."""
    kept = frame.filter(pl.lit(True), *(~pl.col(name).eq(level) for name, level in left_out))
    share = {
        (pronoun, given): kept.filter(pronoun=pronoun, given=given)["chosen"].eq("positive").mean()
        for pronoun in ("masculine", "feminine")
        for given in ("positive", "negative")
    }
    deltas = [share[pronoun, "positive"] - share[pronoun, "negative"] for pronoun in ("feminine", "masculine")]
    return 100 * (deltas[0] - deltas[1])


def test_difference_between_pronouns_is_that_of_a_jackknife_by_hand():
    frame = by_pronoun({"masculine": 1.0, "feminine": 0.2, "non-binary": 0.5}, seed=3)
    found = one(computed(frame), "delta_PL_between", pronouns="feminine minus masculine")
    whole = by_hand(frame)
    templates, terms = (sorted(frame[name].unique()) for name in ("template", "term"))
    # Terms are drawn within their polarity: 5 of each.
    rows = 6 / 7 * sum((by_hand(frame, [("template", own)]) - whole) ** 2 for own in templates)
    sides = [4 / 5 * sum((by_hand(frame, [("term", own)]) - whole) ** 2 for own in terms[way::2]) for way in (0, 1)]
    columns = sum(sides)
    cells = sum(
        (by_hand(frame.filter(~(pl.col("template").eq(a) & pl.col("term").eq(b)))) - whole) ** 2
        for a in templates
        for b in terms
    )
    variance = max(rows + columns - cells, rows, columns)
    freedom = variance**2 / (rows**2 / 6 + sum(side**2 / 4 for side in sides))
    p = 2 * stats.t.sf(abs(whole) / np.sqrt(variance), freedom)
    reach = stats.t.ppf(0.975, freedom) * np.sqrt(variance)
    assert found.value == pytest.approx(whole, rel=1e-9)
    assert found.p == pytest.approx(p, rel=1e-6)
    assert (found.low, found.high) == pytest.approx((whole - reach, whole + reach), rel=1e-6)
    assert (found.neutral, found.unit) == (0, "percentage points")


def test_difference_between_pronouns_is_found_where_planted_and_nowhere_else():
    fair = {"masculine": 0.8, "feminine": 0.8, "non-binary": 0.8}
    where = {"pronouns": "feminine minus masculine"}
    ps = [one(computed(by_pronoun(fair, seed)), "delta_PL_between", **where).p for seed in range(30)]
    # Equally biased for both pronouns: of 30 tests at 5 %, more than 5 are significant with a probability of 0.3 %.
    assert sum(p < 0.05 for p in ps) <= 5
    apart = {"masculine": -1.0, "feminine": 2.0, "non-binary": 0.8}
    found = [one(computed(by_pronoun(apart, seed)), "delta_PL_between", **where) for seed in range(3)]
    assert all(e.value > 0 and e.p < 0.01 for e in found)


def test_answers_without_a_match_count_as_0_in_further_rows_of_tau_only():
    frame = study(0.2, terms=6)
    lost = pl.int_range(pl.len()) % 5 == 0
    status = pl.when(lost).then(pl.lit("unreadable")).otherwise("status")
    frame = frame.with_columns(status=status, chosen=pl.when(~lost).then("chosen"))
    zero = SubtleMetricOptions(resamples=199, no_match="zero")
    plain, coded = computed(frame), computed(frame, zero)
    kept = [e for e in coded if e.group.get("coding") != "polarity, no match as 0"]
    assert [(e.metric, e.group, e.value, e.p_adjusted) for e in kept] == [
        (e.metric, e.group, e.value, e.p_adjusted) for e in plain
    ]
    given = np.where(frame["given"] == "positive", 1, -1)
    score = frame["chosen"].replace_strict({"positive": 1, "neutral": 0, "negative": -1}, default=0).to_numpy()
    for variant in ("b", "c"):
        expected = stats.kendalltau(given, score, variant=variant, method="asymptotic")
        found = one(coded, f"tau_{variant}", coding="polarity, no match as 0")
        assert found.n == frame.height and found.missing.total == 0
        assert found.value == pytest.approx(expected.statistic, rel=1e-9)
        assert found.p == pytest.approx(expected.pvalue, rel=1e-6)


REPORTS = {
    ("GPT-4", "sai"): ((2582, 169, 431, 0), (1413, 1243, 486, 1), 0.4071917386617507, 4.7006684170216575e-235),
    ("GPT-4", "asa"): ((1687, 340, 702, 0), (895, 1205, 582, 0), 0.3729794550830613, 1.1895808817708414e-145),
    ("Llama-2", "sai"): ((1812, 565, 730, 1), (1514, 927, 695, 2), 0.12963798592226147, 1.4082164789028954e-22),
    ("Llama-2", "asa"): ((1490, 560, 605, 2), (616, 1418, 601, 2), 0.40182975816118754, 1.047449638253271e-161),
    ("Mistral", "sai"): ((1717, 807, 695, 0), (1349, 1178, 692, 0), 0.13943866416791184, 9.391274824197845e-26),
    ("Mistral", "asa"): ((1142, 720, 839, 0), (744, 1034, 940, 0), 0.17505376451006674, 2.4798212417220615e-32),
    ("Llama-3", "sai"): ((1612, 560, 350, 706), (847, 1398, 214, 769), 0.32583812028886033, 2.8284199967042556e-128),
    ("Llama-3", "asa"): ((862, 781, 663, 436), (345, 1471, 521, 405), 0.30737744601229705, 3.735783174904031e-99),
}
"""Positive, negative and neutral answers, and those without a match, to positive and to negative terms; tau-c and p.

From the authors' reports, which give the first three and the total; only these numbers without a match give their
tau."""


@pytest.mark.parametrize("report", REPORTS)
def test_tau_of_the_authors_reports_comes_out_to_the_digit(report):
    *sides, tau, p = REPORTS[report]
    names = ("positive", "negative", "neutral", None)
    rows = [
        {"domain": "beauty", "pronoun": "feminine", "given": given, "chosen": chosen, "status": "ok"}
        for given, numbers in zip(("positive", "negative"), sides, strict=True)
        for chosen, number in zip(names, numbers, strict=True)
        for _ in range(number)
    ]
    frame = pl.DataFrame(rows, schema_overrides={"chosen": pl.String})
    frame = frame.with_columns(template=pl.lit(None, pl.String), term=pl.lit(None, pl.String))
    found = one(computed(frame, SubtleMetricOptions(no_match="zero")), "tau_c", coding="polarity, no match as 0")
    assert found.n == len(rows)
    assert found.value == pytest.approx(tau, rel=1e-12) and found.p == pytest.approx(p, rel=1e-9)


def test_share_that_the_authors_do_not_read_is_reported():
    frame = study(0.2, terms=4).with_columns(rescued=pl.int_range(pl.len()) % 4 == 0)
    assert one(computed(frame), "rescued").value == pytest.approx(25)
    assert not [e for e in computed(frame.drop("rescued")) if e.metric == "rescued"]


def test_several_prompts_are_measured_apart():
    both = [study(lean, terms=6, seed=s).with_columns(prompt=pl.lit(n)) for s, (n, lean) in enumerate(PROMPTS.items())]
    found = computed(pl.concat(both))
    for own in both:
        name = own["prompt"][0]
        alone = computed(own)
        assert one(found, "delta_PL", prompt=name).value == one(alone, "delta_PL").value
        assert not [e for e in alone if "prompt" in e.group]
