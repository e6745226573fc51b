"""What a file in another encoding is told."""

from __future__ import annotations

import pytest

from prejudge.core.contracts.errors import DataError
from prejudge.core.tables.decoding import decode, likely_encodings
from prejudge.testing import raises_code

TEXTS = {
    "cp1252": "a,b\nDas schöne Mädchen sagte “nein” – natürlich,Günther läuft\nÜber Fußgänger,Äpfel\n",
    "mac_roman": "a,b\nLe café du garçon n’est pas fermé,élève à l’école\nça coûte très cher,déjà vu\n",
    "cp1251": "a,b\nБедные люди не умеют обращаться с деньгами,Богатые люди\nМальчики лучше,Девочки лучше\n",
    "shift_jis": "a,b\n女性は地図が読めない,男性は地図が読めない\n彼は貧しい,彼は豊かだ\n",
}


@pytest.mark.parametrize("encoding", TEXTS)
def test_the_right_encoding_is_the_first_that_is_named(encoding):
    raw = TEXTS[encoding].encode(encoding)
    assert likely_encodings(raw, 4)[0] == encoding


def test_the_line_is_shown_as_each_likely_encoding_reads_it():
    raw = "a,b\nThe café owner’s wife,x\nThe café,y\n".encode("mac_roman")
    with raises_code(DataError, "file.encoding", "café owner’s", "cafŽ ownerÕs", "--encoding mac_roman") as caught:
        decode("file.csv", raw)
    assert caught.value.fields["encodings"][0] == "mac_roman" and "cp1252" in caught.value.fields["encodings"]
    assert decode("file.csv", raw, "mac_roman").splitlines()[2] == "The café,y"


@pytest.mark.parametrize("encoding", ["klingon", "base64", ""])
def test_an_unknown_encoding_is_refused(encoding):
    with raises_code(DataError, "data.encoding" if encoding else "file.encoding"):
        decode("file.csv", b"caf\xe9\n", encoding)


def test_a_stated_encoding_that_is_not_that_of_the_file_is_refused():
    with raises_code(DataError, "file.encoding", "line 2"):
        decode("file.csv", b"a\ncaf\xe9\n", "utf-8")
