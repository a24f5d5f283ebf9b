"""Words of the English-German phrasebook and their inflected forms; `phrasebook.py` puts them into sentences.

The tables read like a school-book's: nouns with article and plural, verbs with their principal parts. An English
word (for verbs: with the kind of its object) has exactly one German word, so that an English sentence has one
translation. A word in a table's last column stands for itself, a kind for all of its nouns.
"""

import re
from typing import NamedTuple

from t2t_lite.problems.phrasebook_words import Adjective, Noun, Verb, english_ed, english_s

# kind: English[/irregular plural] = article German/plural. "-" means that a number is not used; a masculine noun
# marked * takes its plural form in every case but the nominative (der Student, den Studenten).
_NOUNS = """
youth: boy = der Junge*/Jungen; girl = das Mädchen/Mädchen; child/children = das Kind/Kinder
person: man/men = der Mann/Männer; woman/women = die Frau/Frauen; teacher = der Lehrer/Lehrer
person: doctor = der Arzt/Ärzte; student = der Student*/Studenten; neighbor = der Nachbar*/Nachbarn
person: friend = der Freund/Freunde; colleague = der Kollege*/Kollegen; customer = der Kunde*/Kunden
person: tourist = der Tourist*/Touristen; guest = der Gast/Gäste; waiter = der Kellner/Kellner
kin: mother/- = die Mutter/-; father/- = der Vater/-; parents/parents = -/Eltern; brother = der Bruder/Brüder
kin: sister = die Schwester/Schwestern; son = der Sohn/Söhne; daughter = die Tochter/Töchter
kin: uncle = der Onkel/Onkel; aunt = die Tante/Tanten; grandmother/- = die Großmutter/-
kin: grandfather/- = der Großvater/-
animal: dog = der Hund/Hunde; cat = die Katze/Katzen; horse = das Pferd/Pferde; bird = der Vogel/Vögel
food: apple = der Apfel/Äpfel; egg = das Ei/Eier; orange = die Orange/Orangen; tomato/tomatoes = die Tomate/Tomaten
food: potato/potatoes = die Kartoffel/Kartoffeln; banana = die Banane/Bananen; roll = das Brötchen/Brötchen
dish: cake = der Kuchen/Kuchen; soup = die Suppe/Suppen; salad = der Salat/Salate
staple: bread/- = das Brot/-; cheese/- = der Käse/-; rice/- = der Reis/-; fish/- = der Fisch/-
staple: meat/- = das Fleisch/-; chocolate/- = die Schokolade/-
drink: water/- = das Wasser/-; milk/- = die Milch/-; juice/- = der Saft/-; beer/- = das Bier/-; wine/- = der Wein/-
brew: coffee/- = der Kaffee/-; tea/- = der Tee/-
print: book = das Buch/Bücher; newspaper = die Zeitung/Zeitungen; letter = der Brief/Briefe
print: magazine = die Zeitschrift/Zeitschriften; novel = der Roman/Romane; report = der Bericht/Berichte
writing: email = die E-Mail/E-Mails; story = die Geschichte/Geschichten; message = die Nachricht/Nachrichten
clothes: jacket = die Jacke/Jacken; shirt = das Hemd/Hemden; dress = das Kleid/Kleider; coat = der Mantel/Mäntel
clothes: skirt = der Rock/Röcke; sweater = der Pullover/Pullover; shoes/shoes = -/Schuhe; hat = der Hut/Hüte
vehicle: car = das Auto/Autos; bicycle = das Fahrrad/Fahrräder; motorcycle = das Motorrad/Motorräder
vehicle: boat = das Boot/Boote; truck = der Lastwagen/Lastwagen
transport: bus = der Bus/Busse; train = der Zug/Züge; ship = das Schiff/Schiffe; plane = das Flugzeug/Flugzeuge
thing: bag = die Tasche/Taschen; suitcase = der Koffer/Koffer; umbrella = der Regenschirm/Regenschirme
thing: bottle = die Flasche/Flaschen; cup = die Tasse/Tassen; ball = der Ball/Bälle
item: key = der Schlüssel/Schlüssel; ticket = die Fahrkarte/Fahrkarten; picture = das Bild/Bilder
item: photo = das Foto/Fotos; present = das Geschenk/Geschenke; flower = die Blume/Blumen
item: knife/knives = das Messer/Messer
device: computer = der Computer/Computer; phone = das Telefon/Telefone; camera = die Kamera/Kameras
device: lamp = die Lampe/Lampen; clock = die Uhr/Uhren; radio = das Radio/Radios
furniture: table = der Tisch/Tische; chair = der Stuhl/Stühle; bed = das Bett/Betten
furniture: cupboard = der Schrank/Schränke
opening: door = die Tür/Türen; window = das Fenster/Fenster
interior: room = das Zimmer/Zimmer; kitchen = die Küche/Küchen; bathroom = das Badezimmer/Badezimmer
interior: office = das Büro/Büros; apartment = die Wohnung/Wohnungen; house = das Haus/Häuser
settlement: city = die Stadt/Städte; village = das Dorf/Dörfer
place: park = der Park/Parks; garden = der Garten/Gärten
place: school = die Schule/Schulen; train station = der Bahnhof/Bahnhöfe; museum = das Museum/Museen
place: restaurant = das Restaurant/Restaurants; supermarket = der Supermarkt/Supermärkte
place: church = die Kirche/Kirchen; library = die Bibliothek/Bibliotheken; bridge = die Brücke/Brücken
place: hospital = das Krankenhaus/Krankenhäuser; cinema = das Kino/Kinos; hotel = das Hotel/Hotels
place: market = der Markt/Märkte; airport = der Flughafen/Flughäfen; café = das Café/Cafés
place: theater = das Theater/Theater; bakery = die Bäckerei/Bäckereien; university = die Universität/Universitäten
place: factory = die Fabrik/Fabriken
task: question = die Frage/Fragen; word = das Wort/Wörter; sentence = der Satz/Sätze; problem = das Problem/Probleme
task: answer = die Antwort/Antworten
event: film = der Film/Filme; concert = das Konzert/Konzerte; course = der Kurs/Kurse; game = das Spiel/Spiele
event: meeting = die Besprechung/Besprechungen; party = die Party/Partys
other: song = das Lied/Lieder; time/- = die Zeit/-; money/- = das Geld/-; weather/- = das Wetter/-; sun/- = die Sonne/-
home: home/- = das Hause/-
town: Berlin/- = das Berlin/-; Munich/- = das München/-; Hamburg/- = das Hamburg/-; Vienna/- = das Wien/-
town: Cologne/- = das Köln/-; Zurich/- = das Zürich/-; London/- = das London/-; Paris/- = das Paris/-
"""

