#!/usr/bin/env bash
# quickstart.sh OUT STEPS EVERY: what t2t-quickstart becomes. The commands of docs/recipes.md on the embedded phrasebook: data,
# training with checkpoints EVERY steps, the last five averaged, translations of sentences never seen, BLEU, and a
# SavedModel that answers. All goes to the folder OUT.
set -Eeuo pipefail

OUT=$1 STEPS=$2 EVERY=$3 PYTHON=${PYTHON:-python}
DATA=$OUT/data TRAIN=$OUT/train EXPORT=$OUT/export
AVERAGE=$TRAIN/avg/model.ckpt-$STEPS.index
LAST=$(((STEPS + EVERY - 1) / EVERY))  # checkpoints to average: five, or all of a short training
LAST=$((LAST < 5 ? LAST : 5)) FIRST=$((STEPS > 4 * EVERY ? STEPS - 4 * EVERY : 0))

stopped() { echo "quickstart: stopped. Run it again: it continues where it was." >&2; }
trap stopped ERR
trap 'stopped; exit 130' INT TERM  # the trainer saves a checkpoint and ends well

step() { printf '\n== %s\n' "$*"; }
run() { printf '$ %s\n' "$*"; "$@"; }
# Whether a file is there and was made after the averaged model.
done_before() { [[ -e $1 && ! $AVERAGE -nt $1 ]] && echo "$1 is there."; }

step "1. English-German sentence pairs, a vocabulary learned from them, records"
run t2t-datagen --problem=translate_ende_phrasebook "--data_dir=$DATA"

step "2. A small Transformer, trained"
run t2t-trainer --problem=translate_ende_phrasebook "--data_dir=$DATA" "--output_dir=$TRAIN" \
  --model=transformer --hparams_set=transformer_quickstart "--train_steps=$STEPS" "--local_eval_frequency=$EVERY"

step "3. The average of the last five checkpoints (paper, section 6.1)"
done_before "$AVERAGE" ||
  run t2t-avg-all "--model_dir=$TRAIN" "--output_dir=$TRAIN/avg" "--n=$LAST" "--min_steps=$FIRST"

step "4. The test set, whose combinations of words training never showed, translated and scored"
[[ -e $OUT/test.de ]] || {
  echo "\$ python  # the text of the test records -> $OUT/test.en, $OUT/test.de"
  "$PYTHON" - "$DATA" "$OUT/test.en" "$OUT/test.de" 2>"$OUT/python.log" <<'PYTHON' || { cat "$OUT/python.log" >&2; false; }
import sys

from t2t_lite import HParams, files, registry
from t2t_lite.data.records import Records

data_dir, *paths = sys.argv[1:]
problem = registry.problem("translate_ende_phrasebook")
encoders = problem.feature_encoders(data_dir)
examples = list(Records(problem, data_dir, "test").examples(HParams()))
for side, path in zip(("inputs", "targets"), paths):
    files.write_bytes(path, "".join(encoders[side].decode(example[side]) + "\n" for example in examples).encode())
PYTHON
}
done_before "$OUT/translation.de" ||
  run t2t-decoder "--output_dir=$TRAIN/avg" "--decode_from_file=$OUT/test.en" \
    "--decode_to_file=$OUT/translation.de" --decode_hparams=beam_size=4,alpha=0.6
run t2t-bleu "--translation=$OUT/translation.de" "--reference=$OUT/test.de" | tee "$OUT/bleu.txt"

step "5. A SavedModel for TensorFlow Serving: text in, text out"
done_before "$EXPORT/1/saved_model.pb" || {
  rm -rf "$EXPORT"
  run t2t-exporter "--output_dir=$TRAIN/avg" "--export_dir=$EXPORT"
}

step "Three translations"
for line in 1 500 1000; do
  for what in "English   :test.en" "German    :translation.de" "reference :test.de"; do
    echo "${what%%:*} $(sed -n "${line}p" "$OUT/${what#*:}")"
  done
  echo
done

echo "== The SavedModel's answer, in a process without t2t_lite"
cat <<PYTHON | tee "$OUT/ask.py"
import tensorflow as tf
import tensorflow_text  # the export holds its SentencePiece op, as TensorFlow Serving does

translate = tf.saved_model.load("$EXPORT/1").signatures["serving_default"]
answer = translate(inputs=tf.constant(["$(head -1 "$OUT/test.en")"]))
print(answer["outputs"].numpy()[0].decode(), answer["scores"].numpy()[0])
PYTHON
echo "\$ python $OUT/ask.py"
"$PYTHON" "$OUT/ask.py" 2>"$OUT/python.log" || { cat "$OUT/python.log" >&2; false; }

cat <<END

== What next
your own corpus   t2t-datagen --problem=translate_own --train_files=a.en,a.de --dev_files=b.en,b.de --vocab_size=8000 --data_dir=data
                  t2t-trainer --problem=translate_own --data_dir=data --output_dir=train --hparams_set=transformer_base_v1
try it yourself   t2t-decoder --output_dir=$TRAIN/avg --decode_interactive
curves            tensorboard --logdir=$TRAIN
the paper's data  t2t-datagen --problem=translate_ende_wmt37k --data_dir=data --tmp_dir=downloads   # 4.5 million pairs, downloaded
(the commands are in $(dirname "$(command -v t2t-trainer)"))

END
sed -n 's/^sacreBLEU = /quickstart: test BLEU /p' "$OUT/bleu.txt"
