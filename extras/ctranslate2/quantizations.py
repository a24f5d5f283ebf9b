"""How CTranslate2 stores weights."""

QUANTIZATIONS = ("int8", "int16", "float16", "bfloat16", "float32")
