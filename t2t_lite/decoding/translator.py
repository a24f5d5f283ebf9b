"""Translator: text in, text out, by beam search with a trained model."""

import dataclasses

from t2t_lite.decoding.beam_search import EOS_ID
from t2t_lite.decoding.options import SearchOptions
from t2t_lite.decoding.searcher import Searcher
from t2t_lite.errors import UserError

MAX_INPUT_LENGTH = 1024


@dataclasses.dataclass(frozen=True)
class Hypothesis:
    """One way to translate a sentence.

    Attributes:
        text: str.
        score: float, log-probability (nats) / length penalty; 0 for a blank.
        tokens: list of str, the vocabulary's pieces.
        ids: list of int, without EOS.
        ended: bool, False where the output was cut off at its longest length.
    """

    text: str = ""
    score: float = 0.0
    tokens: list = dataclasses.field(default_factory=list)
    ids: list = dataclasses.field(default_factory=list)
    ended: bool = True


@dataclasses.dataclass(frozen=True)
class Translation:
    """What became of one sentence.

    Attributes:
        hypotheses: tuple of at most n_best `Hypothesis`, best first; at least one. Where the problem chooses
            (`Problem.choose_output`), its choice is the first.
        truncated: bool, whether the sentence was longer than `max_input_length` and cut off.
        text, score, tokens: those of the first hypothesis.
    """

    hypotheses: tuple = (Hypothesis(),)
    truncated: bool = False

    text = property(lambda self: self.hypotheses[0].text)
    score = property(lambda self: self.hypotheses[0].score)
    tokens = property(lambda self: self.hypotheses[0].tokens)


