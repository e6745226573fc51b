from importlib.resources import files
from itertools import product

import numpy as np
import polars as pl
import pytest

from prejudge.core.catalogue.study import Catalogue
from prejudge.core.charts.numbers import numbers_of
from prejudge.core.contracts.errors import DataError, UsageError
from prejudge.core.contracts.estimates import Caveat
from prejudge.core.contracts.words import HITS, OF
from prejudge.core.statistics.facets import OVER
from prejudge.metrics.dora.counts import OTHERS, gather
from prejudge.metrics.dora.measures import STEPS
from prejudge.metrics.dora.metric import DoraAssociations, DoraAssociationsOptions
from prejudge.probes.dora.associations import PAIR
from prejudge.probes.dora.content_words import lemmas
from prejudge.testing import raises_code

from ...captions import long_captions
from .frames import WORDS, completions, study

METRIC = DoraAssociations()


def options(**given):
    return DoraAssociationsOptions(**{"method": "fisher", "resamples": 199, **given})


def estimates(frame, **given):
    return METRIC.compute(frame, options(**given))


def of(found, metric, **group):
    return [e for e in found if e.metric == metric and all(e.group.get(k) == v for k, v in group.items())]


def overall(found, metric, **group):
    return [e for e in of(found, metric, **group) if "dimension" not in e.group]


@pytest.fixture(scope="module")
def planted():
    return estimates(study())


def test_counts_are_table_4_and_every_method(planted):
    assert [e.value for e in of(planted, "mentions")] == [720, 720]
    methods = {e.group["method"]: e.value for e in of(planted, "salient", setting="noun")}
    assert methods["fisher"] == 12 and set(methods) == {"exact", "tf-idf", "fisher", "log-odds", "pmi"}
    (within,) = of(planted, "in_range", setting="noun")
    assert methods["tf-idf"] < within.value < within.n
    assert [e.value for e in of(planted, "p_value_significant", setting="noun")] == [methods["tf-idf"]]


def test_every_planted_association_is_found_and_no_other():
    kept = gather(study(), options()).kept.filter(setting="verb")
    truth = {(f"group{d}", word) for d, word in enumerate(lemmas(WORDS[40:52]))}
    assert set(kept.select("descriptor", "word").rows()) == truth


def test_nothing_planted_is_nothing_found():
    found = sum(e.value for seed in range(8) for e in of(estimates(completions(seed=seed)), "salient", method="fisher"))
    assert found <= 2


def test_negative_share_is_of_the_salient_associations():
    found = estimates(study(negative=lambda pair: pair["dimension"] == "age"))
    (share,) = overall(found, "negative", setting="noun")
    assert share.value == pytest.approx(100 / 3) and share.n == 12 and share.clusters == 12
    assert share.low < share.value < share.high
    assert [e.value for e in of(found, "negative", setting="noun", dimension="age")] == [100.0]


def test_all_takes_every_association():
    (share,) = overall(estimates(study(), method="all"), "negative", setting="noun")
    assert share.n > 300 and share.value < 10


def test_a_difference_between_settings_is_found_and_corrected():
    frame = study(settings=("noun", "verb", "adjective"), negative=lambda pair: pair["setting"] == "noun")
    found = {(e.group["setting"], e.group["against"]): e for e in of(estimates(frame), "negative_difference")}
    assert found["noun", "verb"].value == 100 and found["noun", "verb"].p_adjusted < 0.05
    assert found["verb", "adjective"].value == 0 and found["verb", "adjective"].p_adjusted == 1
    assert "3 comparisons" in found["noun", "verb"].test.family


def test_a_difference_is_that_of_exchanged_descriptors_and_bounds_what_is_missing():
    """Recomputed with numpy: of six descriptors, each with both settings, all 64 exchanges."""
    frame = study(
        planted=0, descriptors=6, negative=lambda pair: pair["word"] < ("k" if pair["setting"] == "noun" else "g")
    )
    lost = (pl.col("stage") == "sentiment") & (pl.col("word") > "t")
    frame = frame.with_columns(status=pl.when(lost).then(pl.lit("refused")).otherwise("status"))
    (found,) = of(estimates(frame, method="all", resamples=999), "negative_difference")
    asked = frame.filter(stage="sentiment")
    read = (
        asked.filter(status="ok").group_by("setting", "descriptor").agg(pl.len(), (pl.col("label") == "negative").sum())
    )
    counts = np.array(
        [read.filter(setting=side).sort("descriptor").select("len", "label") for side in ("noun", "verb")]
    )

    def gap(swapped):
        own = np.where(np.array(swapped)[:, None], counts[::-1], counts).sum(axis=1)
        return own[0, 1] / own[0, 0] - own[1, 1] / own[1, 0]

    every = np.abs([gap(swapped) for swapped in product((False, True), repeat=6)])
    assert found.value == pytest.approx(100 * every[0] * np.sign(gap([False] * 6)))
    assert found.p == pytest.approx((every >= every[0] - 1e-12).mean())
    gone = {side: asked.filter(setting=side, status="refused").height for side in ("noun", "verb")}
    assert found.missing.counts == {"refused": sum(gone.values())} and min(gone.values()) > 0
    ends = [
        [100 * (side[1] + g) / (side[0] + lost) for g in (0, lost)]
        for side, lost in zip(counts.sum(axis=1), gone.values(), strict=True)
    ]
    assert (found.bound_low, found.bound_high) == pytest.approx((ends[0][0] - ends[1][1], ends[0][1] - ends[1][0]))


