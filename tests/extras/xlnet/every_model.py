"""Rows of the table of models: XLNet."""

from tests.models.model_rows import LM, Row

ORDER = [[2, 0, 1, 0, 0, 3, 0], [1, 0, 0, 0], [1]]
ROWS = {
    **{
        f"xlnet_{head}" if head != "masked_lm" else "xlnet": Row(
            "xlnet", {**LM, "last_id": 4, "head": head, **options}, head, has_unread=head != "masked_lm",
            beside={"order": ORDER} if head == "masked_lm" else {},
        )
        for head, options in {
            "masked_lm": {}, "class": {"target_vocab_size": 4}, "tag": {"target_vocab_size": 4}, "real": {}, "span": {}
        }.items()
    },
}  # fmt: skip
