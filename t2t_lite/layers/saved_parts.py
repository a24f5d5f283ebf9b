"""What files say of the parts of a layer or model that are in no configuration: which are frozen, and have LoRA."""

import keras


def freeze_new_parts(layer):
    """Freezes what `build` has made, if `layer.trainable = False` came before it: Keras freezes the parts there are."""
    if not layer.trainable:
        layer.trainable = True  # with TensorFlow, an attribute that is set to what it is stays untouched
        layer.trainable = False


class SavedParts:
    """Mixed into a layer or model that makes others, whose parts are in Keras' files and TensorFlow's checkpoints.

    Of a loaded one those parts are frozen, and have LoRA (`enable_lora`), that were or had in the saved one.
    """

    def get_build_config(self):
        """Returns what Keras builds the layer from, with paths of frozen parts, and {path: (rank, alpha)} of LoRA."""
        frozen, lora = [], {}
        for path, part in self._parts():
            if not part.trainable:
                frozen.append(path)
            if getattr(part, "lora_enabled", False):
                lora[path] = part.lora_rank, part.lora_alpha
        own = {name: value for name, value in (("frozen", frozen), ("lora", lora)) if value}
        return {**(super().get_build_config() or {}), **own} if own else super().get_build_config()

    def build_from_config(self, config):
        """Builds the layer, gives its parts LoRA, and freezes them."""
        config = dict(config or {})
        frozen, lora = set(config.pop("frozen", ())), config.pop("lora", {})
        super().build_from_config(config)
        if (frozen or lora) and not self.built:
            self.build()  # a model that was not called before it was saved
        for path, part in self._parts():
            if path in lora and not part.lora_enabled:  # one with a configuration of its own has it already
                part.enable_lora(*lora[path])
            if path in frozen:
                part.trainable = False

    def _parts(self):
        """Yields (path, layer) of all parts; paths begin at the layer, whose place may be another once it is loaded."""
        start = f"{self.path}/" if self.path else ""
        for part in self._flatten_layers(include_self=False):
            yield (part.path or "").removeprefix(start), part

    def _trackable_children(self, save_type="checkpoint", **kwargs):
        """Returns what TensorFlow saves of the layer in a `tf.train.Checkpoint`, with the layers in its lists."""
        children = super()._trackable_children(save_type, **kwargs)
        return children if save_type != "checkpoint" else {**children, **dict(_in_lists(self))}


def _in_lists(layer, start=""):
    """Yields (name, layer or variable) of what is in lists and dicts of a layer, and of the layers of others in it.

    Keras (as of 3.15) puts them into classes of its own, which TensorFlow leaves out without a word.
    """
    for name in dict.fromkeys(layer._tracked):
        for place, value in keras.tree.flatten_with_path(getattr(layer, name)):
            if isinstance(value, keras.Layer | keras.Variable):
                yield "-".join(map(str, (f"{start}{name}", *place))), value
    for number, part in enumerate(layer._layers):
        if not isinstance(part, SavedParts):  # which does so itself
            yield from _in_lists(part, f"{start}{number}-")
