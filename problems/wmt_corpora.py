"""The public corpora of tensor2tensor's translation problems, as tables; nothing here is registered.

Addresses and members are those of tensor2tensor's translate_*.py and of tensorflow-datasets' translate/wmt.py; sizes
and SHA-256 those of tensorflow-datasets' url_checksums. A row names the English member and the other one; `{x}` stands
for the other language.
"""

import logging
from typing import NamedTuple

from t2t_lite.corpora import source_files
from t2t_lite.data.problem import FILE_TAGS, DatasetSplit
from t2t_lite.data.translate import TranslateProblem

_LOGGER = logging.getLogger("t2t_lite")

_STATMT = "http://www.statmt.org"
_DATA_STATMT = "http://data.statmt.org"
_PARACRAWL_1 = "https://s3.amazonaws.com/web-language-models/paracrawl/release1"
_EN_ID = "https://github.com/prasastoadi/parallel-corpora-en-id/raw/master"


class Corpus(NamedTuple):
    """A parallel corpus in an archive: its address, its members, the languages that it pairs with English."""

    url: str
    english: str
    other: str
    languages: str


def _panl(name):
    """Returns the row of a part of the PANL-BPPT corpus, such as "ECO-{x}-150Kw"."""
    english, other = (f"PANL-BPPT-{name.format(x=x)}.tok.txt" for x in ("EN", "ID"))
    return Corpus(f"{_EN_ID}/PANL-BPPT-{name.format(x='EN-ID')}.tok.tgz", english, other, "id")