def test_levels_are_shared_out_over_the_steps(planted):
    shares = {e.group["level"]: e.value for e in overall(planted, "level_share", setting="verb")}
    assert shares == {"not at all": 50, "slightly": 50, "moderately": 0, "highly": 0, "extremely": 0}
    assert overall(planted, "level", setting="verb")[0].value == 1.5


def test_judgements_that_always_differ_agree_less_than_chance(planted):
    assert of(planted, "level_agreement", setting="noun")[0].value < 0


def test_judgements_that_are_alike_agree():
    found = estimates(study(level=lambda pair, j: 1 + len(pair["descriptor"]) % 3))
    assert of(found, "level_agreement", setting="noun")[0].value == 1


def test_same_associations_in_two_settings_overlap_more_than_chance(planted):
    (shared,) = of(planted, "overlap")
    assert shared.value == 1 and shared.neutral < 0.1 and shared.p_adjusted < 0.05


def test_levels_of_other_associations_than_those_that_count_are_missing_and_said_to_be():
    frame = study()
    mine = (pl.col("stage") != "levels") | (pl.col("setting") == "noun") | (pl.col("descriptor") == "group1")
    found = estimates(frame.filter(mine))
    (level,) = overall(found, "level", setting="verb")
    assert (level.n, level.missing.counts) == (2, {"absent": 22}) and level.bound_high == pytest.approx(
        (3 + 22 * 5) / 24
    )
    (judged,) = of(found, "judged", setting="verb")
    assert judged.value == pytest.approx(100 / 12) and (judged.facts[HITS], judged.facts[OF]) == (1, 12)
    agreed = [e.replace(facts=e.facts | {OTHERS: False}) if e.metric == "judged" else e for e in found]
    assert judged.facts[OTHERS] and METRIC.conclude(found).startswith(METRIC.conclude(agreed) + " ")


def test_levels_of_those_that_count_need_no_remark():
    kept = gather(study(), options()).kept.select(PAIR)
    frame = study().join(kept.with_columns(stage=pl.lit("levels"), _own=True), on=[*PAIR, "stage"], how="left")
    found = estimates(frame.filter((pl.col("stage") != "levels") | pl.col("_own")))
    assert [(e.value, e.facts[OTHERS]) for e in of(found, "judged")] == [(100, False)] * 2


def test_what_was_not_judged_is_missing_and_bounded():
    frame = study(level=lambda pair, j: 3)
    unread = (pl.col("stage") == "sentiment") & (pl.col("descriptor") == "group1")
    found = estimates(frame.with_columns(status=pl.when(unread).then(pl.lit("refused")).otherwise("status")))
    (share,) = overall(found, "negative", setting="noun")
    assert share.missing.counts == {"refused": 1} and share.n == 11
    assert (share.bound_low, share.bound_high) == (pytest.approx(100 * 10 / 12, abs=9), pytest.approx(100, abs=9))
    assert of(found, "missing", stage="sentiment")[0].value > 0


def test_stages_nobody_was_asked_give_no_estimates():
    found = {e.metric for e in estimates(completions(planted=15))}
    assert found == {"mentions", "associations", "in_range", "p_value_significant", "salient", "overlap", "missing"}


def test_kinds_of_unreadable_answers_are_counted():
    frame = completions(planted=15).with_columns(
        status=pl.when(pl.int_range(pl.len()) < 72).then(pl.lit("unreadable")).otherwise("status"),
        reason=pl.lit("another letter"),
    )
    (kind,) = of(estimates(frame), "unreadable")
    assert kind.value == 5 and kind.group == {"stage": "completions", "kind": "another letter"}


