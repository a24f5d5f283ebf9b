"""Masked language modelling on the user's own text files: `masked_lm_own` (BERT's first task) and two variants.

    t2t-datagen --problem=masked_lm_own --train_files=a.txt --dev_files=b.txt --vocab_size=8000 --data_dir=D

The files, the rows and the vocabulary are as in `languagemodel_own`. Masks are sampled whenever a batch is read, so
that each epoch has different masks (RoBERTa's dynamic masking).

`next_sentence_own` (BERT) and `sentence_order_own` (ALBERT) also predict the relation of a row's two texts. For
these two problems, a line of a file is a sentence, or any part of a text that should not be split. A blank line ends a
document. A record has a row of two texts, `targets`, and an alternative row, `other`; one of these rows is sampled
whenever a batch is read. The feature `sentence` is 1 if the original row was sampled and 2 if the alternative row was
sampled.
"""

import functools
import hashlib
import itertools
import random
import types

from t2t_lite import registry
from t2t_lite.corpora import plain_text
from t2t_lite.data.problem import FILE_TAGS, ChoppedTextProblem, VocabType
from t2t_lite.errors import LOGGER, UserError, counted, located
from t2t_lite.problems.languagemodel import LanguagemodelOwn
from t2t_lite.problems.own_corpus import read_pieces
from t2t_lite.problems.own_settings import OwnSetting, own_settings
from t2t_lite.text.encoder_parts import mask_in, mask_of
from t2t_lite.text.vocabulary import EOS_ID

_MASK = "[MASK]"
_SHORTER = 0.1  # fraction of rows that get a random length, as in the code of BERT and ALBERT
_SHORTEST_ROW = 4  # length of the shortest row: two texts of one id, each followed by EOS


