"""ERNIE 2.0, a BERT with a table of task types."""

from t2t_lite import registry
from t2t_lite.extras.hugging_face import bert
from t2t_lite.extras.hugging_face.family import Field


def _complete(path, config):
    if not config["use_task_id"]:
        config["task_type_vocab_size"] = 0


@registry.register_family("ernie")
def ernie():
    """Returns the Family."""
    return bert.bert()._replace(
        class_prefix="Ernie",
        matches=lambda config: bert.class_of(config) == "Ernie",
        heads=bert.own_heads("ernie"),
        fields=bert.fields(
            Field("use_task_id", kind=bool, usual=False, value=lambda config: True),
            Field("task_type_vocab_size", "num_task_types", int, usual=3),
        ),
        weights={**bert.body("ernie"), "task_embedding": "ernie.embeddings.task_type_embeddings"},
        complete=_complete,
        prefix="ernie.",
        hparams_set="ernie_base",
    )
