"""Sentences written and checked by hand, every construction of the phrasebook's grammar among them."""

import pytest

from t2t_lite.problems import phrasebook_grammar as grammar
from t2t_lite.problems.phrasebook import subordinate
from t2t_lite.problems.phrasebook_clauses import literal, object_phrase, place_phrase
from t2t_lite.problems.phrasebook_grammar import Clause, NounPhrase, Phrase, english, german, german_text
from t2t_lite.problems.phrasebook_lexicon import ADJECTIVES, NOUNS, VERBS
from t2t_lite.problems.phrasebook_words import HE, IT, SHE, THEY, WE, WHO, YOU, I, Word

BECAUSE, ALTHOUGH, IF = ("because", "weil"), ("although", "obwohl"), ("if", "wenn")


def np(text, owner=None):
    """Reads "the old man", "two apples", "- bread" (no article), "any milk" (kein, under not), "this" for these."""
    determiner, _, described = text.partition(" ")
    *adjective, name = described.split()
    name = name.replace("-", " ")
    noun = ({noun.en_plural: noun for noun in NOUNS.values()} | NOUNS)[name]
    adjective = next((a for a in ADJECTIVES[noun] if [a.en] == adjective), None)
    return NounPhrase(noun, determiner, name != noun.en or not noun.de, adjective, owner)


def verb(infinitive):
    return next(verb for group in VERBS.values() for verb in group if verb.de == infinitive)


def clause(subject, infinitive, *phrases, tense="present", aspect="", time=None, fronted=None, often=(), no=False):
    subject = np(subject) if isinstance(subject, str) else subject
    time = time or fronted
    said = literal(*time, grammar.TIME) if time else None
    return Clause(subject, verb(infinitive), tense, aspect, list(phrases), said, fronted is not None, tuple(often), no)


def acc(thing, owner=None):
    return object_phrase(np(thing, owner and np(owner)) if isinstance(thing, str) else thing)


def dat(thing):
    return object_phrase(np(thing) if isinstance(thing, str) else thing, "dat")


def to_(thing):
    return dat(thing)._replace(en="to " + (np(thing) if isinstance(thing, str) else thing).english("dat"))


def at(place):
    return place_phrase(np(place))


def to(place):
    return place_phrase(np(place), is_goal=True)


def by(en, de, case, thing, slot=grammar.PLACE):
    return Phrase(f"{en} {np(thing).english()}", np(thing).german_after(de, case), slot)


def told(said):
    return english(said) + ".", german_text(german(said)) + "."


def asked(said, en="", first=()):
    is_about_subject = said.subject is WHO
    words = german(said, "second" if first or is_about_subject else "first", first)
    return english(said, None if is_about_subject else en) + "?", german_text(words) + "?"


def wh(word):
    return [Word(word, "wh")]


def joined(main, conjunction, said, is_fronted=False):
    _, en, words, mark = subordinate(main, conjunction, said, is_fronted)
    return en + mark, german_text(words) + mark


def reported(main, en, de, said):
    words = german_text(german(main)) + ", " + german_text(german(said, "last", wh(de)))
    return f"{english(main)} {en} {english(said)}.", words + "."


TODAY, TOMORROW, YESTERDAY = ("today", "heute"), ("tomorrow", "morgen"), ("yesterday", "gestern")
ING, PAST = {"aspect": "progressive"}, {"tense": "perfect", "aspect": "past"}

