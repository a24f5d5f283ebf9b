"""Rows of the table of models: the baselines."""

from tests.models.model_rows import Row, rows_of

ROWS = {
    **rows_of("lstm_lm", {"num_layers": 2}, {"": {}, "untied": {"tie_embeddings": False}}, reads="texts"),
    **{
        f"lstm_lm_{head}": Row("lstm_lm", {"num_layers": 2, "head": head, **options}, head)
        for head, options in {"class": {"target_vocab_size": 4}, "tag": {"target_vocab_size": 4}, "real": {}}.items()
    },
    **rows_of("lstm_seq2seq_attention", {}, {"": {"num_layers": 3}, "luong": {"mechanism": "luong"}}),
    "conv_seq2seq": Row("conv_seq2seq", {"num_encoder_layers": 3, "num_decoder_layers": 2, "max_position": 64}),
    "bytenet": Row("bytenet", {"num_layers": 2, "num_blocks": 1}),
    "extended_neural_gpu": Row("extended_neural_gpu", {"num_layers": 1}),
    "neural_gpu": Row("neural_gpu", {"num_layers": 2}, reads_targets=False),
}  # fmt: skip
ELSEWHERE = {"kermit"}  # reads canvases and fills them by a search of its own: test_kermit.py
