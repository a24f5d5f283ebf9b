"""`masked_lm_own`: encoders that learn to predict masked words from the user's own text files (BERT's first task).

    t2t-datagen --problem=masked_lm_own --train_files=a.txt --dev_files=b.txt --vocab_size=8000 --data_dir=D

The files, the rows and the vocabulary are those of `languagemodel_own`; masks are sampled whenever a batch is read, so
that each epoch has different masks (RoBERTa's dynamic masking).
"""

import hashlib
import logging
import types

from t2t_lite import registry
from t2t_lite.corpora import plain_text
from t2t_lite.data.problem import FILE_TAGS, VocabType
from t2t_lite.errors import UserError, counted, located
from t2t_lite.problems import masking_settings as masking_settings
from t2t_lite.problems.languagemodel_own import LanguagemodelOwn
from t2t_lite.problems.own_settings import OwnSetting, own_settings
from t2t_lite.text import vocabulary_files

_LOGGER = logging.getLogger("t2t_lite")
_MASK = "[MASK]"


@registry.register_problem
class MaskedLmOwn(LanguagemodelOwn):
    """Text files given to `configure`, of which a model sees a part and predicts the rest."""

    task = "masked_language_model"
    features = types.MappingProxyType({"inputs": 2, "targets": 2})
    record_features = ("targets",)
    # The first of BERT's 512 positions is reserved by the model.
    settings = own_settings(
        *LanguagemodelOwn.settings, "mask_rate", "mask_unit", OwnSetting("phrases", list, None),
        sequence_length=511, vocab_type=VocabType.SUBWORD.value,
    )  # fmt: skip

    def check_settings(self, values, paths):
        """See `OwnCorpus.check_settings`. Raises `UserError` also if a given vocabulary has no mask."""
        from t2t_lite.text.encoder_parts import mask_of

        super().check_settings(values, paths)
        if values["vocab_type"] == VocabType.BYTE_LEVEL_BPE.value:
            raise UserError(
                f"--vocab_type={VocabType.BYTE_LEVEL_BPE.value}: such a vocabulary is learned without {_MASK}. "
                "Expected subwords, or --vocab_from with a published vocabulary, such as RoBERTa's, that has a mask."
            )
        for path in (values["vocab_from"] or {}).values():
            with located(f"--vocab_from: {path}"):
                mask_of(vocabulary_files.open_encoder(path))
        unit, phrase_file = values.get("mask_unit"), values.get("phrase_file")
        if (unit == "phrase") != bool(phrase_file):
            flag = f"and --phrase_file={phrase_file}" if phrase_file else "without --phrase_file"
            raise UserError(
                f"--mask_unit={unit} {flag}: expected --mask_unit=phrase --phrase_file=FILE, with a phrase per line, "
                "or neither."
            )
        if phrase_file:
            lines = plain_text.read_lines(phrase_file, self.on_bad_line)
            values["phrases"] = sorted({plain_text.clean(line) for line in lines if line} - {""})
            if not values["phrases"]:
                raise UserError(f"--phrase_file={phrase_file}: all its lines are blank. Expected a phrase per line.")

    def generation_settings(self):
        """See `OwnCorpus.generation_settings`; phrases are represented by their hash."""
        phrases = "\n".join(self.config.get("phrases") or ())
        sha256 = {"sha256": hashlib.sha256(phrases.encode()).hexdigest()} if phrases else None
        return {**super().generation_settings(), "phrases": sha256}

    @property
    def additional_reserved_tokens(self):
        """The mask, which is part of a learned vocabulary."""
        return () if self.existing_vocabularies else (_MASK,)

    def feature_encoders(self, data_dir):
        """See `Problem.feature_encoders`; inputs and targets share one vocabulary."""
        from t2t_lite.data.masking import masking_of

        encoder = super().feature_encoders(data_dir)["targets"]
        c = self.config
        self.masking = masking_of(encoder, c["mask_rate"], c["mask_unit"], c.get("phrases") or ())
        return {"inputs": encoder, "targets": encoder}

    def nonblank_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields the samples; then logs the number of masks in the text itself, if the vocabulary encodes them."""
        from t2t_lite.text.encoder_parts import mask_of

        encoder = self.feature_encoders(data_dir)["targets"]
        mask_id, mask = mask_of(encoder)
        count = 0
        for sample in super().nonblank_samples(data_dir, tmp_dir, dataset_split):
            count += sample["targets"].count(mask)
            yield sample
        if count and mask_id in encoder.encode(mask):
            _LOGGER.warning(
                f"{self.name}: {mask} stands in the text of the {FILE_TAGS[dataset_split]} set "
                f"({counted(count, 'time')}): it is read as a mask, of which nothing is learned. Take it "
                "out of the text if it is not meant so."
            )

    def corrupt(self, batch, seeds):
        """Returns the masked ids as inputs, and the ids to predict as targets."""
        inputs, targets = self.masking(batch["targets"], seeds)
        return {"inputs": inputs, "targets": targets}