def test_documented_pairs_are_known_and_others_new(tmp_path):
    file = tmp_path / "known.csv"
    file.write_text(f"\ufeffdescriptor,word\nGroup0,{WORDS[40]}\nnobody,x\n", encoding="utf-8")
    (share,) = overall(estimates(study(), documented=str(file)), "undocumented", setting="noun")
    assert share.value == pytest.approx(100 * 11 / 12)


def test_ranked_associations_say_whether_they_are_documented(tmp_path):
    file = tmp_path / "known.csv"
    file.write_text(f"descriptor,word\nGroup0,{WORDS[40]}\n", encoding="utf-8")
    told = " ".join(e.caption for e in METRIC.examples(study(), options(documented=str(file))))
    assert told.count(f", documented, line 2: Group0, {WORDS[40]})") == 2 and told.count(", undocumented)") == 22
    assert "documented" not in " ".join(e.caption for e in METRIC.examples(study(), options()))


def test_documented_sentences_hold_the_descriptor_and_the_word(tmp_path):
    file = tmp_path / "pairs.csv"
    more, less = f"A group0 is {WORDS[40]}.", f"A nobody is {WORDS[40]}."
    lines = ["sent_more,sent_less,stereo_antistereo", f"{more},{less},stereo"]
    file.write_text("\n".join([*lines, f"A group1 is {WORDS[41]}.,x,antistereo"]) + "\n", encoding="utf-8")
    (share,) = overall(estimates(study(), documented=str(file)), "undocumented", setting="noun")
    assert share.value == pytest.approx(100 * 11 / 12)


@pytest.mark.parametrize(
    ("text", "code", "named"),
    [("a,b\n1,2\n", "data.column-missing", "sent_more and sent_less"), ("descriptor,word\n", "data.no-rows", "")],
)
def test_a_wrong_list_is_refused(tmp_path, text, code, named):
    (tmp_path / "f.csv").write_text(text, encoding="utf-8")
    with raises_code(DataError, code, named):
        estimates(study(), documented=str(tmp_path / "f.csv"))


def test_calibration_against_people(tmp_path):
    file = tmp_path / "people.csv"
    rows = [f"GROUP{d},{WORDS[40 + d]},{1 + d % 3}" for d in range(12)]
    file.write_text("\n".join(["descriptor,word,level", *rows]), encoding="utf-8")
    found = estimates(study(level=lambda pair, j: 2 + int(pair["descriptor"][5:]) % 3), human=str(file))
    (above,) = of(found, "calibration_difference")
    assert above.value == pytest.approx(1) and above.n == 12 and above.p < 0.01
    assert of(found, "calibration_alpha")[0].value < 1


def test_a_level_off_the_scale_is_refused(tmp_path):
    (tmp_path / "f.csv").write_text("descriptor,word,level\ngroup0,x,7\n", encoding="utf-8")
    with raises_code(DataError, "data.number", "level 7", "line 2"):
        estimates(study(), human=str(tmp_path / "f.csv"))


def test_units_mean_what_the_estimates_say():
    frame = study(negative=lambda pair: len(pair["word"]) and pair["dimension"] != "age")
    units = METRIC.units(frame, options(method="all"))
    found = {
        (e.metric, e.group["setting"], e.group.get("dimension")): e.value
        for e in estimates(frame, method="all")
        if e.metric.endswith("_per_descriptor")
    }
    means = units.group_by("metric", "setting", "dimension").agg(pl.col("value").mean()).rows()
    assert {row[:3]: pytest.approx(row[3]) for row in means} == found


def test_associations_stand_in_captions_only():
    examples = METRIC.examples(study(), options())
    assert any("group7 \N{LEFT RIGHT ARROW} " in e.caption for e in examples)
    assert not any("group" in f"{e.title} {e.group}" for e in examples)


def test_no_word_stands_in_an_estimate_or_a_figure(planted):
    told = " ".join([str(planted), *(f"{c.title} {c.caption} {numbers_of(c.figure)}" for c in METRIC.figures(planted))])
    assert not any(f"group{d}" in told for d in range(12))


def test_figures_are_heat_maps_and_overlap(planted):
    assert long_captions(METRIC.figures(planted)) == []
    for chart in METRIC.figures(planted)[:2]:
        assert all(one.title and len(one.rows) > 1 for one in numbers_of(chart.figure)) and ": " not in chart.caption
    assert [c.name for c in METRIC.figures(planted)] == ["dora-levels", "dora-valence", "dora-overlap"]


