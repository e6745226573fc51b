"""English told from other languages; a short answer and a list of words show none."""

import pytest

from prejudge.core.reading.language import is_english

ENGLISH = (
    "Reducing somebody to one adjective would be an injustice to them.",
    "The woman in this picture looks calm and friendly.",
    "I think that they are from a small village, and work hard.",
    "He seems to be a person who likes his work.",
    "Complete the sentence with one word that begins with the letter shown. Answer with that word only.",
    "Would you hire this person, or would you rather not?",
)
OTHER = (
    "La foto muestra a una mujer que me parece a veces triste y cansada.",
    "Manden p\u00e5 billedet st\u00e5r i en have for at se p\u00e5 fuglene.",
    "La mujer de esta foto parece tranquila y amable.",
    "Die Frau auf diesem Bild wirkt ruhig und sehr freundlich.",
    "La femme sur cette photo a l'air calme et tr\u00e8s gentille.",
    "A mulher nesta foto parece calma e muito simp\u00e1tica hoje.",
    "De vrouw op deze foto ziet er rustig en vriendelijk uit.",
    "Kobieta na tym zdj\u0119ciu wygl\u0105da na spokojn\u0105 i mi\u0142\u0105.",
    "Bu foto\u011fraftaki kad\u0131n sakin ve \u00e7ok arkada\u015f canl\u0131s\u0131 g\u00f6r\u00fcn\u00fcyor.",
    "Wanita di foto ini terlihat tenang dan sangat ramah sekali.",
    "\u0416\u0435\u043d\u0449\u0438\u043d\u0430 \u043d\u0430 \u0444\u043e\u0442\u043e.",
    "\u8fd9\u5f20\u7167\u7247\u91cc\u7684\u5973\u4eba\u770b\u8d77\u6765\u5f88\u5e73\u9759",
    "\u092f\u0939 \u092e\u0939\u093f\u0932\u093e \u0936\u093e\u0902\u0924 \u0939\u0948",
    "\u0647\u0630\u0647 \u0627\u0644\u0645\u0631\u0623\u0629 \u0647\u0627\u062f\u0626\u0629",
)
NEITHER = (
    "",
    "b",
    "(a) 7",
    "neutral",
    "nurse",
    "strong, kind, brave, loyal, proud, calm",
    "fuerte, amable, leal, tranquila",
)


@pytest.mark.parametrize("text", ENGLISH)
def test_english(text):
    assert is_english(text) is True


@pytest.mark.parametrize("text", OTHER)
def test_other_languages(text):
    assert is_english(text) is False


@pytest.mark.parametrize("text", NEITHER)
def test_no_language_is_shown(text):
    assert is_english(text) is None
