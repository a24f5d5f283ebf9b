"""The user's own PNGs: records, what evaluations count, and what t2t-decoder reads and writes of them."""

# Nearest tests of: extras/images/image_own.py

import re
import struct

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.data import batching
from t2t_lite.data.records import Records
from t2t_lite.decoding.generator import Generator
from t2t_lite.errors import UserError
from t2t_lite.export import export_saved_model
from t2t_lite.export.generation_signatures import GenerationSignatures
from t2t_lite.extras.images.png_files import png_bytes, read_png
from t2t_lite.settings.config import HParams
from tests.data.stored import read_examples
from tests.decoding.runs import make_problem_run
from tests.extras.images.pngs import RGB, png
from tests.extras.own_problems import check_bad_files
from tests.problems import own

SIZE = (4, 3, 3)


def image(number, size=SIZE):
    return np.random.default_rng(number).integers(0, 256, size, np.uint8)


def write_images(folder, classes=("cat", "old dog"), count=3, size=SIZE):
    for at, name in enumerate(classes):
        (folder / name).mkdir(parents=True)
        for number in range(count):
            (folder / name / f"{number}.png").write_bytes(
                png_bytes(image(100 * at + number + 50 * ("dev" in folder.name), size))
            )
    return str(folder)


def folders(tmp_path):
    return {f"{name}_files": [write_images(tmp_path / name)] for name in ("train", "dev")}


def test_images_come_back_from_records_with_their_classes(tmp_path):
    own.generated("image_own", tmp_path / "data", **folders(tmp_path))
    data_dir, problem = str(tmp_path / "data"), registry.problem("image_own")
    records, encoder = Records(problem, data_dir, "eval"), problem.get_feature_encoders(data_dir)["targets"]
    rows = list(read_examples(records.paths))
    found = {(*row["inputs"], encoder.decode_image(row["targets"]).tobytes()) for row in rows}
    assert found == {(3 + at, image(100 * at + number + 50).tobytes()) for at in range(2) for number in range(3)}
    assert records.unit_counts() == {"id": 6 * 36, "dim": 6 * 36}
    assert encoder.vocab_size == 3 + 2 + 3 * 256 and {len(row["targets"]) for row in rows} == {36}


@pytest.mark.slow
def test_classes_are_forgotten_in_training_alone(tmp_path):
    problem = own.generated("image_own", tmp_path / "data", **folders(tmp_path))
    problem.unknown_class_rate = 0.2
    paths, hparams = Records(problem, str(tmp_path / "data"), "train").paths, HParams(batch_size=200)
    batches = [batch["inputs"].numpy() for batch in batching.training_batches(problem, hparams, paths).take(20)]
    assert 0.05 < np.mean(np.concatenate(batches) == 2) < 0.4
    evaluated = list(batching.evaluation_batches(problem, hparams, paths))
    assert all((batch["inputs"] != 2).numpy().all() for batch in evaluated)


