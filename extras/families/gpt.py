"""The family of the original GPT, a post-norm GPT-2 without a final normalization."""

from t2t_lite import registry
from t2t_lite.extras.hugging_face import gpt2
from t2t_lite.extras.hugging_face.family import check, choice


def _complete(path, config):
    is_usual = config["n_inner"] == 4 * config["n_embd"]
    check(path, "n_inner", config["n_inner"], is_usual, "4 * n_embd, or no n_inner")


@registry.register_family("openai-gpt")
def openai_gpt():
    """Returns the Family of the original GPT."""
    return gpt2.gpt2()._replace(
        class_prefix="OpenAIGPT",
        matches=lambda config: config["norm"] == "post",
        fields=gpt2.fields(choice("afn", "activation", {"gelu": "gelu_tanh"} | gpt2.ACTIVATIONS), writes_inner=False),
        options={**gpt2.gpt2().options, "norm": "post"},
        limits=lambda config: {**gpt2.gpt2().limits(config), "filter_size": (4 * config["hidden_size"],)},
        weights={
            "target_embedding": "transformer.tokens_embed",
            "decoder_position": "transformer.positions_embed",
            **gpt2.layers("transformer.h.*"),
        },
        complete=_complete,
    )
