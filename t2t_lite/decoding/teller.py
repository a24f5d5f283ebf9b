"""What some models tell about an output beside it, such as in how many steps they thought: a class for each kind."""

from t2t_lite import registry


class Teller:
    """What the models that have a method of its name tell about pairs of a source and an output.

    `register_teller` gives a subclass its name. `Translator.translate` takes `return_<name>`, and a `Hypothesis` has
    the value under the name. t2t-decoder has a flag for it, for which the module is imported: it imports TensorFlow and
    Keras inside of functions.

    Args:
        model: a model; a subclass raises `UserError` for one that cannot tell.

    Attributes:
        flag: str, of the file that gets a line for each line.
        help: str, the flag's.
        own, without: str, ends of "each of the models has …" and "a transformer, which …", for messages.
    """

    flag = help = own = without = ""

    def __init__(self, model):
        self.model = model

    def __call__(self, sources, targets):
        """Returns a list of values, one for each pair.

        Args:
            sources: list of lists of ids, each ending in EOS.
            targets: list of as many lists of ids, none empty.
        """
        raise NotImplementedError

    @staticmethod
    def joined(values):
        """Returns the value of an output that was made in parts, of a list of theirs."""
        raise NotImplementedError

    @staticmethod
    def text(value):
        """Returns a value as a line of the flag's file."""
        raise NotImplementedError


class Tellers(dict):
    """{name: `Teller`} of a model, which are made when they are first asked for."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def __missing__(self, name):
        self[name] = registry.teller(name)(self.model)
        return self[name]

    def asked(self, options):
        """Takes `return_<name>` of tellers out of options; returns {name: Teller} of those that are true.

        Raises:
            UserError: the model cannot tell it.
        """
        names = {option.removeprefix("return_"): option for option in options if option.startswith("return_")}
        return {name: self[name] for name in names if name in registry.list_tellers() and options.pop(names[name])}
