"""The phrasebook's sentences by rule: endings, case, agreement, word order, in German and in English.

The rules here are written out anew (full tables, lists of genders and of verbs with their cases), so that a slip in the
generator's tables does not pass unseen. Sentences written by hand are in test_phrasebook_pairs.py.
"""

import collections
import itertools
import re

import pytest

from t2t_lite.problems.phrasebook_lexicon import NOUNS, VERBS
from t2t_lite.problems.phrasebook_words import english_s
from tests.problems.phrasebook_analysis import all_clauses, clauses, finite, held_out, lexical_verb, noun_phrases, train


def words(text):
    return text.split()


GENDERS = {
    "m": "Mann Junge Lehrer Arzt Student Nachbar Freund Kollege Kunde Tourist Gast Kellner Vater Bruder Sohn Onkel "
    "Großvater Hund Vogel Apfel Kuchen Salat Käse Reis Fisch Saft Wein Kaffee Tee Brief Roman Bericht Mantel Rock "
    "Pullover Hut Lastwagen Bus Zug Koffer Regenschirm Ball Schlüssel Computer Tisch Stuhl Schrank Park Garten Bahnhof "
    "Supermarkt Markt Flughafen Satz Film Kurs",
    "f": "Frau Mutter Schwester Tochter Tante Großmutter Katze Orange Tomate Kartoffel Banane Suppe Schokolade Milch "
    "Zeitung Zeitschrift E-Mail Geschichte Nachricht Jacke Tasche Flasche Tasse Fahrkarte Blume Kamera Lampe Uhr Tür "
    "Küche Wohnung Stadt Schule Kirche Bibliothek Brücke Bäckerei Universität Fabrik Frage Antwort Besprechung Party "
    "Zeit Sonne",
    "n": "Mädchen Kind Pferd Ei Brötchen Brot Fleisch Wasser Bier Buch Hemd Kleid Auto Fahrrad Motorrad Boot Schiff "
    "Flugzeug Bild Foto Geschenk Messer Telefon Radio Bett Fenster Zimmer Badezimmer Büro Haus Dorf Museum Restaurant "
    "Krankenhaus Kino Hotel Café Theater Wort Problem Konzert Spiel Lied Geld Wetter "
    "Berlin München Hamburg Wien Köln Zürich London Paris Hause",
    "p": "Eltern Schuhe",
}
GENDER = {noun: gender for gender, row in GENDERS.items() for noun in row.split()}
WEAK_NOUNS = {"Junge": "Jungen", "Kollege": "Kollegen", "Kunde": "Kunden", "Nachbar": "Nachbarn"}
WEAK_NOUNS |= {"Student": "Studenten", "Tourist": "Touristen"}

# Plurals that the rules of test_plurals_are_formed_by_rule_or_listed do not give.
LISTED = """
    Mann/Männer Kind/Kinder Arzt/Ärzte Gast/Gäste Sohn/Söhne Bruder/Brüder Mutter/Mütter Tochter/Töchter
    Vogel/Vögel Apfel/Äpfel Ei/Eier Buch/Bücher Kleid/Kleider Hemd/Hemden Mantel/Mäntel Rock/Röcke Hut/Hüte
    Spiel/Spiele Fahrrad/Fahrräder Motorrad/Motorräder Bus/Busse Zug/Züge Ball/Bälle Bild/Bilder Stuhl/Stühle
    Bett/Betten Schrank/Schränke Haus/Häuser Stadt/Städte Dorf/Dörfer Garten/Gärten Bahnhof/Bahnhöfe
    Museum/Museen Supermarkt/Supermärkte Krankenhaus/Krankenhäuser Markt/Märkte Flughafen/Flughäfen Wort/Wörter
    Satz/Sätze Lied/Lieder
"""
PLURALS = dict(pair.split("/") for pair in words(LISTED))
PLURALS |= {
    noun: noun + "s" for noun in words("E-Mail Auto Foto Kamera Radio Park Restaurant Büro Kino Hotel Café Party")
}

