"""tensor2tensor's modules under their names, with what folders of problems use of them."""

# Nearest tests of: extras/tensor2tensor/__init__.py, extras/tensor2tensor/common_hparams.py
# Nearest tests of: extras/tensor2tensor/generator_utils.py, extras/tensor2tensor/hparam.py
# Nearest tests of: extras/tensor2tensor/problem.py, extras/tensor2tensor/registry.py
# Nearest tests of: extras/tensor2tensor/models.py, extras/tensor2tensor/problems.py
# Nearest tests of: extras/tensor2tensor/text_encoder.py, extras/tensor2tensor/text_problems.py
# Nearest tests of: extras/tensor2tensor/transformer.py, extras/tensor2tensor/translate.py

import gzip
import importlib
import pathlib
import re

import pytest

from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.extras.tensor2tensor import (
    common_hparams,
    generator_utils,
    problem,
    text_encoder,
    text_problems,
    translate,
)
from t2t_lite.settings import tensor2tensor_names
from t2t_lite.text import vocabulary
from t2t_lite.text.subwords import train_sentencepiece
from t2t_lite.text.vocabulary import SentencePieceEncoder


def test_classes_are_those_of_the_package():
    from t2t_lite.data import problem as own

    assert problem.DatasetSplit is own.DatasetSplit
    assert text_problems.Text2TextProblem is own.Text2TextProblem
    assert translate.TranslateProblem is own.TranslateProblem
    assert common_hparams.basic_params1().values() == registry.hparams("transformer_base_v1").values()


def test_a_set_may_add_what_basic_params_lack_in_tensor2tensor(caplog):
    hparams = common_hparams.basic_params1()
    hparams.add_hparam("filter_size", 99)
    hparams.add_hparam("mine", 5)
    assert hparams.filter_size == 99 and hparams.mine == 5 and not caplog.records
    with pytest.raises(UserError, match="filter_size"):
        hparams.add_hparam("filter_size", "wide")
    hparams.add_hparam("proximity_bias", True)
    assert "hparam proximity_bias=True has no effect. The encoder attends to all positions equally" in caplog.text
    assert hparams.copy().values() == hparams.values()


def test_ids_and_reserved_tokens():
    assert (text_encoder.PAD_ID, text_encoder.EOS_ID) == (0, 1)
    assert text_encoder.RESERVED_TOKENS == ["<pad>", "<EOS>", "<unk>"]
    assert text_encoder.RESERVED_TOKENS_BYTES == [b"<pad>", b"<EOS>", b"<unk>"]
    assert text_encoder.native_to_unicode("Tür") == text_encoder.native_to_unicode("Tür".encode()) == "Tür"


def test_ids_of_kinds_of_texts_are_those_of_tensor2tensor():
    """Its data_generators/problem.py."""
    assert {name: i for name, i in vars(problem.SpaceID).items() if not name.startswith("_")} == {
        "GENERIC": 0, "EN_CHR": 2, "EN_TOK": 3, "EN_BPE_TOK": 4, "FR_CHR": 5, "FR_TOK": 6, "DE_CHR": 7, "DE_TOK": 8,
        "DE_BPE_TOK": 9, "ZH_CHR": 14, "ZH_TOK": 15,
    }  # fmt: skip


def test_a_download_gets_the_name_that_is_asked_for(tmp_path, monkeypatch):
    """Another file, which has the name in the URI, stays as it is."""
    asked = []

    def provide(sources, folder):
        ((uri, (name,)),) = sources
        asked.append(uri)
        path = pathlib.Path(folder, name)
        path.parent.mkdir(exist_ok=True)
        if not path.exists():
            path.write_text(uri)

    monkeypatch.setattr(generator_utils.downloads, "provide", provide)
    expected = {"a.txt": "http://example.org/x/a.txt", "b.txt": "http://example.org/y/a.txt"}
    for name, uri in [*expected.items()] * 2:
        assert generator_utils.maybe_download(str(tmp_path), name, uri) == str(tmp_path / name)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == expected
    assert asked == [*expected.values()]


def test_a_file_is_unpacked_once(tmp_path):
    packed, unpacked = tmp_path / "a.gz", tmp_path / "a"
    packed.write_bytes(gzip.compress("eine Tür\n".encode()))
    for _ in range(2):
        generator_utils.gunzip_file(str(packed), str(unpacked))
        assert unpacked.read_text(encoding="utf-8") == "eine Tür\n"
        packed.unlink(missing_ok=True)


