"""What the pages take as given: small files, and runs with random weights and other folders, each made once."""

import json
import pathlib

import numpy as np

from tests.decoding.runs import SENTENCES, TEXT, make_encoder_run, make_language_model_run, make_run


def _lines(lines):
    return "".join(f"{line}\n" for line in lines)


def _trees(nouns):
    return _lines(f"(TOP (S (NP (DT the) (NN {noun})) (VP (VBZ sees) (NP (DT a) (NN cat))) (. .)))" for noun in nouns)


_TEXT = _lines(SENTENCES)
_OTHER = _lines(" ".join(reversed(sentence.split())) for sentence in SENTENCES)
_LABELLED = _lines(f"{('negative', 'positive')[i % 2]}\t{text}" for i, text in enumerate(SENTENCES))
_PAIRS = _lines(f"{i % 5}\t{text}\t{SENTENCES[-i]}" for i, text in enumerate(SENTENCES))
_TAGGED = _lines(f"{word}\t{'A' if len(word) > 3 else 'B'}" for word in TEXT.split())
_CONTEXT = " ".join(SENTENCES[:5])
_ANSWER = {"text": "house", "answer_start": _CONTEXT.index("house")}
_ASKED = [{"id": "1", "question": "Which house?", "answers": [_ANSWER]}]
_SQUAD = json.dumps({"data": [{"paragraphs": [{"context": _CONTEXT, "qas": _ASKED}]}]})

# Every page finds these.
TEXTS = {
    **{f"{name}.en": _TEXT for name in ("train", "dev", "test", "talks")},
    **{f"{name}.de": _OTHER for name in ("train", "dev", "test", "talks", "mono", "test.out", "old.out")},
    **{f"translations/old-{step}": _OTHER for step in (50, 60)},
    **{name: _lines(SENTENCES[:3]) for name in ("in.en", "texts", "texts.txt", "prompts.txt")},
    **{
        name: _TEXT
        for name in ("a.txt", "b.txt", "train.txt", "valid.txt", "books/a.txt", "books/b.txt.gz", "books/c.txt")
    },
    "classes.txt": "0\n1\n",
    "web.en.gz": _TEXT,
    "web.de.gz": _OTHER,
    "web.jsonl": _lines(json.dumps({"en": text, "de": text[::-1]}) for text in SENTENCES),
    "beginnings.de": "rot\n" * len(SENTENCES),
    **dict.fromkeys(("dev.out", "old.out"), "positive\t0.75\n" * len(SENTENCES)),
    "terms.tsv": "red house\trotes Haus\n",
    "train.tsv": _LABELLED,
    "dev.tsv": _LABELLED,
    **dict.fromkeys(("pairs.train.tsv", "pairs.dev.tsv"), _PAIRS),
    "dev.conll": _TAGGED,
    "dev.json": _SQUAD,
    "train.mrg": _trees(f"bird{i}" for i in range(40)),
    "dev.mrg": _trees(["dog", "tree"]),
    "test.mrg": _trees(["house", "bird"]),
    "test.words": "the house sees a cat .\nthe bird sees a cat .\n",
}


def _export(folder):
    from t2t_lite.decoding.translator import Translator
    from t2t_lite.export import export_saved_model

    run = make_run(folder)
    export_saved_model(Translator.load(str(run)), str(folder / "export"), beam_size=2, extra_length=4)


def _marian(folder):
    from t2t_lite.decoding.translator import Translator
    from t2t_lite.export import export_hugging_face

    export_hugging_face(Translator.load(str(make_run(folder / "made", **_MARIAN))), str(folder / "run"))


def _old(folder):
    from tests.export.old_models import OldModel

    OldModel(hidden=16, filter=32, heads=2, layers=1, shards=4).write(folder / "run")
    vocabulary = folder / "run" / "vocab.subwords"
    vocabulary.rename(vocabulary.with_name("vocab.translate_ende_wmt32k.32768.subwords"))


def _bert(folder):
    from tests.extras.hugging_face.encoder_folders import write_encoder

    write_encoder(folder / "run", "BertForMaskedLM")


def _sentence_encoder(folder):
    from tests.extras.sentence_transformers.sentence_folders import write_sentence_encoder

    write_sentence_encoder(folder / "run")


def _gpt2(folder):
    from tests.extras.hugging_face.gpt_folders import write_gpt

    write_gpt(folder / "run")


def _digits(folder):
    from t2t_lite.extras.images.png_files import png_bytes

    for number in range(8):
        path = folder / "run" / ("train", "dev")[number % 2] / str(number // 4) / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png_bytes(np.full((4, 4, 1), 30 * number, np.uint8)))


def _midi(folder):
    from t2t_lite.extras.music.midi_events import midi_bytes
    from t2t_lite.extras.music.performance_encoder import PerformanceEncoder

    encoder = PerformanceEncoder()
    for number, path in enumerate(("train/a.mid", "dev/b.mid", "primer.mid")):
        (folder / "run" / path).parent.mkdir(parents=True, exist_ok=True)
        notes = encoder.decode_notes(encoder.encode(f"velocity20 on{60 + number} shift50 off{60 + number} " * 20))
        (folder / "run" / path).write_bytes(midi_bytes(notes))


def _usr_dir(folder):
    (folder / "run").mkdir(parents=True)
    (folder / "run" / "__init__.py").write_text("from tensor2tensor.utils import registry\n")


_MARIAN = {  # what Marian's format can hold
    "layer_preprocess_sequence": "none",
    "layer_postprocess_sequence": "dan",
    "norm_epsilon": 1e-5,
    "position_layout": "marian",
}

# What makes a folder: the run in <folder>/run, its data in <folder>/data.
_FOLDERS = {
    "translator": _export,
    "universal": lambda folder: make_run(folder, model="universal_transformer", num_rec_steps=2),
    "language_model": make_language_model_run,
    "encoder": lambda folder: make_encoder_run(folder, "masked_lm_own", _TEXT, sequence_length=24),
    "classifier": lambda folder: make_encoder_run(folder, "classify_own", _LABELLED),
    "similarity": lambda folder: make_encoder_run(folder, "regress_pair_own", _PAIRS),
    "tagger": lambda folder: make_encoder_run(folder, "tag_own", _TAGGED),
    "reader": lambda folder: make_encoder_run(folder, "qa_own", _SQUAD, sequence_length=24, doc_stride=6),
    "digits": _digits,
    "marian": _marian,
    "midi": _midi,
    "tensor2tensor": _old,
    "usr_dir": _usr_dir,
    "bert": _bert,
    "sentence_encoder": _sentence_encoder,
    "gpt2": _gpt2,
}


class Files:
    """Makes folders, each at its first use.

    Args:
        folder: pathlib.Path of a folder for them.
    """

    def __init__(self, folder):
        self._folder = folder

    def path(self, name):
        """Returns the path of a run, such as "translator", or of what belongs to it, such as "translator/data"."""
        made, _, other = name.partition("/")
        if not (self._folder / made).exists():
            _FOLDERS[made](self._folder / made)
        return pathlib.Path(self._folder / made / (other or "run"))
