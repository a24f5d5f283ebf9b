"""Finds the vocabulary that `--vocab_from` names: files of one of the kinds in `vocabulary_files`, or a folder."""

import os

from t2t_lite import files, registry
from t2t_lite.errors import UserError
from t2t_lite.text import vocabulary_files


def find_vocabularies(paths, languages):
    """Returns {"inputs": path, "targets": path} of vocabulary files; equal if both sides share one.

    Args:
        paths: [model], [model of the inputs, model of the targets], [data_dir] or [output_dir].
        languages: (of inputs, of targets). If a folder's problem is in the other direction, its vocabularies are
            swapped.

    Raises:
        UserError: there is no vocabulary, several, or one of another kind.
    """
    flag = f"--vocab_from={','.join(paths)}"
    if len(paths) > 2:
        raise UserError(f"{flag}: found {len(paths)}. Expected one .model file, two (inputs,targets), or one folder.")
    for path in paths:
        if not files.exists(path):
            raise UserError(f"{flag}: no such file or folder: {path}. Check the path.")
    folders = [path for path in paths if files.is_folder(path)]
    if folders and len(paths) > 1:
        raise UserError(f"{flag}: {folders[0]} is a folder. Expected two .model files, or one folder alone.")
    vocabularies = _in_folder(flag, folders[0], languages) if folders else {"inputs": paths[0], "targets": paths[-1]}
    return {side: path if "://" in path else os.path.abspath(path) for side, path in vocabularies.items()}


def count_pieces(path):
    """Returns the number of pieces of a vocabulary file. Raises `UserError` for another file."""
    import sentencepiece

    if vocabulary_files.ending_of(path) != vocabulary_files.SENTENCEPIECE:
        return vocabulary_files.open_encoder(path).vocab_size
    model = files.read_bytes(path)
    try:
        return sentencepiece.SentencePieceProcessor(model_proto=model).vocab_size()
    except (RuntimeError, ValueError):
        raise UserError(
            f"--vocab_from: {path}: not a SentencePiece model ({len(model):,} bytes). Expected the .model file that "
            "t2t-datagen or spm_train wrote, or a file named .subwords, vocab.json, encoder.json or vocab.txt."
        ) from None


def _in_folder(flag, folder, languages):
    problem = registry.problem(_problem_name(flag, folder))
    encoders = problem.get_feature_encoders(folder)
    texts = [name for name in ("inputs", "targets") if name in getattr(problem, "text_features", encoders)]
    encoders = {"inputs": encoders[texts[0]], "targets": encoders[texts[-1]]}  # the same if there is only one text
    for encoder in encoders.values():
        if not isinstance(encoder, vocabulary_files.OF_PIECES):
            raise UserError(f"{flag}: the vocabulary of {problem.full_name} has no pieces. Expected one of pieces.")
    sides = ["inputs", "targets"]
    if problem.languages and tuple(languages) == tuple(reversed(problem.languages)):
        sides.reverse()
    return {"inputs": encoders[sides[0]].path, "targets": encoders[sides[1]].path}


def _problem_name(flag, folder):
    """Returns the name of the problem of a data_dir or an output_dir."""
    from t2t_lite.runs.run_config import read_run_config

    if run := read_run_config(folder):
        return run["problem"]
    manifests = files.list_files(folder, r".*-manifest\.json")
    requests = (files.read_json(path, {"request": {"problem?": str}})["request"] for path in manifests)
    names = sorted({request.get("problem", "") for request in requests} - {""})
    if len(names) == 1:
        return names[0]
    if names:
        raise UserError(f"{flag}: holds the data of {', '.join(names)}. Expected a .model file in it.")
    raise UserError(
        f"{flag}: neither data of t2t-datagen nor a run of t2t-trainer. Expected such a folder, or a .model file."
    )
