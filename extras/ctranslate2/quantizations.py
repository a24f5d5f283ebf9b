"""The types in which CTranslate2 can store weights."""

QUANTIZATIONS = ("int8", "int16", "float16", "bfloat16", "float32")
