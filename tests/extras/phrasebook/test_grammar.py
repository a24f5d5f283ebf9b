"""Sentences written and checked by hand, one or two for each construction of the phrasebook's grammar."""

import pytest

from t2t_lite.extras.phrasebook.grammar import (
    ADJECTIVES,
    HE,
    IT,
    NOUNS,
    PLACE,
    PRONOUNS,
    SHE,
    THEY,
    TIME,
    VERBS,
    WE,
    WHAT,
    WHO,
    YOU,
    Clause,
    I,
    NounPhrase,
    Phrase,
    english,
    german,
    object_phrase,
    place_phrase,
)


def np(text, owner=None):
    """Reads "the old man", "two apples", "- bread" (no article), "any milk" (kein, under not), "this" for these."""
    if not isinstance(text, str):
        return text
    determiner, *adjective, name = text.split()
    noun = ({noun.en_plural: noun for noun in NOUNS.values()} | NOUNS)[name.replace("_", " ")]
    adjective = next((a for a in ADJECTIVES if [a.en] == adjective), None)
    return NounPhrase(noun, determiner, name == noun.en_plural, adjective, owner and np(owner))


def acc(text, owner=None):
    return object_phrase(np(text, owner))


def dat(text):
    return object_phrase(np(text), "dat")


def at(text):
    return place_phrase(np(text))


def to(text):
    return place_phrase(np(text), is_goal=True)


def is_(en, de):
    return Phrase(en, de, PLACE)


def clause(subject, infinitive, *phrases, time=None, fronted=None, no=False, **settings):
    verb = next(verb for verb in VERBS if verb.de == infinitive)
    said = time or fronted
    return Clause(
        np(subject),
        verb,
        phrases=list(phrases),
        time=said and Phrase(*said, TIME),
        is_fronted=fronted is not None,
        is_negated=no,
        **settings,
    )


def say(*words, **settings):
    said = clause(*words, **settings)
    return english(said) + ".", german(said) + "."


def ask(*words, wh=("", ""), **settings):
    said = clause(*words, **settings)
    en, de = wh
    if said.subject is WHO:
        return english(said) + "?", german(said) + "?"
    return english(said, en) + "?", german(said, "second" if de else "first", de) + "?"


def know(conjunction, said):
    en, de = conjunction
    main = clause(WE, "wissen", no=en != "that")
    return f"{english(main)} {en} {english(said)}.", f"{german(main)}, {german(said, 'last', de)}."


TODAY, TOMORROW, YESTERDAY = ("today", "heute"), ("tomorrow", "morgen"), ("yesterday", "gestern")
OFTEN = ("often", "oft")
ING, PERFECT, PAST = {"aspect": "progressive"}, {"tense": "perfect"}, {"tense": "perfect", "aspect": "past"}

