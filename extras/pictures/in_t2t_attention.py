"""--roles measures the role of each head, and --patterns draws attention patterns:

t2t-attention --output_dir=train --roles=dev.en --roles_target=dev.de --output=roles.svg
t2t-attention --output_dir=train --patterns --length=64 --output=patterns.png
"""

import os

from t2t_lite.bin.t2t_attention import check_picture
from t2t_lite.cli.commands import Mode
from t2t_lite.settings.ranges import PATTERN_LENGTH


def define_flags(flags):
    """Declares the flags."""
    flags.DEFINE_path("roles", None, "Text file on which to measure the role of each head. Replaces --text.")
    flags.DEFINE_path("roles_target", None, "Translations of the --roles file. Default: the model's own.")
    flags.DEFINE_bool("patterns", False, "Draw the layers' attention patterns. Replaces --text.")
    flags.DEFINE_integer("length", None, "Number of positions for --patterns. Default: the length in training.",
                         limits=PATTERN_LENGTH)  # fmt: skip


def _roles(flags, answerer):
    from t2t_lite.extras.pictures.head_roles import draw_head_roles, role_table, roles_in_files

    roles = roles_in_files(answerer, flags.roles, flags.roles_target)
    print("\n".join(role_table(roles)))
    return draw_head_roles(roles, f"Roles of attention heads in {os.path.basename(flags.roles)}")


def _patterns(flags, answerer):
    from t2t_lite.extras.pictures.pattern_pictures import draw_patterns, usual_length

    return draw_patterns(answerer.model, flags.length or usual_length(answerer.run))


MODES = {
    "roles": Mode(
        "--roles",
        ("roles_target",),
        run=_roles,
        selected_by=lambda flags: flags.roles,
        check=lambda flags: check_picture(flags, "head_roles", "roles", "roles_target"),
    ),
    "patterns": Mode(
        "--patterns",
        ("patterns", "length"),
        run=_patterns,
        selected_by=lambda flags: flags.patterns,
        check=lambda flags: check_picture(flags, "patterns"),
    ),
}
