"""Translation from English to German, French and eight other languages with public corpora (WMT, IWSLT and others).

The problems have the same names as in tensor2tensor's translate_encs.py, translate_ende.py and so on. Each row of the
table below lists corpora in `corpora.tsv` and makes one problem per vocabulary. The dev set is newstest2013 unless a
row names another set.

`corpora.tsv` lists the archives' URLs and members (from tensor2tensor's translate_*.py and tensorflow-datasets'
translate/wmt.py), and their sizes and SHA-256 (from tensorflow-datasets' url_checksums). In this table, `{x}` stands
for the language that is paired with English. If both languages are in one file, `english` gives the format: "tsv 3 2"
(the columns, English first) or "tmx".
"""

from t2t_lite import registry
from t2t_lite.corpora import source_files
from t2t_lite.data.problem import FILE_TAGS, DatasetSplit, VocabType
from t2t_lite.data.text_problems.translate import TranslateProblem
from t2t_lite.errors import LOGGER
from t2t_lite.problems.published_files import read_table, words

CORPORA = {row.name: row for row in read_table(__package__, "corpora", languages=words)}
CHECKSUMS = {row.url: (int(row.bytes), row.sha256) for row in CORPORA.values() if row.sha256}


def source(name, language):
    """Returns [url, members] for a corpus and a language, see `TranslateProblem.source_data_files`.

    Raises:
        ValueError: the corpus does not have this language.
    """
    row = CORPORA[name]
    if language not in row.languages:
        raise ValueError(f"corpus {name} has no {language}. Expected one of {' '.join(row.languages)}.")
    url, english, other = (text.format(x=language) for text in (row.url, row.english, row.other))
    kind, *columns = english.split()
    return [url, (kind, *map(int, columns), other) if kind in ("tsv", "tmx") else (english, other)]


class CorporaProblem(TranslateProblem):
    """Translates from English to another language, with corpora from `corpora.tsv`.

    Attributes:
        language_pair: ("en", the other language).
        train_corpora: names of rows in `corpora.tsv`, in the order in which they are read.
        dev_corpora: names of rows in `corpora.tsv` for the dev set.
        test_corpora: names of rows in `corpora.tsv` for the test set; empty if the problem has no test set.
        differs_from_tensor2tensor: how the data differ from tensor2tensor's problem with this name; generation logs it.
    """

    language_pair = None
    train_corpora = ()
    dev_corpora = ("newstest2013",)
    test_corpora = ()
    archive_checksums = CHECKSUMS
    differs_from_tensor2tensor = ""

    @property
    def dataset_splits(self):
        """The splits: 100 training shards, as in tensor2tensor, and one shard for each other set."""
        shards = {DatasetSplit.TRAIN: 100, DatasetSplit.EVAL: 1, DatasetSplit.TEST: 1}
        return [{"split": split, "shards": count} for split, count in shards.items() if self.source_data_files(split)]

    def source_data_files(self, dataset_split):
        """See `TranslateProblem.source_data_files`."""
        names = {
            DatasetSplit.TRAIN: self.train_corpora,
            DatasetSplit.EVAL: self.dev_corpora,
            DatasetSplit.TEST: self.test_corpora,
        }
        return [source(name, self.language_pair[1]) for name in names[dataset_split]]

    def generation_settings(self):
        """Returns the settings of the base class and the problem's archives, which cannot change once data exist."""
        entries = {FILE_TAGS[part["split"]]: self.source_data_files(part["split"]) for part in self.dataset_splits}
        archives = {tag: [source_files.archive_name(url) for url, _ in listed] for tag, listed in entries.items()}
        return {**super().generation_settings(), "archives": archives}

    def prepare_generation(self, data_dir, tmp_dir):
        """See `TranslateProblem.prepare_generation`; also logs how the corpora differ from tensor2tensor's."""
        if self.differs_from_tensor2tensor:
            LOGGER.info(f"{self.name}: {self.differs_from_tensor2tensor}")
        super().prepare_generation(data_dir, tmp_dir)


# {suffix of a problem's name: settings of the vocabulary, which both languages share}
_VOCABULARIES = {
    "37k": {"approx_vocab_size": 37_000},  # the Transformer paper's vocabulary for English-German
    "32k": {"approx_vocab_size": 2**15},
    "8k": {"approx_vocab_size": 2**13},
    "_characters": {"vocab_type": VocabType.CHARACTER},  # UTF-8 bytes
    "_rma": {"approx_vocab_size": 2**15},
}
_WMT14_ENDE = {
    "train_corpora": "europarl_v7 commoncrawl news_commentary_v9",
    "test_corpora": "newstest2014",
    "prepared_dataset": "wmt14_translate/de-en",
}
_OTHER_NEWS_COMMENTARY = (
    "these are the corpora of WMT14 (Europarl v7, Common Crawl, News Commentary v9); tensor2tensor's problem with "
    "this name had News Commentary v13, so results differ"
)


