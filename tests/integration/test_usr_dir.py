"""A user's own problem, model and hparams set, through every command as if they were built in."""

import os

import pytest

pytestmark = pytest.mark.slow  # commands in processes of their own: only this shows that the run remembers the folder

MODULES = {
    "__init__.py": "from . import corpus, model\n",
    "corpus.py": '''
import random

from t2t_lite import registry
from t2t_lite.data.problem import Text2TextProblem

WORDS = {"one": "eins", "two": "zwei", "three": "drei", "four": "vier"}

@registry.register_problem
class MyCountingProblem(Text2TextProblem):
    """Numbers in words, English to German."""

    approx_vocab_size = 300
    is_generate_per_split = False

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        draw = random.Random(3)
        for _ in range(600):
            words = draw.choices(list(WORDS), k=draw.randint(1, 6))
            yield {"inputs": " ".join(words), "targets": " ".join(map(WORDS.get, words))}
''',
    "model.py": '''
import keras

from t2t_lite import registry
from t2t_lite.hparams.transformer import transformer_tiny
from t2t_lite.models.transformer import Transformer

@registry.register_model
@keras.saving.register_keras_serializable("mine")
class MyTransformer(Transformer):
    """A model of one's own: its logits are scaled."""

    def decode_step(self, ids, position, cache):
        logits, cache = super().decode_step(ids, position, cache)
        return 0.5 * logits, cache

@registry.register_hparams
def my_small_set():
    hparams = transformer_tiny()
    hparams.num_hidden_layers = 1
    hparams.hidden_size = 16
    hparams.filter_size = 16
    hparams.num_heads = 2
    hparams.batch_size = 512
    hparams.eval_decode_examples = 2
    return hparams
''',
}


@pytest.fixture
def usr_dir(tmp_path):
    folder = tmp_path / "my_translation_things"
    folder.mkdir()
    for name, text in MODULES.items():
        (folder / name).write_text(text)
    return folder


@pytest.mark.long
def test_registered_things_go_through_every_command(run_command, call_command, usr_dir, tmp_path):
    def succeed(*words, stdin=""):
        result = run_command(*words, stdin=stdin)
        assert result.status == 0, f"{words}\n{result.stderr}"
        return result.stdout

    generate = "--t2t_usr_dir=my_translation_things", "--problem=my_counting_problem", "--data_dir=data"
    assert call_command("t2t-datagen", *generate).status == 0
    named = "--model=my_transformer", "--hparams_set=my_small_set", "--output_dir=run"
    steps = "--train_steps=4", "--local_eval_frequency=2", "--schedule=train"
    assert call_command("t2t-trainer", *generate, *named, *steps).status == 0
    assert (tmp_path / "run/model.ckpt-4.index").exists()
    # From here on the run remembers the folder.
    succeed("t2t-trainer", "--data_dir=data", "--output_dir=run", "--train_steps=6", "--local_eval_frequency=2")
    averaged = call_command("t2t-avg-all", "--model_dir=run", "--n=3", "--output_dir=avg")
    assert averaged.stdout == f"avg{os.sep}model.ckpt-6\n"
    assert succeed("t2t-decoder", "--output_dir=avg", stdin="one two\n\nfour\n").count("\n") == 3
    assert succeed("t2t-exporter", "--output_dir=avg", "--export_dir=export").strip() == "export/1"
    assert (tmp_path / "export/1/saved_model.pb").exists()
    # The folder is gone: that is said, with its name.
    usr_dir.rename(tmp_path / "elsewhere")
    result = run_command("t2t-decoder", "--output_dir=avg", stdin="one\n")
    assert (result.status, result.stderr.count("\n")) == (2, 1)
    assert str(usr_dir) in result.stderr
