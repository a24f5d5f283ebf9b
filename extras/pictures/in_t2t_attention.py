"""`t2t-attention --roles` and `--patterns`."""

import os

from t2t_lite import files
from t2t_lite.bin import _app
from t2t_lite.cli.modes import Mode
from t2t_lite.settings.ranges import PATTERN_LENGTH

HELP = """\
--roles measures what each head does over the lines of a text, and --patterns draws which positions see which:

    t2t-attention --output_dir=train --roles=dev.en --roles_target=dev.de --output=roles.svg
    t2t-attention --output_dir=train --patterns --length=64 --output=patterns.png"""


def define_flags(flags):
    """Declares the flags of both."""
    flags.DEFINE_path("roles", None, "Text file: measure what each head does over its lines, instead of --text.")
    flags.DEFINE_path("roles_target", None, "Their translations; default: the model's own.")
    flags.DEFINE_bool("patterns", False, "Draw which positions see which by the layers' settings, instead of --text.")
    flags.DEFINE_integer("length", None, "Positions in --patterns; default: as many as the model was trained on.",
                         limits=PATTERN_LENGTH)  # fmt: skip


def check(flags):
    """Raises `UserError` for texts that are missing, or that the picture would replace."""
    files.check_outputs({"--roles": flags.roles, "--roles_target": flags.roles_target}, {"--output": flags.output})
    _app.require_files(flags, "roles", "roles_target")


def _roles(flags, answerer):
    from t2t_lite.extras.pictures.head_role_pictures import draw_head_roles, role_table
    from t2t_lite.extras.pictures.head_roles import roles_in_files

    roles = roles_in_files(answerer, flags.roles, flags.roles_target)
    print("\n".join(role_table(roles)))
    return draw_head_roles(roles, f"Roles of attention heads in {os.path.basename(flags.roles)}")


def _patterns(flags, answerer):
    from t2t_lite.extras.pictures.pattern_pictures import draw_patterns, usual_length

    return draw_patterns(answerer.model, flags.length or usual_length(answerer.run))


MODES = {
    "head_roles": Mode("--roles", ("roles_target",), run=_roles),
    "patterns": Mode("--patterns", ("length",), run=_patterns),
}