def _register(names, vocabularies, **settings):
    """Registers one problem per vocabulary: "translate_ende_wmt" and "32k 8k" give two problems."""
    settings = {key: words(value) if key.endswith("_corpora") else value for key, value in settings.items()}
    settings["language_pair"] = ("en", names.split("_")[1][2:])
    for ending in vocabularies.split():
        name = names + ending
        class_name = "".join(part.capitalize() for part in name.split("_"))
        problem_class = type(
            class_name, (CorporaProblem,), {"__module__": __name__, **_VOCABULARIES[ending], **settings}
        )
        # The class can be imported by name, as in tensor2tensor.
        globals()[class_name] = registry.register_problem(name)(problem_class)


# WMT14, 4.5 million pairs, as in the Transformer paper (section 5.1); also registered under tensor2tensor's names.
_register("translate_ende_wmt", "37k", **_WMT14_ENDE)
_register("translate_ende_wmt", "32k 8k _characters", differs_from_tensor2tensor=_OTHER_NEWS_COMMENTARY, **_WMT14_ENDE)
# ParaCrawl release 4, alone and with WMT14's corpora; both problems use the vocabulary of translate_ende_wmt32k.
_PARACRAWL = {"use_vocab_from_other_problem": registry.problem("translate_ende_wmt32k"), "test_corpora": "newstest2014"}
_register("translate_ende_pc", "32k", train_corpora="paracrawl_4", **_PARACRAWL)
_register(
    "translate_ende_wmt_pc",
    "32k",
    train_corpora=_WMT14_ENDE["train_corpora"] + " paracrawl_4",
    differs_from_tensor2tensor=_OTHER_NEWS_COMMENTARY,
    **_PARACRAWL,
)
# WMT14, 40.8 million pairs; the vocabulary of the Transformer paper has 32k pieces.
_register(
    "translate_enfr_wmt", "32k 8k _characters", train_corpora="commoncrawl europarl_v7 news_commentary_v9 giga_fren un",
    test_corpora="newstest2014", prepared_dataset="wmt14_translate/fr-en",
)  # fmt: skip
# A million training pairs of WMT14 and separate dev pairs, as sampled by OpenNMT.
_register(
    "translate_enfr_wmt_small", "32k 8k _characters", train_corpora="opennmt_1m_train", dev_corpora="opennmt_1m_valid",
    test_corpora="newstest2014",
)  # fmt: skip
_register(
    "translate_encs_wmt", "32k _characters", train_corpora="czeng_1_6 news_commentary_v13 commoncrawl europarl_v7"
)
_register("translate_enes_wmt", "32k 8k _characters", train_corpora="commoncrawl europarl_v7 un paracrawl_1")
# WMT18, about 2.2 million pairs.
_register(
    "translate_enet_wmt",
    "32k _characters",
    train_corpora="europarl_v8 paracrawl_1_et rapid_2016",
    dev_corpora="newsdev2018",
)
# IWSLT17 (109,335 pairs) and PANL-BPPT (24,024), as published, that is, tokenized; 1,478 dev pairs.
_register(
    "translate_enid_iwslt",
    "32k",
    train_corpora="iwslt17_id panl_economy_id panl_international_id panl_science_id panl_sport_id",
    dev_corpora="iwslt_tst2017_id",
)
# SETimes, with MULTEXT-East's "1984" (4,986 pairs) as dev set.
_register("translate_enmk_setimes", "32k _characters", train_corpora="setimes_mk", dev_corpora="mte_1984_mk")
# Europarl and SETimes, about 614,000 pairs.
_register(
    "translate_enro_wmt", "32k 8k _characters", train_corpora="europarl_v7_ro setimes_ro", dev_corpora="newsdev2016"
)
# The Autshumato corpus.
_register("translate_entn", "_rma", train_corpora="autshumato_tn", dev_corpora="autshumato_dev_tn")
# IWSLT15's translated talks, 133,000 pairs; 1,553 dev pairs.
_register("translate_envi_iwslt", "32k", train_corpora="iwslt15_vi", dev_corpora="iwslt_tst2012_vi")
