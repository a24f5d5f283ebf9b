"""A text that is decoded: what is encoded of it, and where its pieces stand in the text that was given."""

import types

from t2t_lite.data.problem import Problem, TranslateProblem
from t2t_lite.data.source_text import SourceText
from t2t_lite.text.vocabulary import ByteTextEncoder
from tests.export.models import translator_of


class Trimming(Problem):
    def input_text(self, text):
        return text.strip().lower()


class Numbered(SourceText):
    """A text in which <1> stands for something; a target has it, too."""

    def target(self, target):
        return target.replace("www.a.de", "<1>")


def test_what_is_encoded_is_what_the_problem_makes_of_a_text():
    read = Trimming().source_text("  Ab C ")
    assert (read.text, read.prepared, len(read), read.is_blank) == ("  Ab C ", "ab c", 7, False)
    assert (read.ids, read.unchanged, read.whole) == ((), "", ())
    assert Trimming().source_text(" \n").is_blank
    assert Trimming().encoded_text("  Ab C ") == "ab c"
    assert Trimming().encoded_target("Ab", "  Ab C ") == "Ab"
    assert read.restored(["<1>"], "out", [(0, 3)]) == ("out", [], [(0, 3)])
    assert read.restored([], "out") == ("out", [], None)


def test_a_text_is_scored_and_drawn_as_it_is_translated():
    translator = translator_of()
    for translator.problem in (Trimming(), TranslateProblem(), Problem()):
        (read,) = translator.reader(split_sentences="never").read("  Ab C ").sources
        assert translator.problem.encoded_text("  Ab C ") == read.prepared


def test_pieces_have_their_places_in_the_given_text():
    encoder, read = ByteTextEncoder(), Trimming().source_text("  Ab C ")
    assert read.spans(encoder, encoder.encode("ab c")) == [(0, 3), (3, 4), (5, 5), (5, 7)]
    assert read.spans(encoder, encoder.encode("ab")) == [(0, 3), (3, 4)]


def test_a_substitution_reads_texts_and_targets():
    problem = Trimming()
    problem.substitution = types.SimpleNamespace(source_text=Numbered)
    assert problem.encoded_text(" Www.a.de ") == "www.a.de"
    assert problem.encoded_target("bei www.a.de", "Www.a.de") == "bei <1>"
