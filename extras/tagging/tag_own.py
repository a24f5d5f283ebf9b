"""`tag_own`: tags for the words of the user's own sentences, such as parts of speech or names.

    t2t-datagen --problem=tag_own --train_files=train.conll --dev_files=dev.conll --vocab_size=8000 --data_dir=D

A file has CoNLL's columns: a line for each word, which is the first column, its tag the last, and a blank line after
each sentence; or CoNLL-U's ten, of which FORM and UPOS are read. --columns chooses others. The tags are those of the
training files. `D/tag_own.json` stores everything that was asked for, so that later commands need only `--data_dir=D`.
"""

import logging

from t2t_lite import registry
from t2t_lite.data.problem import DatasetSplit
from t2t_lite.data.splits import FLAGS
from t2t_lite.errors import UserError, shown
from t2t_lite.extras.tagging.conll import LAYOUT, read_conll
from t2t_lite.extras.tagging.entities import EXPECTED, are_of_entities, odd_tags
from t2t_lite.extras.tagging.text_tag_problem import Text2TagProblem
from t2t_lite.problems.own_corpus import OwnCorpus
from t2t_lite.problems.own_settings import LABELLED, OwnSetting, own_settings

_LOGGER = logging.getLogger("t2t_lite")


@registry.register_problem
class TagOwn(OwnCorpus, Text2TagProblem):
    """Sentences with a tag for each word, given to `configure`."""

    columns = LAYOUT.names
    example_flags = "--train_files=train.conll --dev_files=dev.conll"
    expected_lines = "lines of word<TAB>tag, and a blank line after each sentence"
    sample_unit = "sentences"
    settings = own_settings(*LABELLED, OwnSetting("tags", list, None), "problem", vocab_type="subwords")

    def tags(self, data_dir):
        """Returns the tags, sorted."""
        return self.determined("tags", data_dir)

    def eval_metrics(self):
        """Returns the metrics of tags, and entity_f1 for tags such as B-PER and O."""
        tags = (self._config or {}).get("tags")
        return [*super().eval_metrics(), *(["entity_f1"] if tags and are_of_entities(tags) else [])]

    def _check_tables(self, values, paths):
        if values["separator"]:
            raise UserError("--separator: CoNLL's columns are separated by tabs or spaces. Remove the flag.")
        super()._check_tables(values, paths)

    def check_corpus(self, data_dir, tmp_dir):
        """Finds the tags; see `OwnCorpus.check_corpus`."""
        tags = {tag for sentence in self._sentences(DatasetSplit.TRAIN) for tag in sentence.tags}
        self.config["tags"] = self.enough_labels(tags, "tag in the last column")
        if odd := odd_tags(tags):
            _LOGGER.warning(
                f"--{FLAGS[DatasetSplit.TRAIN]}: {self.paths_of(DatasetSplit.TRAIN)}: evaluations will not have "
                f"entity_f1, because of the tags {shown(', '.join(odd))}. Expected {EXPECTED}."
            )
        super().check_corpus(data_dir, tmp_dir)

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields {"inputs": words, "targets": tags}."""
        tags = set(self.tags(data_dir))
        for sentence in self._sentences(dataset_split):
            for word, tag in zip(sentence.words, sentence.tags, strict=True):
                if tag not in tags:
                    raise UserError(
                        f"{sentence.place}: the tag {shown(tag)} of {shown(word)} is in no training file. Expected one "
                        f"of {shown(', '.join(sorted(tags)))}."
                    )
            yield {"inputs": sentence.words, "targets": sentence.tags}

    def _sentences(self, split):
        for facts in self.files_of(split):
            yield from read_conll(facts["path"], layout=self.layout, on_bad_line=self.on_bad_line)
