"""Draws the attention weights of a trained model, as in the paper's figures 3 to 5.

    t2t-attention --output_dir=train --text="The law will never be perfect, but its application should be just."
    t2t-attention --output_dir=train --text="…" --kind=encoder --layer=5 --heads=5,6 --word=its --output=its.pdf
    t2t-attention --output_dir=train --text="…" --target="…" --kind=memory --view=heat_map --whole_words

Layers and heads are numbered from 1. Without --target, the model's own translation is shown. docs/visualization.md
describes all flags and the Python functions.
"""

import sys

from t2t_lite import files
from t2t_lite.bin import _app, _trained
from t2t_lite.cli import commands
from t2t_lite.cli.commands import Mode, check_mode, chosen_mode
from t2t_lite.errors import UserError
from t2t_lite.settings.ranges import Range
from t2t_lite.visualization import drawing

_NUMBER = Range(1, 10_000)


def define_flags(flags):
    """Declares the command's flags."""
    _trained.define_flags(flags)
    flags.DEFINE_string("text", None, "The sentence.")
    flags.DEFINE_string("target", None, "A translation of --text. Default: the model's own translation.")
    flags.DEFINE_enum("kind", None, ["encoder", "decoder", "memory"], "encoder, decoder: self-attention in "
                      "that part; memory: the decoder's attention to the encoder's output. Default: the first of "
                      "these that the model has.")  # fmt: skip
    flags.DEFINE_enum("view", "lines", ["lines", "heat_map", "grid", "map"], "lines: lines between two columns of "
                      "tokens; heat_map: a matrix for each head; grid: a small matrix for each head of every layer; "
                      "map: an image for each head, for up to 1,100 tokens, which are not named.")  # fmt: skip
    flags.DEFINE_integer("layer", None, "Number of the layer. Default: the last but one.", limits=_NUMBER)
    flags.DEFINE_integers("heads", [], "Numbers of the heads, such as 5,6. Default: all.", _NUMBER)
    flags.DEFINE_string("word", None, "Draw only the attention of this word.")
    flags.DEFINE_bool("whole_words", False, "Merge the pieces of each word.")
    flags.DEFINE_enum(
        "format", None, drawing.FORMATS, "Format of the picture. Default: the extension of --output, or svg."
    )
    flags.DEFINE_path("output", None, "File for the picture. Default: named after its content, such as attention.svg.")
    _app.define_tf1_flags(flags)


def check(flags):
    """Raises `UserError` for mistakes that can be found without heavy imports; sets the default of --output."""
    _trained.check(flags)
    every = modes()
    if flags.text is None and not any(mode.selected_by(flags) for mode in every.values()):
        raise UserError(f"expected {' or '.join(mode.name for mode in every.values())}.")
    mode = chosen_mode(flags, every)
    check_mode(flags, mode, every)
    for name in ("text", "target", "word"):
        try:
            (flags[name].value or "").encode()
        except UnicodeEncodeError:
            raise UserError(f"--{name}: not valid UTF-8. Expected UTF-8 text.") from None
    mode.check(flags)


def check_picture(flags, name, *inputs):
    """Checks --output, whose default is `name` plus the extension, and the flags that name input files.

    Raises `UserError` for mistakes.
    """
    flags.output = flags.output or f"{name}.{flags.format or 'svg'}"
    drawing.check_picture("--output", flags.output)
    if flags.format and drawing.format_of(flags.output) != flags.format:
        raise UserError(
            f"--output={flags.output} does not end in .{flags.format}. Remove --format, or change one of the two flags."
        )
    files.check_outputs({f"--{flag}": flags[flag].value for flag in inputs}, {"--output": flags.output})
    _app.require_files(flags, *inputs)


def run(flags):
    """Draws the attention and prints the picture's path."""
    paths = [run_found.checkpoint for run_found in _trained.find(flags)]
    from t2t_lite.decoding.loading import load
    from t2t_lite.training.distribution import gpus_as_needed

    gpus_as_needed()  # allocates GPU memory only as needed, which leaves the rest to a trainer
    answerer = load(paths if len(paths) > 1 else paths[0], data_dir=flags.data_dir)
    chosen_mode(flags, modes()).run(flags, answerer).save(flags.output)
    print(flags.output)


def _sentence(flags, answerer):
    from t2t_lite.visualization.attention_pictures import attend, draw_attention
    from t2t_lite.visualization.sentence_attention import MOST_POSITIONS, MOST_TOKENS

    most = MOST_POSITIONS if flags.view == "map" else MOST_TOKENS
    attentions = attend(answerer, flags.text, flags.target, most)
    kind = flags.kind or next(iter(attentions))
    if kind not in attentions:
        raise UserError(
            f"--kind={kind}: the model has no such attention for this text. Expected one of {', '.join(attentions)}."
        )
    return draw_attention(attentions[kind], flags.layer, flags.heads or None, flags.word, flags.view, flags.whole_words)


_TEXT = Mode(
    "--text", ("text", "target", "kind", "view", "layer", "heads", "word", "whole_words"), run=_sentence,
    selected_by=lambda flags: flags.text is not None, check=lambda flags: check_picture(flags, "attention"),
)  # fmt: skip


def modes():
    """Returns the command's modes, {name: Mode}; modes of extras come first."""
    return commands.modes("t2t-attention", {"text": _TEXT})


main = _app.command("t2t-attention", define_flags, run, check)


if __name__ == "__main__":
    sys.exit(main())