PAIRS = [
    # noun phrases: gender, case, number, the three declensions
    (
        "The man buys a small apple.",
        "Der Mann kauft einen kleinen Apfel.",
        told(clause("the man", "kaufen", acc("a small apple"))),
    ),
    (
        "A young woman reads the new book.",
        "Eine junge Frau liest das neue Buch.",
        told(clause("a young woman", "lesen", acc("the new book"))),
    ),
    (
        "My nice uncle drinks cold water.",
        "Mein netter Onkel trinkt kaltes Wasser.",
        told(clause("my nice uncle", "trinken", acc("- cold water"))),
    ),
    (
        "The children eat fresh apples.",
        "Die Kinder essen frische Äpfel.",
        told(clause("the children", "essen", acc("- fresh apples"))),
    ),
    (
        "Every student needs a good book.",
        "Jeder Student braucht ein gutes Buch.",
        told(clause("every student", "brauchen", acc("a good book"))),
    ),
    (
        "Many old men know these beautiful villages.",
        "Viele alte Männer kennen diese schönen Dörfer.",
        told(clause("many old men", "kennen", acc("this beautiful villages"))),
    ),
    (
        "We have two big dogs.",
        "Wir haben zwei große Hunde.",
        told(clause(WE, "haben", acc("two big dogs"))),
    ),
    (
        "Our old neighbor helps this young student.",
        "Unser alter Nachbar hilft diesem jungen Studenten.",
        told(clause("our old neighbor", "helfen", dat("this young student"))),
    ),
    (
        "She thanks her friendly colleagues.",
        "Sie dankt ihren freundlichen Kollegen.",
        told(clause(SHE, "danken", dat("her friendly colleagues"))),
    ),
    (
        "I answer three children.",
        "Ich antworte drei Kindern.",
        told(clause(I, "antworten", dat("three children"))),
    ),
    (
        "He wears his brother's black coat.",
        "Er trägt den schwarzen Mantel seines Bruders.",
        told(clause(HE, "tragen", acc("the black coat", "his brother"))),
    ),
    (
        "Their grandmother looks for the children's key.",
        "Ihre Großmutter sucht den Schlüssel der Kinder.",
        told(clause("their grandmother", "suchen", acc("the key", "the children"))),
    ),
    (
        "The expensive shoes are too dirty.",
        "Die teuren Schuhe sind zu schmutzig.",
        told(clause("the expensive shoes", "sein", literal("too dirty", "zu schmutzig"))),
    ),
    # two objects and pronouns
    (
        "The teacher gives a boy the letter.",
        "Der Lehrer gibt einem Jungen den Brief.",
        told(clause("the teacher", "geben", dat("a boy"), acc("the letter"))),
    ),
    (
        "My sister explains the difficult sentence to him.",
        "Meine Schwester erklärt ihm den schwierigen Satz.",
        told(clause("my sister", "erklären", acc("the difficult sentence"), to_(HE))),
    ),
    (
        "They send us beautiful photos.",
        "Sie schicken uns schöne Fotos.",
        told(clause(THEY, "schicken", dat(WE), acc("- beautiful photos"))),
    ),
    (
        "The house belongs to my parents.",
        "Das Haus gehört meinen Eltern.",
        told(clause("the house", "gehören", dat("my parents"))),
    ),
    # inversion, the progressive, separable verbs
    (
        "Today the man is buying a car.",
        "Heute kauft der Mann ein Auto.",
        told(clause("the man", "kaufen", acc("a car"), fronted=TODAY, **ING)),
    ),
    (
        "Tomorrow I am calling my mother.",
        "Morgen rufe ich meine Mutter an.",
        told(clause(I, "anrufen", acc("my mother"), fronted=TOMORROW, **ING)),
    ),
    (
        "You are picking them up at 14:30.",
        "Du holst sie um 14:30 Uhr ab.",
        told(clause(YOU, "abholen", acc(THEY), time=("at 14:30", "um 14:30 Uhr"), **ING)),
    ),
    (
        "At 9:05 the train leaves.",
        "Um 9:05 Uhr fährt der Zug ab.",
        told(clause("the train", "abfahren", fronted=("at 9:05", "um 9:05 Uhr"))),
    ),
    (
        "The girl takes along an umbrella.",
        "Das Mädchen nimmt einen Regenschirm mit.",
        told(clause("the girl", "mitnehmen", acc("a umbrella"))),
    ),
    # modal verbs
    (
        "The doctor has to work in the hospital.",
        "Der Arzt muss im Krankenhaus arbeiten.",
        told(clause("the doctor", "arbeiten", at("the hospital"), tense="have to")),
    ),
    (
        "My son is not allowed to open the window.",
        "Mein Sohn darf das Fenster nicht aufmachen.",
        told(clause("my son", "aufmachen", acc("the window"), tense="be allowed to", no=True)),
    ),
    (
        "She would like to rent an apartment.",
        "Sie möchte eine Wohnung mieten.",
        told(clause(SHE, "mieten", acc("a apartment"), tense="would like to")),
    ),
    (
        "I will come to the office tomorrow.",
        "Ich werde morgen ins Büro kommen.",
        told(clause(I, "kommen", to("the office"), tense="will", time=TOMORROW)),
    ),
    (
        "The guests cannot order any wine.",
        "Die Gäste können keinen Wein bestellen.",
        told(clause("the guests", "bestellen", acc("any wine"), tense="can", no=True)),
    ),
    # the perfect and the English past
    (
        "The waiter has lost his key.",
        "Der Kellner hat seinen Schlüssel verloren.",
        told(clause("the waiter", "verlieren", acc("his key"), tense="perfect")),
    ),
    (
        "Yesterday my friends went to the museum.",
        "Gestern sind meine Freunde ins Museum gegangen.",
        told(clause("my friends", "gehen", to("the museum"), fronted=YESTERDAY, **PAST)),
    ),
    (
        "We did not arrive at the train station yesterday.",
        "Wir sind gestern nicht am Bahnhof angekommen.",
        told(clause(WE, "ankommen", at("the train-station"), time=YESTERDAY, no=True, **PAST)),
    ),
    (
        "The boy has already repaired the bicycle.",
        "Der Junge hat das Fahrrad schon repariert.",
        told(clause("the boy", "reparieren", acc("the bicycle"), tense="perfect", often=("already", "schon"))),
    ),
    # places, times, prices
    (
        "He puts the newspaper on the table.",
        "Er legt die Zeitung auf den Tisch.",
        told(clause(HE, "legen", acc("the newspaper"), by("on", "auf", "acc", "the table"))),
    ),
    (
        "The newspaper is lying on the table.",
        "Die Zeitung liegt auf dem Tisch.",
        told(clause("the newspaper", "liegen", by("on", "auf", "dat", "the table"), **ING)),
    ),
    (
        "My aunt travels to Paris by train.",
        "Meine Tante reist mit dem Zug nach Paris.",
        told(
            clause(
                "my aunt",
                "reisen",
                to("- Paris"),
                by("by", "mit", "dat", "the train", grammar.COMPANION)._replace(en="by train"),
            )
        ),
    ),
    (
        "They go to the bakery with their children.",
        "Sie gehen mit ihren Kindern zur Bäckerei.",
        told(clause(THEY, "gehen", to("the bakery"), by("with", "mit", "dat", "their children", grammar.COMPANION))),
    ),
    (
        "Today he is staying at home.",
        "Heute bleibt er zu Hause.",
        told(clause(HE, "bleiben", at("- home"), fronted=TODAY, **ING)),
    ),
    (
        "The small car costs 12,500 euros.",
        "Das kleine Auto kostet 12.500 Euro.",
        told(clause("the small car", "kosten", literal("12,500 euros", "12.500 Euro"))),
    ),
    (
        "She sells the hat for 20.50 euros.",
        "Sie verkauft den Hut für 20,50 Euro.",
        told(clause(SHE, "verkaufen", acc("the hat"), literal("for 20.50 euros", "für 20,50 Euro", grammar.COMPANION))),
    ),
    (
        "The woman often reads newspapers.",
        "Die Frau liest oft Zeitungen.",
        told(clause("the woman", "lesen", acc("- newspapers"), often=("often", "oft"))),
    ),
    # negation
    (
        "The boy does not eat the soup.",
        "Der Junge isst die Suppe nicht.",
        told(clause("the boy", "essen", acc("the soup"), no=True)),
    ),
    (
        "The women do not buy any red shoes.",
        "Die Frauen kaufen keine roten Schuhe.",
        told(clause("the women", "kaufen", acc("any red shoes"), no=True)),
    ),
    (
        "I am not very tired.",
        "Ich bin nicht sehr müde.",
        told(clause(I, "sein", literal("very tired", "sehr müde"), no=True)),
    ),
    # questions
    (
        "Does the child like cheese?",
        "Mag das Kind Käse?",
        asked(clause("the child", "mögen", acc("- cheese"))),
    ),
    (
        "Have you forgotten your bag?",
        "Hast du deine Tasche vergessen?",
        asked(clause(YOU, "vergessen", acc("your bag"), tense="perfect")),
    ),
    (
        "Where is he driving?",
        "Wohin fährt er?",
        asked(clause(HE, "fahren", **ING), "where", wh("wohin")),
    ),
    (
        "Who invited the neighbors?",
        "Wer hat die Nachbarn eingeladen?",
        asked(clause(WHO, "einladen", acc("the neighbors"), **PAST)),
    ),
    (
        "Who are you helping?",
        "Wem hilfst du?",
        asked(clause(YOU, "helfen", **ING), "who", wh("wem")),
    ),
    (
        "How much does the jacket cost?",
        "Wie viel kostet die Jacke?",
        asked(clause("the jacket", "kosten"), "how much", [*wh("wie"), *wh("viel")]),
    ),
    (
        "Which long letter is she writing?",
        "Welchen langen Brief schreibt sie?",
        asked(clause(SHE, "schreiben", **ING), "which long letter", np("which long letter").german("acc")),
    ),
    # two clauses
    (
        "She buys the coat because she needs it.",
        "Sie kauft den Mantel, weil sie ihn braucht.",
        joined(clause(SHE, "kaufen", acc("the coat")), BECAUSE, clause(SHE, "brauchen", acc(IT["m"]))),
    ),
    (
        "Because the friend is ill, he does not dance.",
        "Weil der Freund krank ist, tanzt er nicht.",
        joined(clause(HE, "tanzen", no=True), BECAUSE, clause("the friend", "sein", literal("ill", "krank")), True),
    ),
    (
        "The man works, although he has no time.",
        "Der Mann arbeitet, obwohl er keine Zeit hat.",
        joined(clause("the man", "arbeiten"), ALTHOUGH, clause(HE, "haben", acc("no time")._replace(filler=""))),
    ),
    (
        "If it rains, we will stay at home.",
        "Wenn es regnet, werden wir zu Hause bleiben.",
        joined(clause(WE, "bleiben", at("- home"), tense="will"), IF, clause(IT["n"], "regnen"), True),
    ),
    (
        "I hope that the bus has not left.",
        "Ich hoffe, dass der Bus nicht abgefahren ist.",
        reported(clause(I, "hoffen"), "that", "dass", clause("the bus", "abfahren", tense="perfect", no=True)),
    ),
    (
        "He does not know whether the film begins at 20:15.",
        "Er weiß nicht, ob der Film um 20:15 Uhr anfängt.",
        reported(
            clause(HE, "wissen", no=True),
            "whether",
            "ob",
            clause("the film", "anfangen", time=("at 20:15", "um 20:15 Uhr")),
        ),
    ),
    (
        "We do not know why the girls have to tidy up the room.",
        "Wir wissen nicht, warum die Mädchen das Zimmer aufräumen müssen.",
        reported(
            clause(WE, "wissen", no=True),
            "why",
            "warum",
            clause("the girls", "aufräumen", acc("the room"), tense="have to"),
        ),
    ),
]


@pytest.mark.parametrize(("en", "de", "said"), PAIRS, ids=[pair[0] for pair in PAIRS])
def test_pair(en, de, said):
    assert [text[0].upper() + text[1:] for text in said] == [en, de]
