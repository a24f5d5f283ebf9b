"""--translations_dir scores all translations in a folder in the order of their steps:

t2t-bleu --translations_dir=translations --reference=test.de --event_dir=events --wait_minutes=60
"""

from t2t_lite.cli.commands import Mode
from t2t_lite.settings.ranges import COUNT, MINUTES, Range

_FLAGS = ("event_dir", "tag_suffix", "min_steps", "wait_minutes", "report_zero")


def define_flags(flags):
    """Declares the flags."""
    flags.DEFINE_path("translations_dir", None, "Folder of translations …-<step>, as written by t2t-translate-all.")
    flags.DEFINE_path("event_dir", None, "Folder for TensorBoard's curves and for the last scored step.")
    flags.DEFINE_string("tag_suffix", "", "Appended to the tags BLEU_uncased and BLEU_cased.")
    flags.DEFINE_integer(
        "min_steps",
        -1,
        "Skip translations before this step; -1 resumes after the step in --event_dir/last_evaluated_step.txt.",
        limits=Range(0, COUNT.most, also=(-1,)),
    )
    flags.DEFINE_integer("wait_minutes", 0, "Number of minutes to wait for another translation.", limits=MINUTES)
    flags.DEFINE_bool(
        "report_zero",
        None,
        "Begin the curve with 0 at step 0, at the time of the oldest file. Default: only if scoring starts at step 0.",
    )


def run(flags, references, how):
    """Prints the scores of each translation as soon as its file exists."""
    from t2t_lite.extras.translate_all.score_folder import score_folder

    settings = {name: flags[name].value for name in _FLAGS}
    for lines in score_folder(
        flags.translations_dir, flags.reference[0], references, as_json=flags.json, **how, **settings
    ):
        print("\n".join(lines), flush=True)


MODES = {
    "folder": Mode(
        "--translations_dir",
        ("translations_dir", *_FLAGS),
        ("translations_dir", "reference"),
        run,
        selected_by=lambda flags: bool(flags.translations_dir),
    )
}