# names for several of them
_GROUPS = {
    "people": ["person", "youth", "kin"],
    "text": ["print", "writing"],
    "eatable": ["food", "dish", "staple"],
    "drinkable": ["drink", "brew"],
    "shop": ["supermarket", "market", "bakery"],
    "eatery": ["restaurant", "café", "hotel"],
    "transit": ["train station", "airport"],
    "leisure": ["cinema", "theater", "museum", "park", "church", "market"],
}

# English [past participle] | German infinitive, third person singular, perfect | objects or subjects | places.
# look+for: the second word stays behind the verb; pick_up: it goes behind a pronoun. *: not used in the progressive.
_VERBS = {
    # with an object in the accusative
    "transitive": """
buy bought bought | kaufen kauft hat gekauft | eatable drinkable print clothes vehicle thing device | city market town
sell sold sold | verkaufen verkauft hat verkauft | clothes vehicle device furniture animal house ticket | market city
look+for | suchen sucht hat gesucht | kin child dog cat thing clothes device book key ticket | interior garden hotel
*find found found | finden findet hat gefunden | thing clothes animal book letter key knife photo | room garden park
*see saw seen | sehen sieht hat gesehen | person youth animal vehicle transport | city park garden transit
*hear heard heard | hören hört hat gehört | song dog bird horse
read read read | lesen liest hat gelesen | text | library garden park café
write wrote written | schreiben schreibt hat geschrieben | letter email report story novel message book | office library
eat ate eaten | essen isst hat gegessen | eatable | eatery garden kitchen
drink drank drunk | trinken trinkt hat getrunken | drinkable | eatery garden kitchen
cook | kochen kocht hat gekocht | soup rice potato egg meat fish | kitchen
order | bestellen bestellt hat bestellt | dish staple drinkable | restaurant café hotel
pay+for paid paid | bezahlen bezahlt hat bezahlt | food dish drinkable clothes ticket
try | probieren probiert hat probiert | eatable drinkable | eatery market
wear wore worn | tragen trägt hat getragen | clothes
carry | tragen trägt hat getragen | bag suitcase present table chair bottle
wash | waschen wäscht hat gewaschen | shirt dress skirt sweater car dog apple tomato knife
clean | putzen putzt hat geputzt | opening interior shoes
repair | reparieren repariert hat repariert | vehicle transport device chair table door window
visit | besuchen besucht hat besucht | people city village museum church
photograph | fotografieren fotografiert hat fotografiert | animal city village church bridge house vehicle ship
meet met met | treffen trifft hat getroffen | people | eatery park city transit
ask | fragen fragt hat gefragt | people
answer | beantworten beantwortet hat beantwortet | question letter email message
*understand understood understood | verstehen versteht hat verstanden | task text
*forget forgot forgotten | vergessen vergisst hat vergessen | key ticket bag umbrella answer word | room hotel
*lose lost lost | verlieren verliert hat verloren | key ticket bag umbrella phone camera money game | city park transit
learn | lernen lernt hat gelernt | word sentence song | school
sing sang sung | singen singt hat gesungen | song | church garden school
paint | malen malt hat gemalt | picture flower bird bridge horse | garden park
build built built | bauen baut hat gebaut | house bridge school hotel boat ship table
rent | mieten mietet hat gemietet | apartment house room car boat bicycle
call | anrufen ruft an hat angerufen | people
pick_up | abholen holt ab hat abgeholt | people ticket suitcase | transit school
invite | einladen lädt ein hat eingeladen | people
bring_along brought brought | mitbringen bringt mit hat mitgebracht | dish wine present flower photo dog book
take_along took taken | mitnehmen nimmt mit hat mitgenommen | umbrella bag camera book key dog
open | aufmachen macht auf hat aufgemacht | opening bottle suitcase letter present
close | zumachen macht zu hat zugemacht | opening bag suitcase book cupboard
tidy_up | aufräumen räumt auf hat aufgeräumt | interior cupboard
put_on put put | anziehen zieht an hat angezogen | jacket shirt dress coat skirt sweater shoes
look+at | anschauen schaut an hat angeschaut | picture photo clothes church house vehicle
turn_on | einschalten schaltet ein hat eingeschaltet | lamp computer radio camera
turn_off | ausschalten schaltet aus hat ausgeschaltet | lamp computer radio camera
prepare | vorbereiten bereitet vor hat vorbereitet | meeting party course concert
""",
    # the same, but only in the present tense: a state has no progressive, and its perfect differs between the languages
    "state": """
*need | brauchen braucht hat gebraucht | thing device clothes vehicle furniture ticket key knife doctor
*have had had | haben hat hat gehabt | vehicle animal device question problem key
*know knew known | kennen kennt hat gekannt | person youth city village museum restaurant song story
*like | mögen mag hat gemocht | dish staple drinkable animal person youth city
*love | lieben liebt hat geliebt | kin animal
""",
    # with a person in the dative
    "dative": """
help | helfen hilft hat geholfen | people | kitchen garden
thank | danken dankt hat gedankt | people
answer | antworten antwortet hat geantwortet | people
follow | folgen folgt ist gefolgt | person youth
congratulate | gratulieren gratuliert hat gratuliert | people
listen+to | zuhören hört zu hat zugehört | people
""",
    # with a person in the dative and a thing in the accusative
    "ditransitive": """
give gave given | geben gibt hat gegeben | print key flower present umbrella ticket
show showed shown | zeigen zeigt hat gezeigt | picture photo letter city museum apartment house
send sent sent | schicken schickt hat geschickt | letter email present message picture photo flower
lend lent lent | leihen leiht hat geliehen | book vehicle camera umbrella money
bring brought brought | bringen bringt hat gebracht | dish drinkable letter newspaper chair
""",
    # the same; English: explain something to somebody
    "explaining": """
explain | erklären erklärt hat erklärt | task story
recommend | empfehlen empfiehlt hat empfohlen | restaurant hotel book novel museum wine
describe | beschreiben beschreibt hat beschrieben | city house problem picture
""",
    # without object, at a place
    "activity": """
work | arbeiten arbeitet hat gearbeitet | | office factory hospital school garden library hotel university town
sleep slept slept | schlafen schläft hat geschlafen | | room hotel apartment
wait | warten wartet hat gewartet | | transit office park café home
play | spielen spielt hat gespielt | | garden park room home
dance | tanzen tanzt hat getanzt | | park kitchen restaurant garden
sit sat sat | sitzen sitzt hat gesessen | | garden park café kitchen library
stay | bleiben bleibt ist geblieben | | hotel village city hospital home
study | lernen lernt hat gelernt | | library school university home
shop | einkaufen kauft ein hat eingekauft | | supermarket market city town
have+breakfast had had | frühstücken frühstückt hat gefrühstückt | | kitchen hotel café garden
arrive | ankommen kommt an ist angekommen | | transit village town
*get+up got gotten | aufstehen steht auf ist aufgestanden
come+back came come | zurückkommen kommt zurück ist zurückgekommen
""",
    # without object, to a place
    "motion": """
go went gone | gehen geht ist gegangen | | shop eatery leisure school office garden library home
drive drove driven | fahren fährt ist gefahren | | city village transit supermarket office factory hospital town home
fly flew flown | fliegen fliegt ist geflogen | | town
travel | reisen reist ist gereist | | town
run ran run | laufen läuft ist gelaufen | | park school garden
come came come | kommen kommt ist gekommen | | office museum garden cinema restaurant library
""",
    # what a timetable says: present tense for the future in both languages
    "schedule": """
*leave left left | abfahren fährt ab ist abgefahren | train bus ship
*arrive | ankommen kommt an ist angekommen | transport | town
*begin began begun | anfangen fängt an hat angefangen | event
*end | enden endet hat geendet | event
""",
    "other": """
*be was been | sein ist ist gewesen
*have had had | haben hat hat gehabt
*cost cost cost | kosten kostet hat gekostet | food dish clothes vehicle device furniture book newspaper ticket
*live | wohnen wohnt hat gewohnt | | city village house apartment town
*belong+to | gehören gehört hat gehört | vehicle thing device book house dog
put put put | legen legt hat gelegt | print key ticket photo bag umbrella jacket shirt
*lie lay lain | liegen liegt hat gelegen | print key ticket photo bag umbrella jacket shirt
*know knew known | wissen weiß hat gewusst
*think thought thought | glauben glaubt hat geglaubt
*hope | hoffen hofft hat gehofft
*say said said | sagen sagt hat gesagt
*rain | regnen regnet hat geregnet
*snow | schneien schneit hat geschneit
*shine shone shone | scheinen scheint hat geschienen
""",
}