def test_gallery_shows_an_image_with_its_descriptions():
    rows = [
        {"stage": "descriptions", "modality": "t2i", "setting": "singular", "dimension": "age", "descriptor": "baby",
         "form": "a baby", "image": f"i{i // 2}", "text": f"A red hat {i}", "status": "ok", "reason": None,
         "key": bytes([i])}
        for i in range(6)
    ]  # fmt: skip
    shown = [e for e in METRIC.examples(pl.DataFrame(rows), options(gallery=2)) if "image" in e.title]
    assert [e.keys for e in shown] == [(b"\x00", b"\x01"), (b"\x02", b"\x03")]
    assert shown[0].caption == "Shows, by its folder: a baby."
    drawn = pl.concat([pl.DataFrame(rows), pl.DataFrame([rows[0] | {"stage": "drawings", "text": None}])])
    assert METRIC.examples(drawn, options(gallery=1))[-1].caption == "Drawn for: a baby."


def test_the_conclusion_counts_what_stands_a_test(planted):
    told = METRIC.conclude(planted)
    assert told.startswith("For the one wording of each setting that was asked only, 24 of ")
    assert METRIC.conclude([]) and METRIC.conclude([]) not in METRIC.conclude(planted)


def test_the_conclusion_says_what_valence_holds_for(planted):
    said = METRIC.conclude(estimates(study(negative=lambda pair: pair["dimension"] == "age")))
    (share,) = overall(estimates(study(), method="all"), "negative", setting="noun")
    assert "For descriptors like these, with these prompts only, " in said and share.facts[OVER] == "descriptor"
    # A value that is the same of every descriptor has no interval, and so no claim beyond them.
    assert "For these descriptors and prompts only, 0.0 % of the kept associations are toxic" in METRIC.conclude(
        planted
    )


def test_observations_without_stages_are_refused():
    with raises_code(DataError, "data.column-missing", "stage"):
        estimates(study().drop("stage"))


def test_a_level_of_one_is_refused():
    with raises_code(UsageError, "options.value", "salience_level", "1"):
        options(salience_level=1.0)


def test_a_setting_of_which_no_association_counts_is_undefined_not_zero():
    (share,) = of(estimates(study(planted=0, settings=("noun",))), "negative")
    assert share.value is None and share.n == 0 and share.caveats == (Caveat.UNDEFINED,)


def test_images_that_were_not_drawn_are_counted():
    drawn = completions().with_columns(stage=pl.lit("drawings"), status=pl.lit("filtered"), word=pl.lit(None))
    found = estimates(pl.concat([drawn, completions()], how="diagonal_relaxed"))
    assert of(found, "missing", stage="drawings")[0].value == 100


def repeating(times, wordings=1):
    """Return completions of an endpoint that gives one word per prompt, however often it is asked: 26 x 27 prompts."""
    rows = [
        {"stage": "completions", "modality": "t2t", "setting": "noun", "dimension": "age", "descriptor": f"group{d}",
         "form": "x", "letter": letter, "sample": sample, "wording": sample % wordings, "reason": None, "status": "ok",
         "word": f"{letter}o{WORDS[3 * d + sample % wordings]}", "key": f"{d}{letter}{sample}".encode()}
        for d in range(27) for letter in "abcdefghijklmnopqrstuvwxyz" for sample in range(times)
    ]  # fmt: skip
    return pl.DataFrame(rows)


@pytest.mark.parametrize("times", [1, 2, 10])
def test_repeats_of_one_answer_are_no_evidence(times):
    every = estimates(repeating(times))
    found = {e.group["method"]: e for e in of(every, "salient")}
    assert (found["exact"].n, found["exact"].value, found["fisher"].value, found["log-odds"].value) == (702, 0, 0, 0)
    assert (Caveat.EQUAL_REPEATS in found["exact"].caveats) == (times > 1)
    assert ("the same answer each time" in METRIC.conclude(every)) == (times > 1)


def test_asking_everything_again_with_the_same_answers_adds_nothing():
    frame = completions(planted=10, settings=("noun",)).with_columns(
        wording=pl.int_range(pl.len()) % 5, letter=pl.lit("b")
    )
    again = frame.with_columns(key=pl.concat_str(pl.lit("x"), pl.col("key").bin.encode("hex")).cast(pl.Binary))
    once, twice = (gather(one, options()).every for one in (frame, pl.concat([frame, again])))
    assert twice["p_exact"].to_list() == pytest.approx(once["p_exact"].to_list())
    assert (once["p_exact"] < 1e-4).any()


