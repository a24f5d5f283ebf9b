"""Describes the settings of problems on the user's own files for `tag_own`."""

from t2t_lite.problems.own_settings import explain_settings

explain_settings(
    train_files="tag_own: CoNLL or CoNLL-U files.",
    columns="tag_own: the columns of the word and its tag, such as FORM,XPOS; default: word first, tag last.",
)