# Third person and participle of the verbs that are not weak; "fangen … an" stands under anfangen.
PRINCIPAL_PARTS = words("""
    finden findet gefunden  sehen sieht gesehen  lesen liest gelesen  schreiben schreibt geschrieben
    essen isst gegessen  trinken trinkt getrunken  tragen trägt getragen  waschen wäscht gewaschen
    treffen trifft getroffen  verstehen versteht verstanden  vergessen vergisst vergessen  haben hat gehabt
    verlieren verliert verloren  singen singt gesungen  anrufen ruft angerufen  einladen lädt eingeladen
    mitbringen bringt mitgebracht  mitnehmen nimmt mitgenommen  anziehen zieht angezogen  kennen kennt gekannt
    mögen mag gemocht  helfen hilft geholfen  geben gibt gegeben  leihen leiht geliehen  bringen bringt gebracht
    empfehlen empfiehlt empfohlen  beschreiben beschreibt beschrieben  schlafen schläft geschlafen
    sitzen sitzt gesessen  bleiben bleibt geblieben  ankommen kommt angekommen  aufstehen steht aufgestanden
    zurückkommen kommt zurückgekommen  gehen geht gegangen  fahren fährt gefahren  fliegen fliegt geflogen
    laufen läuft gelaufen  kommen kommt gekommen  abfahren fährt abgefahren  anfangen fängt angefangen
    sein ist gewesen  liegen liegt gelegen  wissen weiß gewusst  scheinen scheint geschienen
""")
STRONG_VERBS = dict(
    zip(PRINCIPAL_PARTS[::3], zip(PRINCIPAL_PARTS[1::3], PRINCIPAL_PARTS[2::3], strict=True), strict=True)
)

# What stands before an adjective, and the adjective's ending, in full: nominative, accusative, dative, genitive.
CASES = ("nom", "acc", "dat", "gen")
DETERMINERS = {
    "der": {"m": "der den dem des", "f": "die die der der", "n": "das das dem des", "p": "die die den der"},
    "dieser": {"m": "er en em es", "f": "e e er er", "n": "es es em es", "p": "e e en er"},
    "ein": {"m": "- en em es", "f": "e e er er", "n": "- - em es", "p": "e e en er"},
}
ADJECTIVES = {
    "der": {"m": "e en en en", "f": "e e en en", "n": "e e en en", "p": "en en en en"},
    "ein": {"m": "er en en en", "f": "e e en en", "n": "es es en en", "p": "en en en en"},
    "": {"m": "er en em en", "f": "e e er er", "n": "es es em en", "p": "e e en er"},
}
STEMS = {"dieser": ("dies", "jed", "welch"), "ein": ("ein", "kein", "mein", "dein", "sein", "ihr", "unser")}
ADJECTIVE_STEMS = words(
    "groß klein alt jung neu rot blau grün schwarz weiß schön teur billig gut frisch kalt heiß interessant langweilig "
    "lang kurz freundlich berühmt nett schwer leicht ruhig modern schwierig einfach wichtig schnell langsam sauber "
    "schmutzig leer dunkl"
)
CONTRACTIONS = {"im": "dem", "am": "dem", "zum": "dem", "zur": "der", "ins": "das"}

DATIVE_VERBS = set(words("helfen danken antworten folgen gratulieren zuhören gehören"))
TWO_OBJECTS = set(words("geben zeigen schicken leihen bringen erklären empfehlen beschreiben"))
NO_OBJECT = set(
    words(
        "arbeiten schlafen warten spielen tanzen sitzen bleiben einkaufen frühstücken ankommen aufstehen zurückkommen "
        "gehen fahren fliegen reisen laufen kommen abfahren anfangen enden sein kosten wohnen liegen regnen schneien "
        "scheinen glauben hoffen sagen wissen"
    )
)
DIRECTED = set(words("gehen fahren fliegen reisen laufen kommen legen"))  # to a place: in and auf with the accusative
WITH_SEIN = set(
    words("folgen bleiben ankommen aufstehen zurückkommen gehen fahren fliegen reisen laufen kommen abfahren")
)
MODAL_VERBS = set(words("können müssen wollen dürfen sollen mögen werden"))


@pytest.fixture(scope="module")
def sentences():
    return train() + held_out("eval") + held_out("test")


# German.


