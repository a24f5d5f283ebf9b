"""What a `hparams.json` holds, for tests that write one."""

CONFIG = {
    "problem": "algorithmic_identity_decimal40", "model": "transformer", "hparams_set": "transformer_tiny",
    "vocab_size": 12, "target_vocab_size": None, "vocabulary_sha256": {"inputs": "a" * 64, "targets": "b" * 64},
    "usr_dir": "", "hparams": {"hidden_size": 8},
}  # fmt: skip
