"""Public names for defining problems (mirrors tensor2tensor's problem.py).

Your own problem subclasses `Text2TextProblem` and defines `generate_samples`:

    @registry.register_problem
    class MyProblem(Text2TextProblem):
        is_generate_per_split = False

        def generate_samples(self, data_dir, tmp_dir, dataset_split):
            yield {"inputs": "one two", "targets": "eins zwei"}

`is_generate_per_split` and similar attributes may be class attributes or, as in tensor2tensor, properties.
"""

from t2t_lite.data.base_problem import Problem
from t2t_lite.data.splits import FILE_TAGS, DatasetSplit, VocabType
from t2t_lite.data.text_problems.labelled_text import (
    Text2ClassProblem,
    Text2RealProblem,
    TextConcat2ClassProblem,
    text2class_txt_iterator,
    text2real_txt_iterator,
    text2self_txt_iterator,
    text2text_txt_iterator,
    text2text_txt_tab_iterator,
    txt_line_iterator,
)
from t2t_lite.data.text_problems.text_problem import Text2TextProblem
from t2t_lite.data.text_problems.text_self_problem import ChoppedTextProblem, Text2SelfProblem
from t2t_lite.data.text_problems.translate import TranslateProblem
from t2t_lite.process.registering_modules import names_in_extras

__all__ = [
    "FILE_TAGS", "ChoppedTextProblem", "DatasetSplit", "Problem",
    "Text2ClassProblem", "Text2RealProblem", "Text2SelfProblem", "Text2TextProblem",
    "TextConcat2ClassProblem", "TranslateProblem", "VocabType", "text2class_txt_iterator", "text2real_txt_iterator",
    "text2self_txt_iterator", "text2text_txt_iterator", "text2text_txt_tab_iterator", "txt_line_iterator",
]  # fmt: skip

__getattr__ = names_in_extras(__name__, r"\w*Problem")  # base classes from extras, such as ImageProblem