def test_nouns_have_their_gender_and_weak_nouns_their_ending(sentences):
    for noun in NOUNS.values():
        assert GENDER[noun.de or noun.de_plural] == noun.gender, noun
    for phrase, gender, case, _ in itertools.chain.from_iterable(map(noun_phrases, all_clauses(sentences))):
        noun = phrase[-1].text
        if gender != "p":
            singular = next((weak for weak, form in WEAK_NOUNS.items() if form == noun and case != "nom"), noun)
            if case == "gen" and gender in "mn" and noun not in WEAK_NOUNS.values():
                assert noun.endswith("s"), phrase
                singular = noun.removesuffix("s") if noun.removesuffix("s") in GENDER else noun.removesuffix("es")
            assert GENDER[singular] == gender, phrase
            assert case == "nom" or singular not in WEAK_NOUNS or noun == WEAK_NOUNS[singular], phrase
        elif case == "dat":
            assert noun.endswith(("n", "s")), phrase


def test_plurals_are_formed_by_rule_or_listed():
    for noun in NOUNS.values():
        if not (noun.de and noun.de_plural):
            continue
        if noun.de in PLURALS:
            rule = PLURALS[noun.de]
        elif noun.de in WEAK_NOUNS:
            rule = WEAK_NOUNS[noun.de]
        elif noun.gender == "f":
            rule = noun.de + ("n" if re.search("(e|el|er)$", noun.de) else "en")
        else:
            rule = noun.de + ("" if re.search("(er|el|en|chen)$", noun.de) else "e")
        assert noun.de_plural == rule


def test_verbs_are_strong_as_listed_or_weak_by_rule():
    for verb in (verb for group in VERBS.values() for verb in group):
        third, participle = STRONG_VERBS.get(verb.de, (None, None))
        if third is None:
            stem = verb.de.removeprefix(verb.prefix).removesuffix("n").removesuffix("e")
            third = stem + ("et" if re.search("([td]|gn)$", stem) else "t")
            has_ge = not re.match("(be|ver|er|ge)", verb.de) and not stem.endswith("ier")
            has_ge = has_ge and verb.de != "vorbereiten"
            participle = verb.prefix + "ge" * has_ge + third
        assert (verb.third, verb.participle) == (third, participle)
        assert verb.auxiliary == ("ist" if verb.de in WITH_SEIN | {"sein"} else "hat")


def test_determiners_and_adjectives_have_the_endings_of_the_tables(sentences):
    seen = collections.Counter()
    for phrase, gender, case, _ in itertools.chain.from_iterable(map(noun_phrases, all_clauses(sentences))):
        index = CASES.index(case)
        before = [word.text for word in phrase if word.tag.startswith(("det", "prep+det"))]
        word = CONTRACTIONS.get(before[0], before[0]) if before else ""
        kind = ""
        if word and word not in ("zwei", "drei", "fünf", "viele"):
            article = DETERMINERS["der"][gender].split()[index]
            stem, kind = next(
                ((stem, kind) for kind, stems in STEMS.items() for stem in stems if word.startswith(stem)),
                (word, "der"),
            )
            ending = "" if kind == "der" else DETERMINERS[kind][gender].split()[index].strip("-")
            assert word == (article if kind == "der" else stem + ending), phrase
        declension = {"dieser": "der"}.get(kind, kind)
        for adjective in [word.text for word in phrase if word.tag.startswith("adj")]:
            ending = ADJECTIVES[declension][gender].split()[index]
            assert adjective.removesuffix(ending) in ADJECTIVE_STEMS, (phrase, ending)
            seen[declension, gender, case] += 1
    tested = {(kind, gender, case) for kind, gender, case in seen if case != "gen"}
    assert tested >= set(itertools.product(("der", "ein"), "mfnp", ("nom", "acc", "dat")))
    assert tested >= {("", gender, "acc") for gender in "mfnp"} | {("", "p", "nom"), ("", "p", "dat")}


def test_verbs_govern_their_cases(sentences):
    for clause in all_clauses(sentences):
        verb = lexical_verb(clause)
        counts = collections.Counter(case for _, _, case, preposition in noun_phrases(clause) if not preposition)
        counts.update(word.tag.split()[2] for word in clause if word.tag.startswith("pron"))
        assert counts["nom"] == 1, clause
        dative, accusative = counts["dat"], counts["acc"]
        if verb in DATIVE_VERBS:
            assert (dative, accusative) == (1, 0), clause
        elif verb in TWO_OBJECTS and accusative and dative:
            assert (dative, accusative) == (1, 1), clause
        else:
            assert dative == 0 or verb in TWO_OBJECTS, clause
            assert accusative == (0 if verb in NO_OBJECT else 1) or verb == "lernen", clause


