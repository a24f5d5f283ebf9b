"""Compares the export formats of one model: BLEU, sentences per second, memory, load time and size on disk.

python -m benchmarks.formats
python -m benchmarks.formats --run=RUN --text=test.en --reference=test.de --batch=32 --count=1000

The run is exported for all sides; if a format cannot represent the model, the result says why. Every side runs in a
separate process that translates text to text as its users would: sentences are sorted by length and translated --batch
at a time on all cores. A turn translates all sentences once. All sides search with beam 4 and without a length penalty,
which is the only setting that all define in the same way. Hypotheses may end only among the best 4 continuations (our
default considers the best 8). An output may have at most 50 pieces more than its sentence or, with CTranslate2 and
Hugging Face, than the longest sentence in the batch. By default, the model is a post-norm model of `work.py`, because
Marian supports only post-norm.
"""

import json
import os
import shutil
import sys
import time

from benchmarks.harness import work
from benchmarks.harness.command import alone, compare, main
from benchmarks.harness.turns import answer_turns
from t2t_lite.corpora.plain_text import read_lines

TITLE = "One model through every format"
SIDES = {
    "translator": "Translator",
    "saved_model": "SavedModel",
    "ctranslate2_float32": "CTranslate2, float32",
    "ctranslate2_int8": "CTranslate2, int8",
    "hugging_face": "Hugging Face",
}
NEEDS = {
    "ctranslate2_float32": ["ctranslate2"],
    "ctranslate2_int8": ["ctranslate2"],
    "hugging_face": ["torch", "transformers"],
}
BEAM, EXTRA = 4, 50
SEARCH = {"beam_size": BEAM, "alpha": 0.0, "extra_length": EXTRA, "ends": "top"}


def add_flags(parser):
    """Adds this benchmark's flags."""
    work.add_flags(parser)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--count", type=int, default=100, help="sentences")


def measure(result, flags):
    """Exports the model, compares the sides, and scores their outputs."""
    import sacrebleu

    this = sys.modules[__name__]
    count = 4 if flags.quick else flags.count
    folder = os.path.join(flags.bench_dir, "formats")
    exports = make_exports(flags, folder, flags.sides, count)
    result.missing |= {name: f"cannot represent this model: {why}" for name, why in exports["refused"].items()}
    flags.sides = [name for name in flags.sides if name not in exports["refused"]]
    result.add("the export itself", "seconds", {name: [seconds] for name, seconds in exports["seconds"].items()})
    case = f"{count} sentences, batch {flags.batch}"
    turns = compare(this, result, flags, case, folder=folder, batch=flags.batch)
    references, bleu = [*read_lines(os.path.join(folder, "references"))], sacrebleu.BLEU()
    outputs = {name: [*read_lines(os.path.join(folder, f"{name}.out"))] for name in turns}
    scores = {name: [bleu.corpus_score(lines, [references]).score] for name, lines in outputs.items()}
    result.add(case, "bleu", scores)
    result.add_same_outputs(case, outputs)
    result.add("the model", "disk_mb", {name: [size_on_disk(os.path.join(folder, name)) / 1e6] for name in turns})
    result.notes.append(f"BLEU's signature: `{bleu.get_signature()}`.")


def make_exports(flags, folder, sides, count):
    """Exports the model to a new folder in a separate process; returns the result of `make`."""
    run, text, reference = work.model_and_texts(flags, "post")
    settings = {"run": run, "text": text, "reference": reference, "sides": sides, "count": count}
    shutil.rmtree(folder, ignore_errors=True)
    return alone(sys.modules[__name__], "make", folder=folder, **settings)


def side(name, folder, batch=None, **making):
    """Translates all sentences once per turn, or makes the exports."""
    if name == "make":
        print(json.dumps(make(folder, **making)))
        return
    texts = [*read_lines(os.path.join(folder, "inputs"))]
    order = sorted(range(len(texts)), key=lambda at: -len(texts[at]))
    batches = [order[at : at + batch] for at in range(0, len(order), batch)]
    load = load_ctranslate2 if name.startswith("ctranslate2") else globals()[f"load_{name}"]
    translate = load(os.path.join(folder, name), batch)

    def turn():
        translations = [None] * len(texts)
        for places in batches:
            for at, text in zip(places, translate([texts[at] for at in places]), strict=True):
                translations[at] = text
        return translations

    translations = turn()
    work.write_lines(os.path.join(folder, f"{name}.out"), translations)
    answer_turns(lambda: len(turn()), "sentences")