# place = prepositions "at" (English, German with dative) and "to" (German), for every noun of places above
_PLACES = """
in in in: city village park garden museum restaurant church library hospital cinema café theater
in in in: factory room kitchen bathroom office apartment
in in zu: supermarket bakery hotel house
at in zu: school
at an zu: train station, airport, university
at auf auf: market
on auf zu: bridge
in in nach: town
at zu nach: home
"""
# English = German [stem of the inflected forms] | what it is said of
_ADJECTIVES = """
big = groß | animal vehicle transport furniture thing opening interior place settlement food
small = klein | boy girl child animal vehicle furniture thing opening interior place settlement food device
old = alt | person uncle aunt grandfather animal vehicle transport furniture opening interior place settlement clothes
young = jung | person uncle aunt brother sister animal
new = neu | vehicle transport device clothes furniture thing text place interior key camera
red = rot | clothes vehicle thing furniture flower lamp opening
blue = blau | clothes vehicle thing lamp opening
green = grün | clothes vehicle thing furniture opening
black = schwarz | clothes vehicle thing device cat dog horse
white = weiß | clothes vehicle furniture opening flower cat horse ship
beautiful = schön | clothes place settlement interior picture photo flower song present
expensive = teuer teur | clothes vehicle device furniture hotel restaurant apartment present
cheap = billig | clothes vehicle device furniture hotel restaurant ticket
good = gut | text dish staple drinkable restaurant hotel question answer film picture
fresh = frisch | food staple milk juice
cold = kalt | drinkable soup
hot = heiß | brew soup
interesting = interessant | text task event museum city
boring = langweilig | text event
long = lang | text sentence word coat skirt film
short = kurz | text sentence word coat skirt film
friendly = freundlich | man woman teacher doctor student neighbor colleague customer guest waiter youth kin
famous = berühmt | doctor guest uncle aunt museum church bridge picture song novel city
nice = nett | people
heavy = schwer | bag suitcase furniture
light = leicht | bag suitcase
quiet = ruhig | place settlement interior
modern = modern | device furniture office apartment museum bridge
difficult = schwierig | task
easy = einfach | task
important = wichtig | text task meeting
fast = schnell | vehicle transport horse
slow = langsam | vehicle transport computer
clean = sauber | clothes interior cup knife
dirty = schmutzig | clothes interior vehicle cup knife shoes
empty = leer | bottle bag suitcase cup interior
dark = dunkel dunkl | interior
"""