CORPORA = {
    "europarl_v7": Corpus(
        f"{_STATMT}/wmt13/training-parallel-europarl-v7.tgz",
        "training/europarl-v7.{x}-en.en",
        "training/europarl-v7.{x}-en.{x}",
        "cs de es fr",
    ),
    "europarl_v7_ro": Corpus(f"{_STATMT}/europarl/v7/ro-en.tgz", "europarl-v7.ro-en.en", "europarl-v7.ro-en.ro", "ro"),
    "europarl_v8": Corpus(
        f"{_DATA_STATMT}/wmt18/translation-task/training-parallel-ep-v8.tgz",
        "training/europarl-v8.{x}-en.en",
        "training/europarl-v8.{x}-en.{x}",
        "et fi",
    ),
    "commoncrawl": Corpus(
        f"{_STATMT}/wmt13/training-parallel-commoncrawl.tgz",
        "commoncrawl.{x}-en.en",
        "commoncrawl.{x}-en.{x}",
        "cs de es fr ru",
    ),
    "news_commentary_v9": Corpus(
        f"{_STATMT}/wmt14/training-parallel-nc-v9.tgz",
        "training/news-commentary-v9.{x}-en.en",
        "training/news-commentary-v9.{x}-en.{x}",
        "cs de fr ru",
    ),
    "news_commentary_v13": Corpus(
        f"{_DATA_STATMT}/wmt18/translation-task/training-parallel-nc-v13.tgz",
        "training-parallel-nc-v13/news-commentary-v13.{x}-en.en",
        "training-parallel-nc-v13/news-commentary-v13.{x}-en.{x}",
        "cs de ru zh",
    ),
    "un": Corpus(
        f"{_STATMT}/wmt13/training-parallel-un.tgz", "un/undoc.2000.{x}-en.en", "un/undoc.2000.{x}-en.{x}", "es fr"
    ),
    "giga_fren": Corpus(
        f"{_STATMT}/wmt10/training-giga-fren.tar",
        "giga-fren.release2.fixed.en.gz",
        "giga-fren.release2.fixed.fr.gz",
        "fr",
    ),
    "paracrawl_1": Corpus(
        _PARACRAWL_1 + "/paracrawl-release1.en-{x}.zipporah0-dedup-clean.tgz",
        "paracrawl-release1.en-{x}.zipporah0-dedup-clean.en",
        "paracrawl-release1.en-{x}.zipporah0-dedup-clean.{x}",
        "cs de es et fi ru",
    ),
    "rapid_2016": Corpus(
        f"{_DATA_STATMT}/wmt18/translation-task/rapid2016.tgz", "rapid2016.en-{x}.en", "rapid2016.en-{x}.{x}", "et fi"
    ),
    "setimes_ro": Corpus(
        "http://opus.nlpl.eu/download.php?f=SETIMES/v2/moses/en-ro.txt.zip",
        "SETIMES.en-ro.en",
        "SETIMES.en-ro.ro",
        "ro",
    ),
    "setimes_mk": Corpus(
        "http://nlp.ffzg.hr/data/corpora/setimes/setimes.en-mk.txt.tgz",
        "setimes.en-mk.en.txt",
        "setimes.en-mk.mk.txt",
        "mk",
    ),
    "mte_1984_mk": Corpus(
        "https://github.com/stefan-it/nmt-en-mk/raw/master/data/MTE-1984-dev.enmk.tgz",
        "MTE1984-dev.en",
        "MTE1984-dev.mk",
        "mk",
    ),
    "opennmt_1m_train": Corpus(
        "https://s3.amazonaws.com/opennmt-trainingdata/baseline-1M-enfr.tgz",
        "baseline-1M-enfr/baseline-1M_train.en",
        "baseline-1M-enfr/baseline-1M_train.fr",
        "fr",
    ),
    "opennmt_1m_valid": Corpus(
        "https://s3.amazonaws.com/opennmt-trainingdata/baseline-1M-enfr.tgz",
        "baseline-1M-enfr/baseline-1M_valid.en",
        "baseline-1M-enfr/baseline-1M_valid.fr",
        "fr",
    ),
    "iwslt15_vi": Corpus(
        "https://github.com/stefan-it/nmt-en-vi/raw/master/data/train-en-vi.tgz", "train.en", "train.vi", "vi"
    ),
    "iwslt_tst2012_vi": Corpus(
        "https://github.com/stefan-it/nmt-en-vi/raw/master/data/dev-2012-en-vi.tgz", "tst2012.en", "tst2012.vi", "vi"
    ),
    "iwslt17_id": Corpus(
        f"{_EN_ID}/IWSLT17.train.en-id.tok.tgz", "IWSLT17.train.en-id.tok.en", "IWSLT17.train.en-id.tok.id", "id"
    ),
    "iwslt_tst2017_id": Corpus(
        f"{_EN_ID}/IWSLT17.TED.tst2017plus.en-id.tok.tgz",
        "IWSLT17.TED.tst2017plus.en-id.tok.en",
        "IWSLT17.TED.tst2017plus.en-id.tok.id",
        "id",
    ),
    "panl_economy_id": _panl("ECO-{x}-150Kw"),
    "panl_international_id": _panl("INT-{x}-150Kw"),
    "panl_science_id": _panl("SCI-{x}-100Kw"),
    "panl_sport_id": _panl("SPO-{x}-100Kw"),
    "autshumato_tn": Corpus(
        "https://github.com/LauraMartinus/ukuxhumana/blob/master/data/en_tn/eng_tswane.train.tar.gz?raw=true",
        "entn_parallel.train.en",
        "entn_parallel.train.tn",
        "tn",
    ),
    "autshumato_dev_tn": Corpus(
        "https://github.com/LauraMartinus/ukuxhumana/blob/master/data/en_tn/eng_tswane.dev.tar.gz?raw=true",
        "entn_parallel.dev.en",
        "entn_parallel.dev.tn",
        "tn",
    ),
    "newstest2013": Corpus(
        f"{_DATA_STATMT}/wmt17/translation-task/dev.tgz",
        "dev/newstest2013.en",
        "dev/newstest2013.{x}",
        "cs de es fr ru",
    ),
    "newstest2014": Corpus(
        f"{_STATMT}/wmt14/test-full.tgz",
        "test-full/newstest2014-{x}en-src.en.sgm",
        "test-full/newstest2014-{x}en-ref.{x}.sgm",
        "de fr",
    ),
    "newsdev2016": Corpus(
        f"{_DATA_STATMT}/wmt16/translation-task/dev-romanian-updated.tgz",
        "dev/newsdev2016-roen-ref.en.sgm",
        "dev/newsdev2016-roen-src.ro.sgm",
        "ro",
    ),
    "newsdev2018": Corpus(
        "https://github.com/stefan-it/nmt-en-et/raw/master/data/newsdev2018-enet.tar.gz",
        "newsdev2018-enet-src.en",
        "newsdev2018-enet-ref.et",
        "et",
    ),
}

# CzEng 1.6 has both languages in one table: id, score, Czech, English.
CZENG_1_6 = [
    "https://lindat.mff.cuni.cz/repository/xmlui/bitstream/handle/11234/1-1458/data-plaintext-format.tar",
    ("tsv", 3, 2, "data.plaintext-format/*train.gz"),
]