# fmt: off
PAIRS = [
    # noun phrases: gender, case, number, the three declensions, the genitive
    ("The man buys a small apple.", "Der Mann kauft einen kleinen Apfel.",
     say("the man", "kaufen", acc("a small apple"))),
    ("A young woman reads the new book.", "Eine junge Frau liest das neue Buch.",
     say("a young woman", "lesen", acc("the new book"))),
    ("My nice uncle drinks cold water.", "Mein netter Onkel trinkt kaltes Wasser.",
     say("my nice uncle", "trinken", acc("- cold water"))),
    ("The children eat fresh apples.", "Die Kinder essen frische Äpfel.",
     say("the children", "essen", acc("- fresh apples"))),
    ("Every student needs a good book.", "Jeder Student braucht ein gutes Buch.",
     say("every student", "brauchen", acc("a good book"))),
    ("Many old men know these beautiful villages.", "Viele alte Männer kennen diese schönen Dörfer.",
     say("many old men", "kennen", acc("this beautiful villages"))),
    ("We have two big dogs.", "Wir haben zwei große Hunde.", say(WE, "haben", acc("two big dogs"))),
    ("He wears his brother's black coat.", "Er trägt den schwarzen Mantel seines Bruders.",
     say(HE, "tragen", acc("the black coat", "his brother"))),
    ("I see the old customer's car.", "Ich sehe das Auto des alten Kunden.",
     say(I, "sehen", acc("the car", "the old customer"))),
    ("Their grandmother looks for the children's key.", "Ihre Großmutter sucht den Schlüssel der Kinder.",
     say("their grandmother", "suchen", acc("the key", "the children"))),
    ("The expensive shoes are dirty.", "Die teuren Schuhe sind schmutzig.",
     say("the expensive shoes", "sein", is_("dirty", "schmutzig"))),
    # the dative, two objects, pronouns
    ("Our old neighbor helps this young student.", "Unser alter Nachbar hilft diesem jungen Studenten.",
     say("our old neighbor", "helfen", dat("this young student"))),
    ("She thanks her friendly colleagues.", "Sie dankt ihren freundlichen Kollegen.",
     say(SHE, "danken", dat("her friendly colleagues"))),
    ("I answer two children.", "Ich antworte zwei Kindern.", say(I, "antworten", dat("two children"))),
    ("The teacher gives a boy the letter.", "Der Lehrer gibt einem Jungen den Brief.",
     say("the teacher", "geben", dat("a boy"), acc("the letter"))),
    ("They send us beautiful photos.", "Sie schicken uns schöne Fotos.",
     say(THEY, "schicken", dat(WE), acc("- beautiful photos"))),
    # inversion, the progressive, separable verbs
    ("Today the man is buying a car.", "Heute kauft der Mann ein Auto.",
     say("the man", "kaufen", acc("a car"), fronted=TODAY, **ING)),
    ("Tomorrow I am calling my mother.", "Morgen rufe ich meine Mutter an.",
     say(I, "anrufen", acc("my mother"), fronted=TOMORROW, **ING)),
    ("You are picking them up tomorrow.", "Du holst sie morgen ab.",
     say(YOU, "abholen", acc(THEY), time=TOMORROW, **ING)),
    ("The girl takes along an umbrella.", "Das Mädchen nimmt einen Regenschirm mit.",
     say("the girl", "mitnehmen", acc("a umbrella"))),
    ("The man is looking for a university.", "Der Mann sucht eine Universität.",
     say("the man", "suchen", acc("a university"), **ING)),
    ("The woman often listens to her uncle.", "Die Frau hört ihrem Onkel oft zu.",
     say("the woman", "zuhören", dat("her uncle"), adverb=OFTEN)),
    # modal verbs
    ("The doctor has to work in the hospital.", "Der Arzt muss im Krankenhaus arbeiten.",
     say("the doctor", "arbeiten", at("the hospital"), tense="have to")),
    ("My father is not allowed to open the window.", "Mein Vater darf das Fenster nicht aufmachen.",
     say("my father", "aufmachen", acc("the window"), tense="be allowed to", no=True)),
    ("She would like to rent an apartment.", "Sie möchte eine Wohnung mieten.",
     say(SHE, "mieten", acc("a apartment"), tense="would like to")),
    ("I will come to the office tomorrow.", "Ich werde morgen ins Büro kommen.",
     say(I, "kommen", to("the office"), tense="will", time=TOMORROW)),
    ("The guests cannot order any wine.", "Die Gäste können keinen Wein bestellen.",
     say("the guests", "bestellen", acc("any wine"), tense="can", no=True)),
    # the perfect and the English past
    ("The waiter has lost his key.", "Der Kellner hat seinen Schlüssel verloren.",
     say("the waiter", "verlieren", acc("his key"), **PERFECT)),
    ("Yesterday my friends went to the museum.", "Gestern sind meine Freunde ins Museum gegangen.",
     say("my friends", "gehen", to("the museum"), fronted=YESTERDAY, **PAST)),
    ("You have already repaired the bicycle.", "Du hast das Fahrrad schon repariert.",
     say(YOU, "reparieren", acc("the bicycle"), adverb=("already", "schon"), **PERFECT)),
    # places: "in" with dative and accusative, contractions, towns, home
    ("We did not arrive at the train station.", "Wir sind nicht am Bahnhof angekommen.",
     say(WE, "ankommen", at("the train_station"), no=True, **PAST)),
    ("They go to the bakery.", "Sie gehen zur Bäckerei.", say(THEY, "gehen", to("the bakery"))),
    ("The tourist drives to this quiet village.", "Der Tourist fährt in dieses ruhige Dorf.",
     say("the tourist", "fahren", to("this quiet village"))),
    ("My aunt travels to Paris.", "Meine Tante reist nach Paris.", say("my aunt", "reisen", to("- Paris"))),
    ("Today he is staying at home.", "Heute bleibt er zu Hause.",
     say(HE, "bleiben", at("- home"), fronted=TODAY, **ING)),
    ("I run home.", "Ich laufe nach Hause.", say(I, "laufen", to("- home"))),
    # negation
    ("The boy does not eat the soup.", "Der Junge isst die Suppe nicht.",
     say("the boy", "essen", acc("the soup"), no=True)),
    ("The women do not buy any red shoes.", "Die Frauen kaufen keine roten Schuhe.",
     say("the women", "kaufen", acc("any red shoes"), no=True)),
    ("I am not tired.", "Ich bin nicht müde.", say(I, "sein", is_("tired", "müde"), no=True)),
    # questions
    ("Does the child like cheese?", "Mag das Kind Käse?", ask("the child", "mögen", acc("- cheese"))),
    ("Have you forgotten your bag?", "Hast du deine Tasche vergessen?",
     ask(YOU, "vergessen", acc("your bag"), **PERFECT)),
    ("Where is he driving?", "Wohin fährt er?", ask(HE, "fahren", wh=("where", "wohin"), **ING)),
    ("Who invited the neighbors?", "Wer hat die Nachbarn eingeladen?",
     ask(WHO, "einladen", acc("the neighbors"), **PAST)),
    ("Who are you helping?", "Wem hilfst du?", ask(YOU, "helfen", wh=("who", WHO.german("dat")), **ING)),
    ("Which long letter is she writing?", "Welchen langen Brief schreibt sie?",
     ask(SHE, "schreiben", wh=("which long letter", np("which long letter").german("acc")), **ING)),
    # subordinate clauses
    ("We know that the bus is not going to the market.", "Wir wissen, dass der Bus nicht auf den Markt geht.",
     know(("that", "dass"), clause("the bus", "gehen", to("the market"), no=True, **ING))),
    ("We do not know whether she is calling him today.", "Wir wissen nicht, ob sie ihn heute anruft.",
     know(("whether", "ob"), clause(SHE, "anrufen", acc(HE), time=TODAY, **ING))),
    ("We do not know why the girls have to tidy up the room.",
     "Wir wissen nicht, warum die Mädchen das Zimmer aufräumen müssen.",
     know(("why", "warum"), clause("the girls", "aufräumen", acc("the room"), tense="have to"))),
    ("We know that it has slept.", "Wir wissen, dass er geschlafen hat.",
     know(("that", "dass"), clause(IT["m"], "schlafen", **PERFECT))),
]
# fmt: on


# I, you, he, …: subject, object, possessive; nominative, accusative, dative
PRONOUN_FORMS = """
I me my ich mich mir / you you your du dich dir / he him his er ihn ihm / she her her sie sie ihr
we us our wir uns uns / they them their sie sie ihnen / who who  wer wen wem / what what  was was
it it  er ihn ihm / it it  sie sie ihr / it it  es es ihm / they them their sie sie ihnen
"""


def test_the_forms_of_pronouns():
    listed = [row.split() for row in PRONOUN_FORMS.replace("\n", " / ").split(" / ") if row.strip()]
    for pronoun, row in zip((*PRONOUNS, WHO, WHAT, *IT.values()), listed, strict=True):
        german_forms = [pronoun.german(case) for case in ("nom", "acc", "dat")]
        forms = [pronoun.english(), pronoun.english("acc"), pronoun.possessive, *german_forms]
        assert [*filter(None, forms)] == row
        assert pronoun.person == {"I": 0, "you": 1, "we": 3, "they": 3}.get(row[0], 2)


@pytest.mark.parametrize(("en", "de", "said"), PAIRS, ids=[pair[0] for pair in PAIRS])
def test_pair(en, de, said):
    assert tuple(text[0].upper() + text[1:] for text in said) == (en, de)