# (English, German) adjectives that are only said of a person's present state
FEELINGS = [("tired", "müde"), ("ill", "krank"), ("hungry", "hungrig"), ("thirsty", "durstig"), ("happy", "glücklich")]

# English = German | kinds of time, in which `phrasebook` chooses a tense and an aspect
_TIMES = """
now = jetzt | now
today = heute | now day
this evening = heute Abend | now
tomorrow = morgen | future day
tomorrow morning = morgen früh | future
next week = nächste Woche | future
on Monday = am Montag | future past day
on Wednesday = am Mittwoch | future past day
on Friday = am Freitag | future past day
on Saturday = am Samstag | future past day
on Sunday = am Sonntag | future past day
yesterday = gestern | past day
yesterday evening = gestern Abend | past
last week = letzte Woche | past
last year = letztes Jahr | past
every day = jeden Tag | habit day
every morning = jeden Morgen | habit
in the evening = am Abend | habit
in summer = im Sommer | habit
"""


# place = prepositions "at" (English, German with the dative) and "to" (German; in and auf with the accusative)
_PLACES = """
in in in: city village park garden museum restaurant church library hospital cinema café theater factory interior
in in zu: supermarket bakery hotel house
at in zu: school
at an zu: transit university
at auf auf: market
on auf zu: bridge
in in nach: town
at zu nach: home
"""


