"""Files that extras, or a user's folder, add to an export, such as a README.

A function that returns the text of one is registered by the file's name:

    @registry.register_export_file("NOTES.txt")
    def notes(answerer, **facts):
        return f"{facts['license']}\n"
"""

from t2t_lite.registry import Registries


def added_files(answerer, **facts):
    """Returns {name: bytes} of what is registered.

    Args:
        answerer: Translator, Generator or Predictor.
        **facts: `license` and `command`, str, "" where not stated. Of a SavedModel also `signatures` (see
            `t2t_lite.export.by_task`), `path` of its numbered folder and `weights_dtype`; of a folder for another
            toolkit `title`, `library` (the toolkit's name on Hugging Face's Hub), `body` (Markdown: how to call it) and
            `rows` ({title: text}, further facts).
    """
    registered = Registries.export_files
    return {name: registered.get(name)(answerer, **facts).encode() for name in registered.names()}