@registry.register_problem
class MaskedLmOwn(LanguagemodelOwn):
    """The user's own text files, given to `configure`; a model sees a part of the text and predicts the rest."""

    task = "masked_language_model"
    features = types.MappingProxyType({"inputs": 2, "targets": 2})
    record_features = ("targets",)
    loss_metrics = ()  # the masked ids are predicted from both sides, so their loss is not comparable per word or byte
    # BERT has 512 positions, the first of which is reserved by the model.
    settings = own_settings(
        *LanguagemodelOwn.settings, "mask_rate", "mask_unit", OwnSetting("phrases", list, None),
        sequence_length=511, vocab_type=VocabType.SUBWORD.value,
    )  # fmt: skip

    def check_settings(self, values, paths):
        """See `OwnCorpus.check_settings`; also raises `UserError` if an existing vocabulary has no mask piece."""
        super().check_settings(values, paths)
        if values["vocab_type"] == VocabType.BYTE_LEVEL_BPE.value:
            raise UserError(
                f"--vocab_type={VocabType.BYTE_LEVEL_BPE.value}: a learned vocabulary of this kind has no {_MASK}. "
                "Expected subwords, or --vocab_from with a published vocabulary that has a mask, such as RoBERTa's."
            )
        for path in (values["vocab_from"] or {}).values():
            with located(f"--vocab_from: {path}"):
                mask_in(read_pieces(path))
        unit, phrase_file = values.get("mask_unit"), values.get("phrase_file")
        if (unit == "phrase") != bool(phrase_file):
            flag = f"and --phrase_file={phrase_file}" if phrase_file else "without --phrase_file"
            raise UserError(
                f"--mask_unit={unit} {flag}: expected --mask_unit=phrase --phrase_file=FILE, with one phrase per line, "
                "or neither flag."
            )
        if phrase_file:
            lines = plain_text.read_lines(phrase_file, self.on_bad_line)
            values["phrases"] = sorted({plain_text.clean(line) for line in lines if line} - {""})
            if not values["phrases"]:
                raise UserError(f"--phrase_file={phrase_file}: all its lines are blank. Expected one phrase per line.")

    def generation_settings(self):
        """See `OwnCorpus.generation_settings`; a hash represents the phrases."""
        phrases = "\n".join(self.config.get("phrases") or ())
        sha256 = {"sha256": hashlib.sha256(phrases.encode()).hexdigest()} if phrases else None
        return {**super().generation_settings(), "phrases": sha256}

    @property
    def additional_reserved_tokens(self):
        """The mask piece, which is added to a learned vocabulary."""
        return () if self.existing_vocabularies else (_MASK,)

    def feature_encoders(self, data_dir):
        """See `Problem.feature_encoders`; inputs and targets share one vocabulary."""
        from t2t_lite.data.corruption import masking_of

        encoder = super().feature_encoders(data_dir)["targets"]
        c = self.config
        self.masking = masking_of(encoder, c["mask_rate"], c["mask_unit"], c.get("phrases") or ())
        return {"inputs": encoder, "targets": encoder}

    def nonblank_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields the samples, then warns if the text itself contains the mask and the vocabulary encodes it as such."""
        encoder = self.feature_encoders(data_dir)["targets"]
        mask_id, mask = mask_of(encoder)
        count = 0
        for sample in super().nonblank_samples(data_dir, tmp_dir, dataset_split):
            count += sample["targets"].count(mask)
            yield sample
        if count and mask_id in encoder.encode(mask):
            LOGGER.warning(
                f"{self.name}: the text of the {FILE_TAGS[dataset_split]} set contains {mask} "
                f"({counted(count, 'time')}). It is read as a mask, and nothing is learned from it. Remove it from the "
                "text unless this is intended."
            )

    def corrupt(self, batch, seeds):
        """Masks a batch: returns the masked ids as inputs, and the ids to predict as targets."""
        inputs, targets = self.masking(batch["targets"], seeds)
        return {"inputs": inputs, "targets": targets}


class _SentencePretrainingOwn(MaskedLmOwn):
    """The base class for documents with one sentence per line, given to `configure`. Subclasses define `others`."""

    features = types.MappingProxyType({"inputs": 2, "targets": 2, "sentence": 1})
    smallest_corpus = (
        "documents of at least two sentences, with one sentence per line and a blank line between documents"
    )
    record_features = ("targets", "other")
    keeps_pieces = True  # most original rows are full, so rows that BPE-dropout lengthens would look different
    rows_are_windows = False

    def prepare_generation(self, data_dir, tmp_dir):
        """Checks that `sequence_length` has room for two texts; see `OwnCorpus.prepare_generation`."""
        if self.sequence_length < _SHORTEST_ROW:
            raise UserError(
                f"--sequence_length={self.sequence_length}: too few ids for two texts. Expected {_SHORTEST_ROW} or "
                "more."
            )
        super().prepare_generation(data_dir, tmp_dir)

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields {"targets": line, "begins": whether the line begins a document}."""
        for file in self.generate_documents(data_dir, tmp_dir, dataset_split):
            begins = True
            for line in file:
                if line := line.strip():
                    yield {"targets": line, "begins": begins}
                begins = not line

    def nonblank_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields all samples; counts the words, characters and bytes of each sample as a separate text."""
        return super(ChoppedTextProblem, self).nonblank_samples(data_dir, tmp_dir, dataset_split)

    def sample_encoder(self, data_dir):
        """Returns a function that turns consecutive samples into rows."""
        encoder = self.feature_encoders(data_dir)["targets"]
        return functools.partial(_records, encoder, self.sequence_length, type(self).others)

    def model_hparams(self, hparams):
        """See `Problem.model_hparams`."""
        hparams = super().model_hparams(hparams)
        return hparams.override_from_dict({"sentence_classes": 2}) if "sentence_classes" in hparams else hparams

    def eval_metrics(self):
        """Returns the names of the metrics for masked pieces and for the relation of the two texts."""
        return [*super().eval_metrics(), "sentence_accuracy"]

    def corrupt(self, batch, seeds):
        """Selects one of the two rows and masks it; the feature `sentence` is the selected row's number."""
        from t2t_lite.data.corruption import one_of

        rows, number = one_of(batch["targets"], batch["other"], seeds)
        return {**super().corrupt({"targets": rows}, seeds), "sentence": number}


