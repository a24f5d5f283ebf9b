"""Which parts of a layer or model are frozen, in its Keras file: the parts themselves are in no configuration."""


def freeze_new_parts(layer):
    """Freezes what `build` has made, if `layer.trainable = False` came before it: Keras freezes the parts there are."""
    if not layer.trainable:
        layer.trainable = True  # with TensorFlow, an attribute that is set to what it is stays untouched
        layer.trainable = False


class FrozenParts:
    """Mixed into a layer or model that makes others: a loaded one has those parts frozen that the saved one had."""

    def get_build_config(self):
        """Returns what Keras builds the layer from, with the paths of frozen parts."""
        frozen = [path for path, part in self._parts() if not part.trainable]
        return {**(super().get_build_config() or {}), "frozen": frozen} if frozen else super().get_build_config()

    def build_from_config(self, config):
        """Builds the layer, and freezes its parts."""
        config = dict(config or {})
        frozen = set(config.pop("frozen", ()))
        super().build_from_config(config)
        if frozen and not self.built:
            self.build()  # a model that was not called before it was saved
        for path, part in self._parts():
            if path in frozen:
                part.trainable = False

    def _parts(self):
        """Yields (path, layer) of all parts; paths begin at the layer, whose place may be another once it is loaded."""
        start = f"{self.path}/" if self.path else ""
        for part in self._flatten_layers(include_self=False):
            yield (part.path or "").removeprefix(start), part
