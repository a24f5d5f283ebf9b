"""What the settings of problems on the user's own files mean for `tag_own`."""

from t2t_lite.problems.own_settings import explain_settings

explain_settings(
    train_files="tag_own: CoNLL's or CoNLL-U's columns.",
    columns="tag_own: CoNLL's columns of the word and its tag, such as FORM,XPOS; default: word first, tag last.",
)
