"""The reader of SQuAD's files: see `tests.files.readers`. What damages them: test_squad.py."""

from t2t_lite.extras.question_answering.squad import read_squad
from tests.extras.question_answering.squads import squad
from tests.files.readers import READ, TEXT, Reader, read_all

READERS = {
    "questions": Reader(
        squad(("1", "?", [(16, "London")])).encode(),
        read_all(read_squad),
        TEXT | {"CR": READ, "a bad line": "not UTF-8"},
    )
}
DAMAGED = {}