# English comes first in its units.
PARACRAWL_4 = [
    "https://s3.amazonaws.com/web-language-models/paracrawl/release4/en-de.bicleaner07.tmx.gz",
    ("tmx", "en-de.bicleaner07.tmx.gz"),
]

CHECKSUMS = {
    f"{_STATMT}/wmt13/training-parallel-europarl-v7.tgz": (
        657_632_379,
        "0224c7c710c8a063dfd893b0cc0830202d61f4c75c17eb8e31836103d27d96e7",
    ),
    f"{_STATMT}/wmt13/training-parallel-commoncrawl.tgz": (
        918_311_367,
        "c7a74e2ea01ac6c920123108627e35278d4ccb5701e15428ffa34de86fa3a9e5",
    ),
    f"{_STATMT}/wmt14/training-parallel-nc-v9.tgz": (
        80_418_416,
        "cb8953f292298e6877ae433c98912b927cb0766b303f4540512ddd286c748485",
    ),
    f"{_DATA_STATMT}/wmt18/translation-task/training-parallel-nc-v13.tgz": (
        113_157_482,
        "17992b7e919cfb754c60f4e754148bc23b80706ad0ed7b34150831a554b40c91",
    ),
    f"{_STATMT}/wmt13/training-parallel-un.tgz": (
        2_365_634_246,
        "29141b5c1eba149a94f7a59d3b1a834b2e47fe0f8758d68dcd77a3d3f497ee47",
    ),
    f"{_STATMT}/wmt10/training-giga-fren.tar": (
        2_595_102_720,
        "3ff8319f6919393520559bfbc7ad6a747ec81b3abc7be9993b338d4b017b4d9a",
    ),
    f"{_DATA_STATMT}/wmt18/translation-task/training-parallel-ep-v8.tgz": (
        246_201_434,
        "953eaf7f24dcfc87eff6845d13ec6ca8acbee0ccf7edf4063b8b94e943933a96",
    ),
    f"{_DATA_STATMT}/wmt18/translation-task/rapid2016.tgz": (
        161_050_516,
        "41557dd5d8f0ed3a6d98bce3b798b1a9d3b68361eb99d902329ddbb943a6b55a",
    ),
    f"{_PARACRAWL_1}/paracrawl-release1.en-et.zipporah0-dedup-clean.tgz": (
        78_283_314,
        "1c3065a8e04a5a6d09d5d5c72ece8aeabcc418eb48cf85038bba6cdef638dc7d",
    ),
}


def source(name, language):
    """Returns [url, (English member, other member)] of a row for a language. Raises `ValueError` for one it lacks."""
    row = CORPORA[name]
    if language not in row.languages.split():
        raise ValueError(f"corpus {name} has no {language}. Expected one of {row.languages}.")
    return [row.url.format(x=language), (row.english.format(x=language), row.other.format(x=language))]


class CorporaProblem(TranslateProblem):
    """English to another language, from rows of the tables.

    Attributes:
        language_pair: ("en", the other language).
        train_corpora: names of rows, in the order in which they are read.
        dev_corpora: likewise.
        test_corpora: likewise; none: there is no test set.
        differs_from_tensor2tensor: what is not as in tensor2tensor's problem of this name; said when data are made.
    """

    language_pair = None
    train_corpora = ()
    dev_corpora = ("newstest2013",)
    test_corpora = ()
    archive_checksums = CHECKSUMS
    differs_from_tensor2tensor = ""

    @property
    def dataset_splits(self):
        """100 training shards as in tensor2tensor, one of each other set."""
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
        """Returns also the archives, whose change is refused over finished data."""
        archives = {
            FILE_TAGS[part["split"]]: [
                source_files.archive_name(url) for url, _ in self.source_data_files(part["split"])
            ]
            for part in self.dataset_splits
        }
        return {**super().generation_settings(), "archives": archives}

    def prepare_generation(self, data_dir, tmp_dir):
        """Says how the corpora differ from tensor2tensor's, then see `TranslateProblem.prepare_generation`."""
        if self.differs_from_tensor2tensor:
            _LOGGER.info(f"{self.name}: {self.differs_from_tensor2tensor}")
        super().prepare_generation(data_dir, tmp_dir)
