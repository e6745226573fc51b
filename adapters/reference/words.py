"""Word lists of the filler text, and the pieces that let the tokenizer spell any other word.

The filler says nothing about bodies. Each slot is filled uniformly and independently, so nothing is associated with
anything in it; its one purpose is that the common words and the single letters of English get trained embeddings.
"""

from __future__ import annotations

import string

PEOPLE = tuple(
    """people person child children kid student teacher doctor nurse worker manager driver lawyer farmer artist writer
    cook friend neighbor mother father sister brother son daughter wife husband family parents boss engineer
    scientist player singer police officer president soldier baby team group class customer guest owner secretary
    grandmother grandfather uncle aunt couple citizen immigrant mexican african american asian indian chinese
    japanese jewish muslim christian catholic french german italian gay lesbian straight disabled elderly teenager
    homeless""".split()
)
NOUNS = tuple(
    """house car job money school home room door window table chair book story letter phone computer game music
    movie food dinner lunch breakfast coffee tea water bread meat fruit dog cat horse bird tree flower garden river
    road street city town country village church temple shop store bank office hospital university company business
    government law court crime gun war world earth sun moon sky sea mountain rain snow wind fire summer winter
    spring morning afternoon evening night day week month year hour minute time life death love problem question
    answer idea plan reason way place thing part number name word language news paper picture color clothes shirt
    dress shoe hat hand head face eye hair heart body mind bag box key bed bath kitchen wall floor truck bus train
    plane boat bike ball football party gift ticket price test grade degree lesson project meeting accident drug
    health disease help neighborhood apartment team loan culture religion power history science math art
    sport race skin community""".split()
)
VERBS = tuple(
    """saw had made took gave found told asked called tried used wanted needed liked loved hated helped knew thought
    felt left kept bought sold paid lost won stole broke built wrote read heard watched played cooked cleaned opened
    closed started stopped finished moved changed showed brought sent met followed killed hit cut ate drank drove
    flew ran threw caught carried washed taught learned studied forgot remembered believed understood chose""".split()
)
MOTIONS = tuple("went came walked ran worked lived stayed slept sat stood waited talked cried laughed died".split())
ADJECTIVES = tuple(
    """new old young big small little great good bad best better worse long high low early late right wrong easy hard
    hot cold warm cool dry wet clean dirty rich poor cheap expensive free busy happy sad angry afraid tired sick
    healthy strong weak smart stupid lazy crazy kind nice mean rude polite honest dangerous safe quiet loud fast slow
    full empty open true false real important different same special normal strange funny serious simple black white
    brown red blue green yellow blind deaf violent religious male female female american famous careful""".split()
)
ADVERBS = tuple(
    """today yesterday tomorrow now then here there again always never often sometimes soon later early quickly slowly
    well together alone outside inside away home too very really just still already almost only also even ever maybe
    once twice""".split()
)
PREPOSITIONS = tuple(
    "in on at by for from with without about of to into over under after before between through during".split()
)
LINKS = tuple("and but or so because when while if although since until that than as though".split())
SUBJECTS = tuple("i you he she we they it who someone everyone nobody this these those".split())
MODALS = tuple("will would can could may might must should did does do not".split())
BASES = tuple("be have make take give find tell ask call try use want need like go come see know get say look".split())
AUXILIARIES = tuple("is are was were am been being has".split())
OWNERS = tuple("my your his her our their its the a an some any no every each all both many few more most".split())
ASKING = tuple("what where why how which whose whom".split())
NUMBERS = tuple("one two three four five six seven eight nine ten hundred thousand million first last next".split())
CONTRACTED = ("don't", "can't", "didn't", "isn't", "i'm", "it's", "he's", "she's", "they're", "we've", "i'll", "he'd")
OBJECTS = tuple("him them me us himself herself themselves something nothing anything everything".split())

LISTS = (
    *(PEOPLE, NOUNS, VERBS, MOTIONS, ADJECTIVES, ADVERBS, PREPOSITIONS, LINKS, SUBJECTS, MODALS, BASES, AUXILIARIES),
    *(OWNERS, ASKING, NUMBERS, OBJECTS),
)
"""Every list whose words stand whole in the vocabulary."""

SUFFIXES = tuple(
    """s ed ing er ers ly es en est tion ion al ment ness able ible ful less ity ive ous ant ent ate ist ism ic ish y le
    on an in at or ar re te th st nd ck ll ss ee oo ou ea ch sh ng am as is it us um ra ro ri la li lo ma mi mo na ne
    no ta ti to de di do ve ge ce se""".split()
)
PREFIXES = tuple(
    "un re in im dis pre pro con com ex en de be sub over under out up st th ch sh br tr pr gr cr cl fl sp".split()
)
SYMBOLS = (
    string.punctuation + "\u2013\u2014\u2018\u2019\u201c\u201d\u2026\u2022\u00a3\u20ac\u00a5\u00a9\u00ae\u00b0\u00a7"
)
LETTERS = string.ascii_lowercase + string.digits + "\u00df\u00e6\u00f8\u00f0\u00fe\u0142\u0111\u0131\u0153"
"""Letters that stay after lower-casing and the removal of accents."""
