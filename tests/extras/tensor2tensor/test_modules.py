"""tensor2tensor's modules under their names, with what folders of problems use of them."""

# Nearest tests of: extras/tensor2tensor/__init__.py, extras/tensor2tensor/common_hparams.py
# Nearest tests of: extras/tensor2tensor/generator_utils.py, extras/tensor2tensor/hparam.py
# Nearest tests of: extras/tensor2tensor/problem.py, extras/tensor2tensor/registry.py
# Nearest tests of: extras/tensor2tensor/text_encoder.py, extras/tensor2tensor/text_problems.py
# Nearest tests of: extras/tensor2tensor/transformer.py, extras/tensor2tensor/translate.py

import gzip
import importlib

import pytest

from t2t_lite import registry
from t2t_lite.extras.tensor2tensor import (
    common_hparams,
    generator_utils,
    problem,
    text_encoder,
    text_problems,
    translate,
)


def test_classes_are_those_of_the_package():
    from t2t_lite.data import problem as own

    assert problem.DatasetSplit is own.DatasetSplit
    assert text_problems.Text2TextProblem is own.Text2TextProblem
    assert translate.TranslateProblem is own.TranslateProblem
    assert common_hparams.basic_params1().values() == registry.hparams("transformer_base_v1").values()


def test_ids_and_reserved_tokens():
    assert (text_encoder.PAD_ID, text_encoder.EOS_ID) == (0, 1)
    assert text_encoder.RESERVED_TOKENS == ["<pad>", "<EOS>"] and text_encoder.NUM_RESERVED_TOKENS == 2
    assert text_encoder.native_to_unicode("Tür") == "Tür"


def test_ids_of_kinds_of_texts_are_those_of_tensor2tensor():
    """Its data_generators/problem.py."""
    assert {name: i for name, i in vars(problem.SpaceID).items() if not name.startswith("_")} == {
        "GENERIC": 0, "EN_CHR": 2, "EN_TOK": 3, "EN_BPE_TOK": 4, "FR_CHR": 5, "FR_TOK": 6, "DE_CHR": 7, "DE_TOK": 8,
        "DE_BPE_TOK": 9, "ZH_CHR": 14, "ZH_TOK": 15,
    }  # fmt: skip


def test_a_download_gets_the_name_that_is_asked_for(tmp_path, monkeypatch):
    asked = []

    def provide(sources, folder):
        asked.append(sources)
        (tmp_path / "a.txt").write_text("eine Tür")

    monkeypatch.setattr(generator_utils.downloads, "provide", provide)
    for _ in range(2):
        path = generator_utils.maybe_download(str(tmp_path), "b.txt", "http://example.org/x/a.txt")
        assert path == str(tmp_path / "b.txt") and (tmp_path / "b.txt").read_text() == "eine Tür"
    assert asked == [[["http://example.org/x/a.txt", ["a.txt"]]]] and not (tmp_path / "a.txt").exists()


def test_a_file_is_unpacked_once(tmp_path):
    packed, unpacked = tmp_path / "a.gz", tmp_path / "a"
    packed.write_bytes(gzip.compress("eine Tür\n".encode()))
    for _ in range(2):
        generator_utils.gunzip_file(str(packed), str(unpacked))
        assert unpacked.read_text(encoding="utf-8") == "eine Tür\n"
        packed.unlink(missing_ok=True)


def test_a_vocabulary_follows_from_the_problem():
    with pytest.raises(NotImplementedError, match="vocab_type and approx_vocab_size"):
        generator_utils.get_or_generate_vocab("d", "t", "vocab", 8000, [])


def test_a_module_that_is_not_here_is_answered():
    with pytest.raises(ImportError, match="t2t_model"):
        from t2t_lite.extras.tensor2tensor import t2t_model  # noqa: F401


def test_they_have_their_names_in_the_package_of_before_too():
    for name in ("text_problems", "problem", "registry", "text_encoder"):
        old = importlib.import_module(f"t2t_lite.tensor2tensor.{name}")
        assert old is importlib.import_module(f"t2t_lite.extras.tensor2tensor.{name}")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("t2t_lite.tensor2tensor.nothing")