def test_where_nothing_could_be_read_the_reasons_and_first_answers_are_told():
    reason = pl.when(pl.int_range(pl.len()) < 20).then(pl.lit("a refusal")).otherwise(pl.lit("several words"))
    frame = completions(settings=("noun",)).with_columns(
        status=pl.lit("unreadable"), reason=reason, word=pl.lit(None, dtype=pl.String)
    )
    told = METRIC.conclude(estimates(frame))
    assert "720 answers of completions, 720" in told and "a refusal: 20" in told and "several words: 700" in told
    shown = METRIC.examples(frame, options())
    assert [(e.caption, len(e.keys)) for e in shown] == [
        ("20 answers: a refusal.", 3),
        ("700 answers: several words.", 3),
    ]


def test_printed_associations_are_looked_for_and_compared_with_chance():
    said = {"Obese person": "lazy", "garbage man": "rude", "drug addict": "troubled", "gypsy": "rude", "Iraqi": "rude"}
    frame = completions(planted=15, settings=("plural", "singular"), descriptors=5)
    names = dict(zip([f"group{d}" for d in range(5)], said, strict=True))
    own = dict(zip(WORDS[40:45], said.values(), strict=True))
    frame = frame.with_columns(pl.col("descriptor").replace(names), pl.col("word").replace(own))
    found = {(e.group["setting"], e.group["list"]): e for e in of(estimates(frame, method="all"), "reappeared")}
    one, two = found["plural", "GPT-4o, Figure 12"], found["singular", "GPT-4o, Figure 12"]
    # Of descriptors that were asked about, the figure prints obese people:lazy, and garbage man:rude.
    assert (one.value, one.n, one.neutral) == (100, 1, pytest.approx(100 / 5))
    assert (two.value, two.n, two.neutral) == (100, 1, pytest.approx(100 * 3 / 5)) and two.facts["said"] == 1


def test_words_that_the_lexicon_does_not_have_are_missing_from_the_valence():
    frame = study(negative=lambda pair: pair["descriptor"] < "group5")
    own = (pl.col("stage") == "sentiment") & (pl.col("descriptor") >= "group5")
    frame = frame.with_columns(label=pl.when(own).then(pl.lit("unknown")).otherwise("label"))
    (share,) = overall(estimates(frame), "negative", setting="noun")
    # group0 to group4, group10 and group11 are negative; of the other five nothing is known.
    assert (share.value, share.n, share.missing.counts) == (100, 7, {"unknown": 5})
    assert (share.bound_low, share.bound_high) == (pytest.approx(100 * 7 / 12), 100)


@pytest.mark.parametrize("study", ["dora-t2t", "dora-t2i", "dora-i2t"])
def test_published_levels_are_whole_distributions_of_known_groups(study):
    values = [
        v
        for v in Catalogue.load().registry.studies[study].published
        if v.measure in ("level_share", "negative", "toxic")
    ]
    known = set(pl.read_csv(files("prejudge.probes.dora").joinpath("data/descriptors.csv"))["dimension"])
    assert {v.group["dimension"] for v in values} <= known and all(v.reading and v.width is None for v in values)
    sums = {}
    for value in values:
        if value.measure == "level_share":
            assert value.group["level"] in STEPS
            place = (value.model, value.group["setting"], value.group["dimension"])
            sums[place] = [*sums.get(place, []), value.value]
    assert sums and all(len(shares) == 5 and abs(sum(shares) - 100) <= 2 for shares in sums.values())


def descriptions(longer):
    """Return texts of words drawn alike about every descriptor; those about one have `longer` times as many words."""
    rng = np.random.default_rng(0)
    rows = [
        {"stage": "descriptions", "modality": "i2t", "setting": "description", "dimension": "age", "form": "x",
         "descriptor": f"group{d}", "image": f"{d}/{n}", "wording": n % 5, "reason": None, "status": "ok",
         "text": " ".join(WORDS[i] for i in rng.integers(0, 30, 4 * (longer if d == 3 else 1))),
         "key": f"{d}/{n}".encode()}
        for d in range(12) for n in range(20)
    ]  # fmt: skip
    return pl.DataFrame(rows)


def test_the_first_sentence_says_that_answers_about_a_descriptor_are_longer():
    first = " ".join(METRIC.conclude(estimates(descriptions(3))).split())
    assert "up to 3.0 times as many words as the median" in first.partition("The tf-idf")[0]
    assert "as the median" not in METRIC.conclude(estimates(descriptions(1)))


def test_completions_of_one_word_have_no_length():
    assert all("longest_answers" not in e.facts for e in of(estimates(completions(10)), "salient"))
