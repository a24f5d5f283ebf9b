"""One model through every format: BLEU, target tokens a second and size on disk, on the same sentences.

python benchmarks/formats.py make FOLDER --run RUN --text test.en --reference test.de
python benchmarks/formats.py measure FOLDER --rounds 5 > result.jsonl

`make` exports the run for all sides; where a format cannot hold the model, the refusal is kept for the table. It
and `measure` need the environment of `make test-peers`. Every side is a process of its own that is given text and
gives text, as its users would call it: sorted by length, --batch sentences at a time (32), on all cores. Sides take
turns; a turn is all sentences once. All search with beam 4, no length penalty, the only one that all define alike, and
ends among the best 4 continuations alone (ours would take them from the best 8), and at most 50 pieces more than a
sentence's own (CTranslate2 and Hugging Face: than their batch's longest). Tokens are pieces of the output, without EOS.
Loading a model and its first pass over all sentences are reported apart.
"""

import argparse
import json
import os
import shutil
import sys
import time

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from benchmarks.turns import machine, summary, take_turns

BEAM, EXTRA = 4, 50
SEARCH = {"beam_size": BEAM, "alpha": 0.0, "extra_length": EXTRA, "ends": "top"}
SIDES = "translator", "saved_model", "ctranslate2_float32", "ctranslate2_int8", "hugging_face"


def make(folder, run, text, reference):
    """Writes the exports, the sentences, and what the machine was."""
    from t2t_lite import export
    from t2t_lite.decoding.translator import Translator
    from t2t_lite.errors import UserError

    translator = Translator.load(run)
    os.makedirs(folder)
    shutil.copytree(run if os.path.isdir(run) else os.path.dirname(run), os.path.join(folder, "translator"))
    for name, path in (("inputs", text), ("references", reference)):
        shutil.copyfile(path, os.path.join(folder, name))

    def path(side):
        return os.path.join(folder, side)

    ways = {
        "saved_model": lambda: export.export_saved_model(translator, path("saved_model"), **SEARCH),
        "ctranslate2_float32": lambda: export.export_ctranslate2(translator, path("ctranslate2_float32")),
        "ctranslate2_int8": lambda: export.export_ctranslate2(translator, path("ctranslate2_int8"), "int8"),
        "hugging_face": lambda: export.export_hugging_face(translator, path("hugging_face"), alpha=0.0),
    }
    for side, write in ways.items():
        try:
            started = time.perf_counter()
            write()
            print(json.dumps({"side": side, "export_seconds": round(time.perf_counter() - started, 1)}), flush=True)
        except UserError as error:
            with open(f"{path(side)}.refused", "w", encoding="utf-8") as file:
                file.write(str(error))
            print(json.dumps({"side": side, "refused": str(error)}), flush=True)


def read_lines(path):
    """Returns a file's lines."""
    with open(path, encoding="utf-8", newline="\n") as file:
        return file.read().split("\n")[:-1]


def size_on_disk(path):
    """Returns the bytes of a folder's files."""
    return sum(os.path.getsize(os.path.join(base, name)) for base, _, names in os.walk(path) for name in names)


# Each returns a function of a list of texts that gives a list of texts.


def load_translator(path, batch):
    """t2t_lite itself."""
    from t2t_lite.decoding.translator import Translator

    translator = Translator.load(path)
    return lambda texts: [found.text for found in translator.translate(texts, batch_size=batch, **SEARCH)]