@registry.register_problem
class SentenceOrderOwn(_SentencePretrainingOwn):
    """The alternative row has the two texts in reverse order (Lan et al. 2020, "ALBERT", section 3.1)."""

    @staticmethod
    def others(documents, number, place, room, draw):
        """Returns the two texts of the alternative row: the original texts in reverse order."""
        start, border, end = place
        return documents[number][border:end], documents[number][start:border]


@registry.register_problem
class NextSentenceOwn(_SentencePretrainingOwn):
    """The alternative row has the same first text, but a random second text (Devlin et al. 2019, "BERT", 3.1)."""

    @staticmethod
    def others(documents, number, place, room, draw):
        """Returns the two texts of the alternative row; the second is None if no other text is available.

        Args:
            documents: list of documents. A document is a list of sentences, and a sentence is a list of ids.
            number: int, the index of the row's document.
            place: (start, border, end): where the first text begins, and where the second text begins and ends.
            room: int, the total number of ids in both texts.
            draw: random.Random.
        """
        start, border, end = place
        first = documents[number][start:border]
        room -= sum(map(len, first))
        if len(documents) > 1:
            other = draw.randrange(len(documents) - 1)
            sentences = documents[other + (other >= number)]
            places = range(len(sentences))
        else:
            sentences = documents[number]
            places = [at for at in range(len(sentences)) if not start <= at <= end]
        fitting = [at for at in places if len(sentences[at]) <= room]
        if not places:
            return first, None
        at = draw.choice(fitting or places)
        is_before = sentences is documents[number] and at < start
        return first, _fitting(sentences[at : start if is_before else None], room)


def _records(encoder, length, others, samples):
    """Returns {"targets", "other"} for every row; drops a single remaining sentence at the end of a document."""
    # Sentences are split at `longest` ids, so that any two of them fit into a row.
    documents, longest, records = [], length // 2 - 1, []
    for sample in samples:
        if sample["begins"] or not documents:
            documents.append([])
        ids = encoder.encode(" " + sample["targets"])  # with the space, it is encoded as if it were inside a text
        documents[-1] += [ids[at : at + longest] for at in range(0, len(ids), longest)]
    documents = [document for document in documents if document]  # drops documents without ids
    for number, document in enumerate(documents):
        draw = random.Random(repr(document))
        for place, room in _places(document, length - 2, draw):
            start, border, end = place
            other = others(documents, number, place, room, draw)
            if other[1] is not None:
                records.append({"targets": _row(document[start:border], document[border:end]), "other": _row(*other)})
    return records


def _places(sentences, longest, draw):
    """Yields ((start, border, end), room) for rows with at least two sentences and, if possible, at most `room` ids."""
    start, size, room = 0, 0, _room(longest, draw)
    for end, sentence in enumerate([*sentences, None]):
        if end - start >= 2 and (sentence is None or size + len(sentence) > room):
            yield (start, draw.randrange(start + 1, end), end), max(room, size)
            start, size, room = end, 0, _room(longest, draw)
        size += len(sentence or ())


def _room(longest, draw):
    return draw.randint(2, longest) if draw.random() < _SHORTER else longest


def _fitting(sentences, room):
    """Returns the first sentences that fit into `room` ids; if the first sentence is too long, returns a part of it."""
    fitting = [sentences[0][:room]]
    for sentence in sentences[1:]:
        if sum(map(len, fitting)) + len(sentence) > room:
            break
        fitting.append(sentence)
    return fitting


def _row(first, second):
    return [*itertools.chain(*first), EOS_ID, *itertools.chain(*second), EOS_ID]
