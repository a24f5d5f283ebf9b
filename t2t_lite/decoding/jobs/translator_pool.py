"""Several translators, generators or predictors, one per device, that share the work of a call."""

import concurrent.futures
import functools

import tensorflow as tf

_SHARED = ("translate", "translate_by_risk", "generate", "score", "predict", "fill_mask", "features")


class TranslatorPool:
    """Has the attributes of `Translator`, `Generator` or `Predictor`, and their methods that take lists of texts.

    Sentences are distributed by length, so that all devices have about the same work. The distribution does not depend
    on the speed of the devices.

    Args:
        translators: list of (device name, Translator, Generator or Predictor with its weights on that device).
    """

    def __init__(self, translators):
        self._devices, self._translators = zip(*translators, strict=True)

    @classmethod
    def load(cls, devices, load, *args):
        """Loads the same model once for each device, by `load` of these arguments."""
        return cls([(device, _on(device, load, *args)) for device in devices])

    @property
    def count(self):
        """The number of translators."""
        return len(self._translators)

    @property
    def search_history(self):
        """The `Searcher.history` of each translator."""
        return [translator.search_history for translator in self._translators]

    @search_history.setter
    def search_history(self, histories):
        for translator, history in zip(self._translators, histories, strict=True):
            translator.search_history = history

    def __getattr__(self, name):
        if name in _SHARED:
            return functools.partial(self._deal, name)
        return getattr(self._translators[0], name)

    def _deal(self, method, texts, **options):
        """Calls the method of each translator with its share of the texts and of options that are lists."""
        order = sorted(range(len(texts)), key=lambda at: -len(texts[at]))
        shares = [order[start :: self.count] for start in range(self.count)]
        found = [None] * len(texts)
        with concurrent.futures.ThreadPoolExecutor(self.count) as threads:
            results = []
            for device, translator, share in zip(self._devices, self._translators, shares, strict=True):
                part = {k: [v[at] for at in share] if isinstance(v, list) else v for k, v in options.items()}
                call = getattr(translator, method)
                results.append(threads.submit(_on, device, call, [texts[at] for at in share], **part))
            for share, result in zip(shares, results, strict=True):
                for at, one in zip(share, result.result(), strict=True):
                    found[at] = one
        return found


def _on(device, function, *args, **options):
    with tf.device(device):  # for this thread only
        return function(*args, **options)