def load_saved_model(path, batch):
    """TensorFlow, as TensorFlow Serving runs it."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  (its operations)

    loaded = tf.saved_model.load(os.path.join(path, "1"))
    serve = loaded.signatures["serving_default"]
    return lambda texts: [text.decode() for text in serve(inputs=tf.constant(texts))["outputs"].numpy()]


def load_ctranslate2(path, batch):
    """CTranslate2, with SentencePiece around it."""
    import ctranslate2
    import sentencepiece

    source, target = (sentencepiece.SentencePieceProcessor(f"{path}/{side}.spm") for side in ("source", "target"))
    translator = ctranslate2.Translator(path, inter_threads=1, intra_threads=os.cpu_count())

    def translate(texts):
        pieces = [source.encode(text, out_type=str) for text in texts]
        longest = max(map(len, pieces)) + 1 + EXTRA
        found = translator.translate_batch(
            pieces, beam_size=BEAM, length_penalty=0, max_decoding_length=longest, max_batch_size=0
        )
        return [target.decode(result.hypotheses[0]) for result in found]

    return translate


def load_hugging_face(path, batch):
    """Hugging Face Transformers."""
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


def serve(folder, side, batch):
    """Loads a side, translates everything once, then again for each line of stdin; prints how fast."""
    texts = read_lines(os.path.join(folder, "inputs"))
    order = sorted(range(len(texts)), key=lambda at: -len(texts[at]))
    batches = [order[at : at + batch] for at in range(0, len(order), batch)]
    started = time.perf_counter()
    load = globals()[f"load_{side.split('_')[0]}" if side.startswith("ctranslate2") else f"load_{side}"]
    translate = load(os.path.join(folder, side), batch)
    load_seconds = time.perf_counter() - started

    def run():
        found = [None] * len(texts)
        started = time.perf_counter()
        for places in batches:
            for at, text in zip(places, translate([texts[at] for at in places]), strict=True):
                found[at] = text
        return time.perf_counter() - started, found

    first_seconds, found = run()
    with open(os.path.join(folder, f"{side}.out"), "w", encoding="utf-8") as file:
        file.writelines(f"{text}\n" for text in found)
    times = {"load_seconds": round(load_seconds, 1), "first_seconds": round(first_seconds, 1)}
    print(json.dumps({"side": side, **times}), flush=True)
    for _ in sys.stdin:
        print(json.dumps({"sentences_per_second": round(len(texts) / run()[0], 1)}), flush=True)


def measure(folder, sides, batch, rounds, peers_python):
    """Prints the machine, every turn, and the table."""
    import sacrebleu
    import sentencepiece

    print(json.dumps({**machine(), "batch": batch}), flush=True)
    there = [side for side in sides if os.path.exists(os.path.join(folder, side))]
    commands = {
        side: [
            *(peers_python, os.path.abspath(__file__), "serve", folder),
            *("--sides", side, "--batch", str(batch)),
        ]
        for side in there
    }
    turns = take_turns(commands, rounds)
    medians = summary(turns, "sentences_per_second")["sentences_per_second"]
    print(json.dumps(summary(turns, "sentences_per_second")), flush=True)
    references = read_lines(os.path.join(folder, "references"))
    outputs = {side: read_lines(os.path.join(folder, f"{side}.out")) for side in there}
    bleu = sacrebleu.BLEU()
    pieces = sentencepiece.SentencePieceProcessor(os.path.join(folder, "ctranslate2_float32", "target.spm"))
    for side in sides:
        if side not in there:
            print(json.dumps({"side": side, "refused": read_all(os.path.join(folder, f"{side}.refused"))}))
            continue
        tokens = sum(map(len, pieces.encode(outputs[side])))
        row = {
            "side": side,
            "bleu": round(bleu.corpus_score(outputs[side], [references]).score, 2),
            "same_as_first": sum(a == b for a, b in zip(outputs[side], outputs[there[0]], strict=True)),
            "tokens_per_second": round(medians[side] * tokens / len(references), 1),
            "bytes": size_on_disk(os.path.join(folder, side)),
        }
        print(json.dumps(row), flush=True)
    print(json.dumps({"sentences": len(references), "signature": str(bleu.get_signature())}))


def read_all(path):
    """Returns a text file's content."""
    with open(path, encoding="utf-8") as file:
        return file.read()


def main():
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("make", "measure", "serve"))
    parser.add_argument("folder")
    parser.add_argument("--run")
    parser.add_argument("--text")
    parser.add_argument("--reference")
    parser.add_argument("--sides", default=",".join(SIDES))
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers_python", default=sys.executable)
    args = parser.parse_args()
    sides = args.sides.split(",")
    if args.action == "make":
        make(args.folder, args.run, args.text, args.reference)
    elif args.action == "serve":
        serve(args.folder, sides[0], args.batch)
    else:
        measure(args.folder, sides, args.batch, args.rounds, args.peers_python)


if __name__ == "__main__":
    main()
