"""What layers and models say of a Keras file whose weights would mean something else in them."""


class FileCheck:
    """Base of layers that refuse some files, although the shapes of all weights fit.

    Keras comes to a layer by each attribute that holds it, finds its weights by the first one alone, and takes the last
    answer for the layer's: where a file has nothing, `check_file` repeats what it said before.
    """

    _refusal = None

    def check_file(self, store):
        """Raises `ValueError` if the layer's weights in a file are refused, for `load_own_variables` to begin with."""
        if list(store.keys()):
            self._refusal = self.refusal_of(store)
        if self._refusal:
            raise self._refusal

    def refusal_of(self, store):
        """Returns why weights in a file, {name: array}, cannot be the layer's: a `ValueError`; None: they can."""
        raise NotImplementedError
