"""The signatures of an export that has protected texts come through, as a Translator does."""

import tensorflow as tf

from t2t_lite.export.signatures import TextSignatures
from t2t_lite.extras.protect.protected_graph import hide, hide_as, restore
from t2t_lite.text.reading_graph import blanked, valid


class ProtectedSignatures(TextSignatures):
    """See `TextSignatures`; the problem's `substitution` is a `Protection`."""

    def __init__(self, translator, max_input_length, **search):
        super().__init__(translator, max_input_length, **search)
        self._protection = translator.problem.substitution

    def card(self):
        """See `TextSignatures.card`."""
        rows, table = super().card()
        return {**rows, "unchanged in outputs": ", ".join(self._protection.kinds)}, table

    def read_inputs(self, inputs):
        """Returns `Sources`, blank where there is nothing to translate, and the `HiddenBatch`."""
        hidden = hide(self._protection, valid(inputs))
        sources = self.readers["inputs"](hidden.texts)
        sources = blanked(sources._replace(is_blank=sources.is_blank | (hidden.only != "")))
        encoder = self.encoders["inputs"]
        is_symbol = [piece in self._protection.symbols for piece in encoder.pieces(range(encoder.vocab_size))]
        return sources, hidden.read(tf.gather(tf.constant(is_symbol), sources.ids))

    def pairs(self, inputs, targets):
        """Returns inputs and targets, both string [batch], with the inputs' symbols."""
        hidden = hide(self._protection, valid(inputs))
        return hidden.texts, hide_as(self._protection, valid(targets), hidden)

    def texts(self, ids, read, n_best=1):
        """int32 [batch * n_best, length] -> string [batch * n_best], with the protected texts of their inputs."""
        slots, found = (tf.repeat(part, n_best, axis=0) for part in (read.slots, read.found))
        return restore(self._protection, super().texts(ids, read, n_best), slots, found)

    def unchanged(self, read):
        """Returns the texts of protected texts only, string [batch]."""
        return read.only