def test_prepositions_govern_their_cases(sentences):
    seen = set()
    for clause in all_clauses(sentences):
        verb = lexical_verb(clause)
        for phrase, gender, case, preposition in noun_phrases(clause):
            if preposition in ("mit", "zu", "zum", "zur", "nach", "an", "am", "im"):
                assert case == "dat", clause
            elif preposition == "ins":
                assert (gender, case) == ("n", "acc"), clause
            elif preposition:
                assert preposition in ("in", "auf", "unter"), clause
                to_place = verb in DIRECTED and "mit" not in phrase[0].text
                assert case == ("acc" if to_place else "dat"), clause
            seen.add(preposition)
    assert seen >= {None, "mit", "zu", "zum", "zur", "nach", "an", "am", "im", "ins", "in", "auf", "unter"}


def test_prepositions_contract_with_the_article(sentences):
    for sentence in sentences:
        assert not re.search(r"\b(in dem|in das|an dem|an das|zu dem|zu der)\b", sentence.targets), sentence.targets


def test_the_finite_verb_stands_second_first_or_last(sentences):
    for sentence in sentences:
        parts = clauses(sentence)
        for number, clause in enumerate(parts):
            index, _, _ = finite(clause)
            is_subordinate = clause[0].tag == "conj" or (sentence.frame == "report" and number == 1)
            ends = [word for word in clause if word.tag.split()[0] in ("inf", "part", "prefix")]
            if is_subordinate:
                assert index == len(clause) - 1, sentence.targets
                assert ends in ([], clause[-2:-1]), sentence.targets
                continue
            assert ends in ([], clause[-1:]), sentence.targets
            field = clause[:index]
            is_yes_no = sentence.targets.endswith("?") and not any(
                word.tag == "wh" or word.text.lower().startswith(("we", "wa", "welch")) for word in field
            )
            if is_yes_no or number == 1:
                assert not field, sentence.targets
            else:
                assert field, sentence.targets
                is_time = all(word.tag in ("adv", "wh") for word in field)
                is_one_phrase = sum(word.tag.split()[0] in ("noun", "pron") for word in field) == 1 + sum(
                    word.tag.endswith("gen") and word.tag.startswith("noun") for word in field
                )
                assert is_time != is_one_phrase, sentence.targets


def test_behind_a_fronted_time_the_subject_follows_the_verb(sentences):
    fronted = [clauses(sentence)[0] for sentence in sentences if sentence.words[0].tag == "adv"]
    assert len(fronted) > 100
    for clause in fronted:
        index, _, _ = finite(clause)
        assert clause[index + 1].tag.endswith("nom"), clause


def test_verbs_agree_with_their_subjects(sentences):
    for clause in all_clauses(sentences):
        index, person, infinitive = finite(clause)
        subject = next(word for word in clause if word.tag.split()[0] in ("noun", "pron") and word.tag.endswith("nom"))
        kind, feature, _ = subject.tag.split()
        expected = int(feature) if kind == "pron" else 3 if feature == "p" else 2
        form = clause[index].text
        assert person == expected, clause
        if form in ("bin", "bist", "ist", "sind"):
            assert form == ("bin", "bist", "ist", "sind")[person], clause
        elif infinitive in MODAL_VERBS | {"wissen"} and person in (0, 2):
            assert form in (*words("kann muss will darf sollte möchte mag weiß"), "werde" if person == 0 else "wird")
        else:
            assert re.search(("e$", "[szß]t$|st$", "(t|hat)$", "n$")[person], form), clause


def test_the_perfect_has_haben_or_sein(sentences):
    perfect = [clause for clause in all_clauses(sentences) if any(word.tag.startswith("part") for word in clause)]
    assert len(perfect) > 500
    for clause in perfect:
        assert finite(clause)[2] == ("sein" if lexical_verb(clause) in WITH_SEIN else "haben"), clause
        participle = next(word.text for word in clause if word.tag.startswith("part"))
        verb = lexical_verb(clause)
        has_no_ge = verb.endswith(("reparieren", "probieren", "fotografieren", "gratulieren")) or verb == "vorbereiten"
        if has_no_ge or re.match("(be|ver|er|emp)", verb):
            assert "ge" not in participle.removeprefix("verge"), participle
        else:
            assert "ge" in participle, participle


