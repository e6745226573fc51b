import sys

from prejudge.core.contracts.errors import MissingExtraError, UsageError
from prejudge.core.contracts.installing import install_line
from prejudge.probes.dora.content_words import content_words, lemmas
from prejudge.testing import raises_code


def test_content_words_are_lemmas_without_stop_words_in_order_with_repeats():
    text = "The men were wearing hats; one man’s hat is red."
    assert content_words([text]) == [["man", "wear", "hat", "man", "hat", "red"]]


def test_a_text_without_content_words_gives_an_empty_list():
    assert content_words(["", "It is.", "1 2 _ a b"]) == [[], [], []]


def test_names_of_peoples_have_one_lemma_however_they_are_written():
    assert content_words(["Iraqis iraqis Iraqi ASIANS asian"]) == [["iraqi"] * 3 + ["asian"] * 2]


def test_words_of_other_scripts_are_words():
    assert content_words(["Überfall naïve 東京"], language="de")[0][1:] == ["naïve", "東京"]


def test_lemmas_keep_stop_words():
    assert lemmas(["Women ", "mine", "is"]) == ["woman", "mine", "be"]


def test_an_unknown_language_is_an_error_that_names_it():
    with raises_code(UsageError, "options.language", "'xx'"):
        content_words(["word"], language="xx")


def test_without_the_packages_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "simplemma", None)
    with raises_code(MissingExtraError, "missing-extra", install_line("text")):
        content_words(["word"], language="fr")