def make(folder, run, text, reference, sides, count):
    """Writes the exports and the sentences.

    Returns:
        {"seconds": {side: float}, "refused": {side: why}}.
    """
    if "hugging_face" in sides:
        import torch  # noqa: F401  (before TensorFlow: the two do not load in the other order)
    from t2t_lite import export
    from t2t_lite.decoding.translator import Translator
    from t2t_lite.errors import UserError

    translator = Translator.load(run)
    os.makedirs(folder)
    shutil.copytree(run if os.path.isdir(run) else os.path.dirname(run), os.path.join(folder, "translator"))
    for name, path in (("inputs", text), ("references", reference)):
        work.write_lines(os.path.join(folder, name), [*read_lines(path)][:count])

    def path(name):
        return os.path.join(folder, name)

    ways = {
        "saved_model": lambda: export.export_saved_model(translator, path("saved_model"), **SEARCH),
        "ctranslate2_float32": lambda: export.export_ctranslate2(translator, path("ctranslate2_float32")),
        "ctranslate2_int8": lambda: export.export_ctranslate2(translator, path("ctranslate2_int8"), "int8"),
        "hugging_face": lambda: export.export_hugging_face(translator, path("hugging_face"), alpha=0.0),
    }
    seconds, refused = {}, {}
    for name in (name for name in ways if name in sides):
        try:
            started = time.perf_counter()
            ways[name]()
            seconds[name] = round(time.perf_counter() - started, 1)
        except UserError as error:
            refused[name] = str(error)
    return {"seconds": seconds, "refused": refused}


def size_on_disk(path):
    """Returns the total size of a folder's files in bytes."""
    return sum(os.path.getsize(os.path.join(base, name)) for base, _, names in os.walk(path) for name in names)


# Each of the following returns a function that translates a list of texts.


def load_translator(path, batch):
    """Loads the run with t2t_lite's Translator."""
    from t2t_lite.decoding.translator import Translator

    translator = Translator.load(path)
    options = {"batch_size": batch, "split_sentences": "never", **SEARCH}
    return lambda texts: [translation.text for translation in translator.translate(texts, **options)]


def load_saved_model(path, batch):
    """Loads the SavedModel with TensorFlow."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  (its operations)

    loaded = tf.saved_model.load(os.path.join(path, "1"))
    serve = loaded.signatures["serving_default"]
    return lambda texts: [text.decode() for text in serve(inputs=tf.constant(texts))["outputs"].numpy()]


def load_ctranslate2(path, batch):
    """Loads the export with CTranslate2, and SentencePiece for the texts."""
    import ctranslate2
    import sentencepiece

    source, target = (sentencepiece.SentencePieceProcessor(f"{path}/{side}.spm") for side in ("source", "target"))
    translator = ctranslate2.Translator(path, inter_threads=1, intra_threads=os.cpu_count())

    def translate(texts):
        pieces = [source.encode(text, out_type=str) for text in texts]
        longest = max(map(len, pieces)) + 1 + EXTRA
        results = translator.translate_batch(
            pieces, beam_size=BEAM, length_penalty=0, max_decoding_length=longest, max_batch_size=0
        )
        return [target.decode(result.hypotheses[0]) for result in results]

    return translate


def load_hugging_face(path, batch):
    """Loads the export with Hugging Face Transformers."""
    import torch
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(path, local_files_only=True)
    model = AutoModelForSeq2SeqLM.from_pretrained(path, local_files_only=True).eval()

    def translate(texts):
        inputs = tokenizer(texts, return_tensors="pt", padding=True)
        longest = inputs["input_ids"].shape[1] + EXTRA
        with torch.inference_mode():
            ids = model.generate(**inputs, num_beams=BEAM, length_penalty=0.0, max_new_tokens=longest)
        return tokenizer.batch_decode(ids, skip_special_tokens=True)

    return translate


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))
