"""A folder that was written for tensor2tensor, ported by the one command that the docs and the error name."""

import gzip
import pathlib
import re
import shlex
import subprocess
import textwrap

import pytest

from t2t_lite import registry
from t2t_lite.cli.usr_dirs import PORT

PAGE = pathlib.Path(__file__).parents[3] / "docs/coming_from_tensor2tensor.md"
# As its README shows problems, in its way of importing and indenting.
MODULE = '''
import os

from tensor2tensor import models  # pylint: disable=unused-import
from tensor2tensor.data_generators import generator_utils
from tensor2tensor.data_generators import problem
from tensor2tensor.data_generators import text_encoder, text_problems
from tensor2tensor.data_generators.translate import TranslateProblem
from tensor2tensor.layers import common_hparams
from tensor2tensor.models import transformer
from tensor2tensor.utils import registry
import tensorflow as tf  # version 1

EOS = text_encoder.EOS_ID
FLAGS = tf.flags.FLAGS
tf.flags.DEFINE_string("ported_separator", ", ", "Separates the beginning from the end.")
DEFAULTS = common_hparams.basic_params1()


@registry.register_problem
class PortedProverbs(text_problems.Text2TextProblem):
  """The end of a proverb, by its beginning."""

  @property
  def approx_vocab_size(self):
    return 2**8

  @property
  def vocab_type(self):
    return text_problems.VocabType.SUBWORD

  @property
  def is_generate_per_split(self):
    return False

  @property
  def dataset_splits(self):
    return [
        {"split": problem.DatasetSplit.TRAIN, "shards": 2},
        {"split": problem.DatasetSplit.EVAL, "shards": 1},
    ]

  def generate_samples(self, data_dir, tmp_dir, dataset_split):
    del data_dir, dataset_split
    packed = generator_utils.maybe_download(tmp_dir, "proverbs.gz", "http://example.org/proverbs.gz")
    path = os.path.join(tmp_dir, "proverbs.txt")
    generator_utils.gunzip_file(packed, path)
    import tensorflow as tf

    with tf.gfile.Open(path) as lines:
      for line in lines:
        start, end = text_encoder.native_to_unicode(line.strip()).split(FLAGS.ported_separator)
        yield {"inputs": start, "targets": end}


@registry.register_problem
class PortedTranslation(TranslateProblem):

  @property
  def input_space_id(self):
    return problem.SpaceID.EN_TOK


@registry.register_hparams
def transformer_ported():
  hparams = transformer.transformer_base()
  hparams.num_hidden_layers = 2
  hparams.hidden_size = 128
  hparams.layer_prepostprocess_dropout = 0.6
  return hparams


@registry.register_ranged_hparams
def transformer_ported_range(rhp):
  rhp.set_float("learning_rate_constant", 0.1, 1.0)
'''
LINES = "all is well, that ends well\nout of sight, out of mind\nno pain, no gain\neasy come, easy go\n" * 4


@pytest.fixture
def usr_dir(tmp_path):
    folder = tmp_path / "their things"
    folder.mkdir()
    (folder / "__init__.py").write_text("from . import ported_proverbs\n")
    (folder / "ported_proverbs.py").write_text(MODULE)
    return folder


def port(folder):
    command = PORT.format(folder=shlex.quote(str(folder)))
    subprocess.run(command, shell=True, check=True)


def test_the_page_shows_the_same_command():
    found = re.search(r"^sed (?:.*\\\n)*.*", PAGE.read_text(encoding="utf-8"), re.MULTILINE)[0]
    assert found.replace("\\\n  ", "") == PORT.format(folder="my_usr_dir")


@pytest.mark.slow
def test_a_ported_folder_generates_its_data(call_command, usr_dir, tmp_path):
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp" / "proverbs.gz").write_bytes(gzip.compress(LINES.encode()))
    folders = f"--data_dir={tmp_path}/data", f"--tmp_dir={tmp_path}/tmp", f"--t2t_usr_dir={usr_dir}"
    before = call_command("t2t-datagen", "--problem=ported_proverbs", *folders)
    assert before.status == 2
    assert "ported_proverbs.py, line 4: ModuleNotFoundError" in before.stderr
    assert "This command ports a folder: sed -i" in before.stderr
    port(usr_dir)
    done = call_command("t2t-datagen", "--problem=ported_proverbs", *folders)
    assert done.status == 0, done.stderr
    # Padding, EOS, unknown, 256 bytes, the mark of a space, and each letter: more than the 256 asked for.
    size = 3 + 256 + 1 + len({*LINES} - {" ", "\n", ","})
    assert f"256 pieces are too few. The bytes and the characters of this corpus alone need {size}." in done.stderr
    assert f"will have {size} pieces." in done.stderr
    assert registry.problem("ported_proverbs").open_encoders(str(tmp_path / "data"))["inputs"].vocab_size == size
    assert registry.hparams("transformer_ported").hidden_size == 128
    assert registry.problem("ported_translation").input_space_id == 3


@pytest.mark.slow
def test_the_next_command_names_the_folder(call_command, usr_dir, tmp_path):
    text = MODULE.replace("PortedProverbs", "PortedSayings").partition("@registry.register_problem\nclass PortedTr")[0]
    (usr_dir / "ported_proverbs.py").write_text(text.replace("ported_separator", "sayings_separator"))
    renamed = usr_dir.rename(tmp_path / "other_things")
    port(renamed)
    words = f"--t2t_usr_dir={renamed}", "--problem=ported_sayings", "--hparams_set=transformer_tiny"
    failed = call_command("t2t-trainer", *words, "--data_dir=my data", "--output_dir=run")
    assert failed.status == 2
    command = f"Run: t2t-datagen --problem=ported_sayings '--data_dir=my data' --t2t_usr_dir={renamed}\n"
    assert failed.stderr.endswith(command)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "from tensor2tensor.layers import common_layers",
            "common_layers does not exist here: layers are Keras layers",
        ),
        ("from tensor2tensor.utils import metrics", "metrics does not exist here: a problem's eval_metrics are names"),
        (
            "from tensor2tensor.data_generators import wiki",
            "wiki does not exist here. See the imports in docs/coming_from_tensor2tensor.md",
        ),
        ("import tensor2tensor.utils.t2t_model as t", "t2t_model does not exist here: a model is a Keras model"),
        ("from tensor2tensor.bin import t2t_trainer", "bin does not exist here: use a command, such as t2t-trainer"),
        (
            "from tensor2tensor.data_generators.text_problems import Text2textTmpdir",
            "text_problems.Text2textTmpdir does not exist here: use --problem=translate_own",
        ),
    ],
)
def test_an_import_of_what_is_not_here_is_answered(call_command, tmp_path, line, words):
    folder = tmp_path / f"usr_{line.split()[-1]}"
    folder.mkdir()
    (folder / "__init__.py").write_text(textwrap.dedent(line) + "\n")
    port(folder)
    failed = call_command("t2t-datagen", "--problem=x", "--data_dir=d", f"--t2t_usr_dir={folder}")
    assert (failed.status, words in failed.stderr) == (2, True), failed.stderr
