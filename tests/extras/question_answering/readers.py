"""The reader of SQuAD's files: see `tests.files.readers`."""

import json

from t2t_lite.extras.question_answering.squad_files import read_squad
from tests.files.readers import READ, TEXT, Reader, read_all


def _squad(*questions):
    """The text of a file; a question is (id, [(start, answer), …])."""
    qas = [
        {"id": i, "question": "?", "answers": [{"text": a, "answer_start": at} for at, a in answers]}
        for i, answers in questions
    ]
    context = "Ada was born in London. She met Charles, who built engines, in 1833."
    return json.dumps({"data": [{"paragraphs": [{"context": context, "qas": qas}]}]})


READERS = {
    "questions": Reader(
        _squad(("1", [(16, "London")])).encode(), read_all(read_squad), TEXT | {"CR": READ, "a bad line": "not UTF-8"}
    )
}
DAMAGED = {
    "questions": [
        ("a", _squad()[:-9], ": not JSON, or cut off"),
        ("a", "[]", ": not in SQuAD's format"),
        ("a", '{"data": [{"paragraphs": [{"context": 3, "qas": [{}]}]}]}', ": not in SQuAD's format"),
        ("a", _squad(("a", [(16, None)])), ": not in SQuAD's format"),
        ("a", _squad(("a", [(5, "London")])), ".* question 'a': the answer 'London' is not in its con"),
        ("a", _squad(("a", [(-1, "")])), ".* the answer '' is not in its context at character -1"),
        ("a", _squad(("a", [])), ".* question 'a': has no answer. Expected one at least"),
        ("a", _squad(("1", [(16, "London")]), ("1", [(16, "London")])), ".* question '1': its id occurs twice"),
        ("a", _squad(("a", [(15, "London")])), ".* is not in its context at character 15. .*at character 16."),
        ("a", _squad(("a", [(0, "in")])), ".* at character 0. .*at character 13, and 2 times elsewhere"),
        ("a", _squad(("a", [(3, "Paris")])), ".* the answer 'Paris' is not in its context at character 3. .*nowhere"),
    ],
}
