"""Next sentences and the order of sentences: what the two texts of a row are, and what draws one of the two rows."""

import random

import pytest

from t2t_lite import registry
from t2t_lite.data.manifests import find_manifest
from t2t_lite.errors import UserError

LENGTH = 80
NAMES = ("next_sentence_own", "sentence_order_own")


def documents(count=30, sentences=20):
    """Texts in which each sentence says where it stands."""
    draw = random.Random(2)
    return [
        [
            f"d{document} s{number} {'so' * draw.randrange(1, 5)} it goes"
            for number in range(draw.randrange(2, sentences))
        ]
        for document in range(count)
    ]


@pytest.fixture(scope="module", params=NAMES)
def folder(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    text = "\n\n".join("\n".join(document) for document in documents())
    (folder / "a.txt").write_text(f"\n\n{text}\n<|endoftext|>\nalone\n")
    problem = registry.problem(request.param)
    paths = {"train_files": [str(folder / "a.txt")], "dev_files": [str(folder / "a.txt")]}
    problem.configure(**paths, vocab_size=310, sequence_length=LENGTH)
    problem.generate_data(str(folder), str(folder))
    return request.param, str(folder)


def rows(name, folder, split="eval", batch_size=256, count=None):
    """Returns (first text, second text, number of the sentence class) of every row, without masks."""
    problem = registry.problem(name)
    encoder = problem.get_feature_encoders(folder)["targets"]
    hparams = registry.hparams("bert_tiny").parse(f"batch_size={batch_size}")
    found = []
    for batch in problem.dataset(folder, split, hparams):
        batch = batch[0] if isinstance(batch, tuple) else batch
        inputs, targets, sentence = (batch[feature].numpy() for feature in ("inputs", "targets", "sentence"))
        for seen, wanted, number in zip(inputs, targets, sentence, strict=True):
            ids = [int(t or i) for i, t in zip(seen, wanted, strict=True) if i]
            assert len(ids) <= LENGTH and ids.count(1) == 2 and ids[-1] == 1 and wanted.any()
            middle = ids.index(1)
            found.append((encoder.decode(ids[:middle]), encoder.decode(ids[middle + 1 : -1]), int(number)))
        if count and len(found) >= count:
            return found
    return found


@pytest.mark.slow
def test_the_second_text_follows_the_first_one_or_does_not(folder):
    name, path = folder
    texts = [" ".join(document) for document in documents()]
    found = rows(name, path)
    numbers = [number for _, _, number in found]
    assert 0.35 < numbers.count(1) / len(found) < 0.65 and {*numbers} == {1, 2}
    cut = 0
    for first, second, number in found:
        assert first and second
        follows = any(f"{first} {second}" in text for text in texts)
        assert follows == (number == 1)
        assert any(f"{first} " in f"{text} " for text in texts)
        cut += not second.endswith("goes")
        if number == 2 and name == "sentence_order_own":
            assert any(f"{second} {first}" in text for text in texts)
        elif number == 2:
            assert first.split()[0] not in second.split(), "the other text is of the same document"
    assert cut <= 0.05 * len(found)


@pytest.mark.long
@pytest.mark.few("next_sentence_own")
def test_an_evaluation_is_the_same_in_any_batches_and_epochs_of_training_differ(folder):
    once, again = (sorted(rows(*folder, batch_size=size)) for size in (256, 100))
    assert once == again
    classes = {}
    for first, second, number in rows(*folder, split="train", count=4 * len(once)):
        classes.setdefault(frozenset((first, second)) if "order" in folder[0] else first, set()).add(number)
    assert sum(len(numbers) == 2 for numbers in classes.values()) > len(classes) / 2


def test_new_pieces_would_tell_the_two_rows_apart(folder):
    name, path = folder
    hparams = registry.hparams("bert_tiny").parse("batch_size=256,bpe_dropout=0.1")
    with pytest.raises(UserError, match=rf"bpe_dropout=0\.1: new pieces would give away what {name} teaches"):
        registry.problem(name).dataset(path, "train", hparams)


@pytest.mark.parametrize("name", NAMES)
def test_one_long_document_is_enough_and_long_sentences_are_cut(name, tmp_path):
    text = tmp_path / "a.txt"
    text.write_text("\n".join(" ".join(f"w{i}" for i in range(at, at + 30)) for at in range(40)))
    problem = registry.problem(name)
    problem.configure([str(text)], [str(text)], vocab_size=310, sequence_length=10)
    problem.generate_data(str(tmp_path), str(tmp_path))
    assert len(find_manifest(problem, str(tmp_path))["splits"]) == 2


@pytest.mark.slow
def test_the_other_text_of_a_single_document_is_none_of_the_first(tmp_path):
    (tmp_path / "a.txt").write_text("\n".join(f"s{number} goes" for number in range(200)))
    paths = [str(tmp_path / "a.txt")]
    problem = registry.problem(NAMES[0])
    problem.configure(paths, paths, vocab_size=310, sequence_length=LENGTH)
    problem.generate_data(str(tmp_path), str(tmp_path))
    for first, second, number in rows(NAMES[0], str(tmp_path)):
        assert number == 1 or not {*first.split()} & {*second.split()} - {"goes"}


def test_before_the_first_text_the_other_ends_where_it_begins():
    document, seen = [[number] for number in range(10)], set()
    for seed in range(30):
        others = registry.problem(NAMES[0]).others([document], 0, (4, 6, 8), 10, random.Random(seed))
        assert others[0] == [[4], [5]]
        seen.add(tuple(number for (number,) in others[1]))
    assert seen == {(0, 1, 2, 3), (1, 2, 3), (2, 3), (3,), (9,)}


def test_documents_of_one_sentence_are_not_enough(tmp_path):
    (tmp_path / "a.txt").write_text("\n\n".join(f"sentence {i}, so it goes" for i in range(40)))
    paths = [str(tmp_path / "a.txt")]
    problem = registry.problem(NAMES[0])
    problem.configure(paths, paths, vocab_size=310, sequence_length=LENGTH)
    with pytest.raises(UserError, match=r"no example for the train set\. Expected documents of two sentences or more"):
        problem.generate_data(str(tmp_path), str(tmp_path))
    assert not list(tmp_path.glob("*-of-*")) and not list(tmp_path.glob("*manifest.json"))


def test_the_model_has_a_head_for_it_and_rows_for_two_texts_are_needed(tmp_path):
    hparams = registry.hparams("bert_tiny").of_model(registry.model("transformer_encoder"))
    assert registry.problem(NAMES[0]).model_hparams(hparams).sentence_classes == 2
    (tmp_path / "a.txt").write_text("one\ntwo")
    paths = [str(tmp_path / "a.txt")]
    problem = registry.problem(NAMES[0])
    problem.configure(paths, paths, sequence_length=3)
    with pytest.raises(UserError, match=r"--sequence_length=3: too few ids for two texts\. Expected 4"):
        problem.generate_data(str(tmp_path), str(tmp_path))