BAD = {  # the content of dev/cat/9.png or its size, the message
    "another size": ((4, 4, 3), r"9\.png: is 4x4, RGB.* 3x4, RGB.*train/cat/0\.png"),
    "cut off": (png(3, [bytes(9)] * 4, 8, RGB)[:60], r"9\.png.*Copy it again"),
    "of no class": (None, r"cow/9\.png.*cat, old dog"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_images_are_named_and_may_be_skipped(kind, tmp_path):
    given, (content, message) = folders(tmp_path), BAD[kind]
    if content is None:
        (tmp_path / "dev/cow").mkdir()
        (tmp_path / "dev/cat/0.png").rename(tmp_path / "dev/cow/9.png")
    else:
        content = content if isinstance(content, bytes) else png_bytes(image(0, content))
        (tmp_path / "dev/cat/9.png").write_bytes(content)
    records = check_bad_files(own.configured("image_own", **given), message, tmp_path / "data")
    assert len([*read_examples(records.paths)]) == 6 - (content is None)


def test_a_folder_without_images_is_named(tmp_path):
    with pytest.raises(UserError, match=r"--train_files: .*no \.png"):
        registry.problem("image_own").configure(train_files=[str(tmp_path)], dev_files=[str(tmp_path)])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    return make_problem_run(own.configured("image_own", **folders(folder)), "transformer_lm", folder)


@pytest.mark.slow
def test_the_decoder_completes_images(eager, run, call_command, tmp_path):
    given = [image(7), image(8)]
    (tmp_path / "grid.png").write_bytes(png_bytes(np.concatenate(given, axis=1)))
    options = ["--decode_from_file=grid.png", "--decode_to_file=out.png", "--decode_hparams=num_samples=2"]
    result = call_command("t2t-decoder", f"--output_dir={run}", *options)
    assert result.status == 0
    (told,) = [line for line in result.stderr.splitlines() if " of 2 " in line]
    assert told.startswith("generating: 2 of 2 images, ")
    found = read_png(str(tmp_path / "out.png"))
    assert found.shape == (8, 6, 3), "a row for each image, a column for each sample"
    for row in range(2):
        for column in range(2):
            upper = found[4 * row : 4 * row + 2, 3 * column : 3 * column + 3]
            np.testing.assert_array_equal(upper, given[row][:2])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["grid.png", "out.png"]


@pytest.mark.slow
def test_the_decoder_makes_images_of_a_class(run, call_command, tmp_path):
    (tmp_path / "lines").write_text("old dog\n\ncat\n")
    flags = ["--decode_from_file=lines", "--decode_to_file=out.png"]
    assert call_command("t2t-decoder", f"--output_dir={run}", *flags).status == 0
    expected = Generator.load(str(run)).generate(["old dog", "", "cat"])
    encoder = registry.problem("image_own").get_feature_encoders(str(run))["targets"]
    images = [encoder.decode_image(generation.ids) for generation in expected]
    np.testing.assert_array_equal(read_png(str(tmp_path / "out.png")), np.concatenate(images))
    assert {len(generation.ids) for generation in expected} == {36} and len(expected[0].text.split()) == 36


TO_PNG = "--decode_to_file=out.png"
REFUSED = {  # flags of t2t-decoder, words of its message
    "of another size": (["--decode_from_file=wide.png", TO_PNG], r"wide\.png.*4x4, RGB.*3x4, RGB"),
    "perhaps of 12 bits": (["--decode_from_file=deep.png", TO_PNG], r"deep\.png.* 3,600\D.* 12 bits"),
    "of no class": (["--decode_from_file=lines", TO_PNG], "'cow'.*cat, old dog"),
    "a folder": (["--decode_from_file=empty"], r"empty is a folder.* \.png"),
    "an input": (["--decode_from_file=halves", "--decode_to_file=halves/a.png"], r"halves/a\.png would overwrite"),
    "JSON": (["--decode_from_file=lines", TO_PNG, "--n_best_format=json"], "--n_best_format=json"),
    "standard input": ([TO_PNG], "standard input"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_the_decoder_cannot_do_with_images_is_one_line(kind, run, call_command, standard_input, tmp_path):
    (tmp_path / "wide.png").write_bytes(png_bytes(image(0, (4, 4, 3))))
    (tmp_path / "deep.png").write_bytes(png(3, [struct.pack(">9H", *range(0, 4050, 450))] * 4, 16, RGB))
    (tmp_path / "lines").write_text("cow\n")
    for name in ("empty", "halves"):
        (tmp_path / name).mkdir()
    (tmp_path / "halves" / "a.png").write_bytes(png_bytes(image(0)))
    standard_input(b"cat\n")
    flags, message = REFUSED[kind]
    result = call_command("t2t-decoder", f"--output_dir={run}", *flags)
    assert result.status == 2 and len(result.stderr.splitlines()) == 1 and re.search(message, result.stderr)
    assert not (tmp_path / "out.png").exists()


@pytest.mark.slow
def test_an_export_makes_whole_images_unless_a_call_says_less(run):
    generator, texts = Generator.load(str(run)), ["old dog", "", "cat"]
    assert GenerationSignatures(generator, None).settings["sampling"]
    signatures = GenerationSignatures(generator, None, sampling=False, beam_size=1, extra_length=4)
    functions, inputs = signatures.functions(), tf.constant(texts)
    every = [g.ids for g in generator.generate(texts, sampling=False, beam_size=1)]
    assert {len(ids) for ids in every} == {36}

    def shown(ids):
        return generator.encoders["targets"].tf_decode(tf.ragged.constant(ids)).numpy().tolist()

    assert functions["serving_default"](inputs)["outputs"].numpy().tolist() == shown(every)
    part = functions["with_options"](inputs, tf.constant(0.6), tf.constant([5, 9, 99]))["outputs"].numpy()
    assert part.tolist() == shown([every[0][:5], every[1][:9], every[2]])
    assert "outputs complete examples of 37" in signatures.card()[0]["search"]


@pytest.mark.slow
def test_a_server_streams_images(run, tmp_path):
    served_generator = pytest.importorskip("t2t_lite.extras.serving.served_generator")
    from t2t_lite.extras.serving.refusals import Refusal

    generator, options = Generator.load(str(run)), {"sampling": False, "beam_size": 1}
    served = served_generator.ServedGenerator(export_saved_model(generator, str(tmp_path / "export"), **options))
    stream, (expected,) = served.stream("old dog", 36, served.options), generator.generate(["old dog"], **options)
    assert "".join(stream) == expected.text and stream.ids == expected.ids
    with pytest.raises(Refusal, match=r"^prompt: 'mouse' is not a class of these images"):
        served.stream("mouse", 36, served.options)
