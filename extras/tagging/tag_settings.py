"""`tag_own`'s descriptions of the settings that it shares with other problems that read the user's own files."""

from t2t_lite.problems.own_settings import explain_settings

explain_settings(
    train_files="tag_own: CoNLL or CoNLL-U files.",
    columns="tag_own: columns of the word and its tag. Default: the first and the last; in CoNLL-U, FORM,UPOS.",
)
