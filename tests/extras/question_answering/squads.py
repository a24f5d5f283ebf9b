"""SQuAD's files."""

import json


def squad(*questions, context="Ada was born in London. She met Charles, who built engines, in 1833."):
    """The text of a file; a question is (id, text, [(start, text), …])."""
    qas = [
        {"id": i, "question": text, "answers": [{"text": a, "answer_start": at} for at, a in answers]}
        for i, text, answers in questions
    ]
    return json.dumps({"version": "1.1", "data": [{"title": "x", "paragraphs": [{"context": context, "qas": qas}]}]})


QUESTIONS = [
    (f"{n}", f"Where was she born, {n}?", [(3, " was"), (16, "London"), (16, "London."), (16, "London")])
    for n in range(30)
]