class Translator:
    """Translates with a model. Make it once and call it often: it keeps what was traced and compiled.

    The model's weights are read at every call; the trainer uses one on the model in training.

    Args:
        model: a model, see `t2t_lite.decoding.beam_search` for what it may offer.
        encoders: {"inputs": TextEncoder, "targets": TextEncoder}.
        hparams: HParams of the model.
        problem: the Problem, or None.

    Example:
        >>> translator = t2t_lite.Translator.load("train/ende")            # doctest: +SKIP
        >>> translator.translate(["Hello world."])[0].text                 # doctest: +SKIP
        'Hallo Welt.'
    """

    def __init__(self, model, encoders, hparams, problem=None):
        self.model = model
        self.encoders = encoders
        self.hparams = hparams
        self.problem = problem
        self.run = None
        learned = hparams.pos == "emb"
        self.max_input_length = min(hparams.max_position, MAX_INPUT_LENGTH) if learned else MAX_INPUT_LENGTH
        self._searcher = Searcher(model, max_position=hparams.max_position if learned else None)

    @classmethod
    def load(cls, path, data_dir=None):
        """Loads a trained model.

        Args:
            path: an output_dir (its newest checkpoint), a checkpoint `…/model.ckpt-N`, or a folder of averages.
            data_dir: where the vocabulary is, if it is not beside the checkpoint.

        Raises:
            UserError: nothing there, or it does not fit together.
        """
        from t2t_lite.models.restore import open_run

        run = open_run(path, data_dir)
        translator = cls(run.model, run.encoders, run.hparams, run.problem)
        translator.run = run
        return translator

    def translate(self, texts, *, max_input_length=None, on_progress=None, **options):
        """Translates sentences; one that is blank gives a blank.

        Args:
            texts: list of str.
            max_input_length: int, longer sentences are cut to this many ids, EOS included; None: 1024, or the size
                of a learned position table.
            on_progress: None, or a function that is told how many sentences each finished batch had.
            **options: of `SearchOptions`: beam_size=4, alpha=0.6, extra_length=50, batch_size=32,
                length_penalty="gnmt", n_best=1, compile=None; a problem may have other defaults (`decode_defaults`).
                An output has at most as many ids as its own input, EOS included on both sides, plus extra_length.

        Returns:
            list of `Translation`, in the order of `texts`. Sentences do not influence one another.

        Raises:
            UserError: an option out of range.
        """
        if isinstance(texts, str | bytes):
            raise TypeError(f"`texts` must be a list of str, received one {type(texts).__name__}.")
        texts, options = [self._prepared(text) for text in texts], self._options(options)
        longest = self.checked_length(max_input_length) - 1  # beside EOS
        encoder, decoder = self.encoders["inputs"], self.encoders["targets"]
        ids = {at: _encode(encoder, text, at) for at, text in enumerate(texts) if text.strip()}
        ids = {at: pieces for at, pieces in ids.items() if pieces}  # nothing but control characters is a blank, too
        translations = [Translation()] * len(texts)
        if on_progress and len(ids) < len(texts):
            on_progress(len(texts) - len(ids))
        sources = [[*pieces[:longest], EOS_ID] for pieces in ids.values()]
        for at, results in zip(ids, self._search(sources, options, on_progress), strict=True):
            hypotheses = tuple(
                Hypothesis(self._shown(texts[at], r.ids), r.score, decoder.pieces(r.ids), r.ids, r.ended)
                for r in results
            )
            translations[at] = Translation(hypotheses, truncated=len(ids[at]) > longest)
        return translations

    def translate_ids(self, inputs, **options):
        """Translates ids to ids, without any text.

        Args:
            inputs: list of lists of int, as records hold them: each ends in EOS (1); 0s after it are ignored.
            **options: of `SearchOptions`.

        Returns:
            list of lists of int: the first output of each, see `Translation`, without EOS.

        Raises:
            UserError: an id outside the vocabulary, or an option out of range.
        """
        size, longest = self.encoders["inputs"].vocab_size, self.checked_length(None)
        sources = []
        for row, ids in enumerate(inputs):
            ids = [int(i) for i in ids]
            ids = ids[: ids.index(EOS_ID)] if EOS_ID in ids else ids
            wrong = [i for i in ids if not 0 < i < size]
            if wrong:
                raise UserError(f"inputs, row {row}: id {wrong[0]} is outside the vocabulary of {size} ids.")
            sources.append([*ids[: longest - 1], EOS_ID])
        return [results[0].ids for results in self._search(sources, self._options(options))]

    def _search(self, sources, options, on_progress=None):
        """Returns for each source a list of at most n_best `SearchResult`, the problem's choice first."""
        if options.sampling or not (self.problem and self.problem.chooses_output):
            return self._searcher.search(sources, options, on_progress=on_progress)
        every = dataclasses.replace(options, n_best=options.beam_size)
        found = self._searcher.search(sources, every, on_progress=on_progress)
        source, target = self.encoders["inputs"], self.encoders["targets"]
        for ids, results in zip(sources, found, strict=True):
            outputs = [target.decode(result.ids) for result in results]
            results.insert(0, results.pop(self.problem.choose_output(source.decode(ids), outputs, self.encoders)))
            del results[options.n_best :]
        return found

    def _options(self, given):
        defaults = self.problem.decode_defaults if self.problem else {}
        return SearchOptions(**{**defaults, **given})

    def _prepared(self, text):
        text = _valid_unicode(text)
        return self.problem.input_text(text) if self.problem else text

    def _shown(self, text, ids):
        outputs = self.encoders["targets"].decode(ids)
        return self.problem.output_text(text, outputs, self.encoders) if self.problem else outputs

    def checked_length(self, length):
        """Returns the longest input in ids, EOS included: `length`, or the model's own maximum for None.

        Raises:
            UserError: less than 1, or beyond a learned position table.
        """
        if length is None:
            return self.max_input_length
        if not length >= 1:
            raise UserError(f"max_input_length={length}: expected at least 1.")
        if self.hparams.pos == "emb" and length > self.hparams.max_position:
            raise UserError(
                f"max_input_length={length}: the model's table of positions ends at {self.hparams.max_position}."
            )
        return length


def _encode(encoder, text, at):
    try:
        return encoder.encode(text)
    except UserError as error:
        raise UserError(f"sentence {at + 1}: {error}") from None


def _valid_unicode(text):
    """Lone surrogates, which no UTF-8 text has, become U+FFFD."""
    try:
        text.encode("utf-8")
        return text
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