class Time(NamedTuple):
    """A time; `kinds`: now, future, past or habit, and day where a clock time may follow."""

    en: str
    de: str
    kinds: tuple


def _read_nouns():
    for row in _NOUNS.strip().splitlines():
        kind, entries = row.split(": ")
        for entry in entries.split("; "):
            english, german = entry.split(" = ")
            en, _, en_plural = english.partition("/")
            singular, de_plural = german.split("/")
            article, _, de = singular.rpartition(" ")
            gender = {"der": "m", "die": "f", "das": "n", "": "p"}[article]
            en_plural = "" if en_plural == "-" else en_plural or english_s(en)
            yield Noun(kind, en, en_plural, gender, de.strip("*-"), de_plural.strip("-"), de.endswith("*"))


NOUNS = {noun.en: noun for noun in _read_nouns()}


def nouns(names):
    """Returns the nouns of a string of nouns, kinds of nouns and groups."""
    members = [member for name in names.split() for member in _GROUPS.get(name, [name])]
    return tuple(noun for noun in NOUNS.values() if noun.en in members or noun.kind in members)


def _read_verbs(group, table):
    for row in table.strip().splitlines():
        english, german, *columns = (column.strip() for column in row.split("|"))
        word, *irregular = english.split()
        en, particle = re.fullmatch(r"\*?(\w+?)(?:[+_](\w+))?", word).groups()
        past, participle = irregular or [english_ed(en)] * 2
        de, third, *prefix, auxiliary, de_participle = german.split()
        yield Verb(
            group, en, past, participle, particle or "", "_" in word, not word.startswith("*"),
            de, third, "".join(prefix), auxiliary, de_participle, *map(nouns, [*columns, "", ""][:2]),
        )  # fmt: skip


VERBS = {group: tuple(_read_verbs(group, table)) for group, table in _VERBS.items()}


def _read_adjectives():
    for row in _ADJECTIVES.strip().splitlines():
        words, names = row.split(" | ")
        en, german = words.split(" = ")
        de, *stem = german.split()
        yield Adjective(en, de, *(stem or [de])), nouns(names)


_ADJECTIVE_ROWS = tuple(_read_adjectives())
ADJECTIVES = {noun: tuple(a for a, said_of in _ADJECTIVE_ROWS if noun in said_of) for noun in NOUNS.values()}

PLACES = {
    noun: tuple(prepositions.split())
    for prepositions, names in (row.split(": ") for row in _PLACES.strip().splitlines())
    for noun in nouns(names)
}

TIMES = tuple(
    Time(en, de, tuple(kinds.split()))
    for en, de, kinds in (re.split(" [=|] ", row) for row in _TIMES.strip().splitlines())
)