def test_reserved_tokens_of_a_problem_follow_the_reserved_ids(tmp_path):
    """Ported code computes their ids from the number of reserved tokens."""
    prefix = str(tmp_path / "v")
    train_sentencepiece(["one two three"], prefix, 275, user_defined_symbols=["<de>", "<en>"])
    ids = [SentencePieceEncoder(f"{prefix}.model").encode(f"x{symbol}")[-1] for symbol in ("<de>", "<en>")]
    assert ids == [text_encoder.NUM_RESERVED_TOKENS + at for at in range(2)]


def test_samples_are_encoded_like_those_of_a_problem():
    of_bytes, of_numbers = text_encoder.ByteTextEncoder(), vocabulary.TextEncoder(12)
    encode = text_problems.text2text_generate_encoded
    samples = [{"inputs": "a", "targets": "3", "tag": 7}]
    assert [*encode(samples, of_bytes, of_numbers)] == [{"inputs": [99, 1], "targets": [5, 1], "tag": 7}]
    prefixed = {"inputs": [*of_bytes.encode("in a"), 1], "targets": [*of_bytes.encode("out 3"), 1], "tag": 7}
    assert [*encode(samples, of_bytes, inputs_prefix="in ", targets_prefix="out ")] == [prefixed]
    assert [*encode([{"targets": "3"}], of_numbers, has_inputs=False)] == [{"targets": [5, 1]}]


def test_a_vocabulary_of_listed_words_is_stored_and_read_again(tmp_path):
    words = text_encoder.TokenTextEncoder(None, vocab_list=["<UNK>", "<pad>", "one", "zwölf"], replace_oov="<UNK>")
    assert words.encode("zwölf one three") == [4, 3, 2] and words.decode([3, 4, 1]) == "one zwölf"
    path = tmp_path / "vocab"
    words.store_to_file(str(path))
    assert path.read_text(encoding="utf-8") == "<pad>\n<EOS>\n<UNK>\none\nzwölf\n"
    again = text_encoder.TokenTextEncoder(str(path), replace_oov="<UNK>")
    assert again.fingerprint == words.fingerprint and again.path == str(path) and words.path is None
    with pytest.raises(UserError, match="reverse=True"):
        text_encoder.TokenTextEncoder(str(path), reverse=True)
    for wrong in (["a\n", "b"], ["a\rb", "b"], ["a", "a"]):  # later words would have other ids
        with pytest.raises(UserError, match="vocab_list: expected different words without line breaks"):
            text_encoder.TokenTextEncoder(None, vocab_list=wrong)


def test_an_encoder_of_ones_own():
    class Latin(text_encoder.TextEncoder):
        def encode(self, text):
            return [byte + self._num_reserved_ids for byte in text.encode("latin-1")]

        @property
        def vocab_size(self):
            return 256 + self.num_reserved_ids

    for latin, reserved in ((Latin(), 2), (Latin(num_reserved_ids=5), 5)):
        assert (latin.encode("ä"), latin.vocab_size) == ([228 + reserved], 256 + reserved)
    assert vocabulary.vocabulary_sizes({"targets": Latin()}) == (258, None)
    with pytest.raises(UserError, match=r"^TextEncoder: define vocab_size, or use t2t_lite"):
        _ = text_encoder.TextEncoder().vocab_size


def test_problems_and_models():
    from t2t_lite.extras.tensor2tensor import models, problems

    assert problems.problem("translate_own").name in problems.available()
    with pytest.raises(UserError, match=r"^tensor2tensor's models\.slicenet does not exist here"):
        _ = models.slicenet


def test_a_module_or_name_that_is_not_here_is_answered():
    with pytest.raises(ImportError, match="t2t_model"):
        from t2t_lite.extras.tensor2tensor import t2t_model  # noqa: F401
    with pytest.raises(
        UserError, match=r"^tensor2tensor's translate\.compile_data does not .*here: .*source_data_files"
    ):
        from t2t_lite.extras.tensor2tensor.translate import compile_data  # noqa: F401
    with pytest.raises(AttributeError):
        _ = generator_utils.__wrapped__


def test_names_with_an_answer_do_not_exist_here():
    names = [name for name in tensor2tensor_names.MODULES if "." in name]
    assert len(names) > 20
    for name in names:
        module, attribute = name.split(".")
        mirrored = importlib.import_module(f"t2t_lite.extras.tensor2tensor.{module}")
        with pytest.raises(UserError, match=re.escape(f"{name} does not exist here: ")):
            getattr(mirrored, attribute)
