"""What a run that goes on may have other than before."""

import pytest

from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.models.run_config import write_run_config
from t2t_lite.training.run_directory import accumulation_for, changed_hparams


def config(replicas, accumulation):
    return {
        "problem": "p",
        "model": "transformer",
        "hparams_set": "transformer_tiny",
        "usr_dir": "",
        "vocab_size": 10,
        "target_vocab_size": None,
        "vocabulary_sha256": {},
        "hparams": registry.hparams("transformer_tiny").parse(f"gradient_accumulation_steps={accumulation}").values(),
        "batches_a_step": replicas * accumulation,
    }


@pytest.mark.parametrize(
    "before, replicas, wanted, kept",
    [
        ((8, 1), 8, 1, 1),
        ((8, 1), 2, 1, 4),
        ((2, 6), 3, 6, 4),
        ((8, 1), 1, 1, 8),
        ((8, 1), 2, 3, 3),  # another number was asked for
    ],
)
def test_the_accumulation_that_keeps_the_batches(before, replicas, wanted, kept):
    assert accumulation_for(replicas, wanted, config(*before)) == kept
    assert accumulation_for(replicas, wanted, config(*before), keep_batches=False) == wanted
    assert accumulation_for(replicas, wanted, None) == wanted


def test_replicas_that_cannot_share_the_batches():
    with pytest.raises(
        UserError, match=r"^5 replicas cannot share the 12 .* Expected 1, 2, 3, 4, 6, 12 of them"
    ) as error:
        accumulation_for(5, 6, config(2, 6))
    assert str(error.value).endswith("--hparams=gradient_accumulation_steps=6 --allow_hparams_change")


def test_only_steps_of_other_batches_are_a_change(tmp_path):
    write_run_config(str(tmp_path), config(8, 1))
    assert changed_hparams(str(tmp_path), config(2, 4), allow_change=False) == {}
    with pytest.raises(
        UserError, match=r"gradient_accumulation_steps: 1 -> 3, batches_a_step: 8 -> 6\. .*--allow_hparams"
    ):
        changed_hparams(str(tmp_path), config(2, 3), allow_change=False)
    assert changed_hparams(str(tmp_path), config(2, 1), allow_change=True) == {"batches_a_step": [8, 2]}
