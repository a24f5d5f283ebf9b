"""Problems of texts. As in tensor2tensor, `text_problems.Text2TextProblem` and so on are `t2t_lite.data.problem`'s."""

import importlib


def __getattr__(name):
    return getattr(importlib.import_module("t2t_lite.data.problem"), name)