def test_separable_verbs_separate_in_main_clauses_only(sentences):
    prefixes = {verb.de: verb.prefix for group in VERBS.values() for verb in group if verb.prefix}
    assert set(prefixes.values()) >= {"an", "ab", "ein", "mit", "auf", "zu", "aus", "vor", "zurück"}
    seen = set()
    for clause in all_clauses(sentences):
        index, _, infinitive = finite(clause)
        if infinitive in prefixes:
            is_last = index == len(clause) - 1 and clause[-1].tag != "prefix"
            seen.add(is_last)
            if is_last:
                assert clause[index].text.startswith(prefixes[infinitive]), clause
            else:
                assert clause[-1].text == prefixes[infinitive], clause
    assert seen == {True, False}


def test_negation_is_nicht_or_kein_in_its_place(sentences):
    kinds = collections.Counter()
    for sentence in sentences:
        english = len(re.findall(r"\b(not|cannot|no)\b", sentence.inputs))
        nicht = sum(word.tag == "neg" for word in sentence.words)
        kein = sum(word.text.startswith("kein") for word in sentence.words)
        assert english == nicht + kein, sentence
        kinds.update(nicht=nicht, kein=kein)
        if re.search(r"(not|cannot) (\w+ ){1,4}(an?|any) ", sentence.inputs) and " not " not in sentence.targets:
            assert kein or "no" in sentence.inputs.split() or len(clauses(sentence)) > 1, sentence
        for clause in clauses(sentence):
            tags = [word.tag for word in clause]
            if "neg" in tags:  # behind it: prepositional phrases, predicates, the verbs
                rest = clause[tags.index("neg") + 1 :]
                objects = [phrase for phrase, _, _, preposition in noun_phrases(rest) if not preposition]
                assert not objects or finite(rest), sentence
                assert not any(word.tag.startswith("pron") for word in rest), sentence
        assert not re.search(r"nicht ein(e[nmrs]?)? ", sentence.targets), sentence.targets
    assert kinds["nicht"] > 100 < kinds["kein"]


def test_words_stand_in_plain_sentences(sentences):
    for sentence in sentences:
        for text in (sentence.inputs, sentence.targets):
            assert re.fullmatch(r"[^\W\d_].*[^ ][.?]", text) and "  " not in text and text[0].isupper(), text
        assert len(clauses(sentence)) == 1 + sentence.targets.count(", ")
        assert sorted(re.findall(r"\d+", sentence.inputs)) == sorted(re.findall(r"\d+", sentence.targets))
        assert re.findall(r"\d+:\d\d", sentence.inputs) == re.findall(r"(\d+:\d\d) Uhr", sentence.targets)
        assert len(re.findall(r"\d euros", sentence.inputs)) == len(re.findall(r"\d Euro\b", sentence.targets))


# English.


def test_english_articles_fit_the_next_word(sentences):
    for sentence in sentences:
        assert not re.search(r"\ba ([aeio]|umbrella|uncle)|\ban [^aeiou]", sentence.inputs), sentence.inputs


def test_english_verbs_agree_with_their_subjects(sentences):
    verbs = [verb for group in VERBS.values() for verb in group]
    third = {english_s(verb.en) for verb in verbs} | {"has", "is", "does"}
    other = {verb.en for verb in verbs} - {"put", "read", "cost"} | {"are", "do"}  # those are also past forms
    singular = {noun.en for noun in NOUNS.values() if noun.de} | {"he", "she", "it"}
    plural = {noun.en_plural for noun in NOUNS.values()} | {"i", "you", "we", "they"}
    start = r"(?:^|that |because |although |if |whether |, )(?:(?:the|this|these|my|your|his|her|our|their) )?"
    adverb = "(?:(?:often|always|never|sometimes) )?"
    seen = collections.Counter()
    for sentence in sentences:
        text = sentence.inputs.lower()
        for subject, verb in re.findall(rf"{start}(\w+) {adverb}(\w+)", text):
            seen[subject in singular, subject in plural] += verb in third | other
            assert subject not in singular or verb not in other, text
            assert subject not in plural or verb not in third, text
        for operator, subject, verb in re.findall(r"\b(does|do|has|have|is|are) (i|you|he|she|we|they) (\w+)", text):
            assert (operator in ("does", "has", "is")) == (subject in ("he", "she")), text
            assert verb not in third, text
        assert not re.search(rf"\b(do|does|did|can|will|should|to|cannot|not) ({'|'.join(third)})\b", text), text
    assert seen[True, False] > 500 < seen[False, True]
