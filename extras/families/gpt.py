"""GPT, a post-norm GPT-2 without a final normalization."""

from t2t_lite.interchange.families import gpt2
from t2t_lite.interchange.family import check, choice


def _complete(path, config):
    is_usual = config["n_inner"] == 4 * config["n_embd"]
    check(path, "n_inner", config["n_inner"], is_usual, "4 n_embd, or none")


FAMILY = gpt2.FAMILY._replace(
    model_type="openai-gpt",
    class_prefix="OpenAIGPT",
    matches=lambda config: config["norm"] == "post",
    fields=tuple(
        field._replace(is_written=False) if field.name == "n_inner" else field
        for field in gpt2.fields(choice("afn", "activation", {"gelu": "gelu_tanh", **gpt2.ACTIVATIONS}))
    ),
    options={**gpt2.FAMILY.options, "norm": "post"},
    limits=lambda config: {**gpt2.FAMILY.limits(config), "filter_size": (4 * config["hidden_size"],)},
    weights={
        "target_embedding": "transformer.tokens_embed",
        "decoder_position": "transformer.positions_embed",
        **gpt2.layers("transformer.h.*"),
    },
    complete=_complete,
)
