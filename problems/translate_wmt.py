"""English to German, French and eight other languages from public corpora: WMT's, IWSLT's and others.

Mirrors tensor2tensor's translate_encs.py, translate_ende.py and so on, with the same names. Each row of the table below
names corpora of `corpora.tsv` and makes one problem per vocabulary; the dev set is newstest2013 where a row names none.
"""

from t2t_lite import registry
from t2t_lite.data.problem import VocabType
from t2t_lite.problems.tables import words
from t2t_lite.problems.wmt_corpora import CorporaProblem

# Suffixes of problem names: settings of the vocabulary, which both languages share.
_VOCABULARIES = {
    "37k": {"approx_vocab_size": 37_000},  # the paper's for English-German
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
    "these are WMT14's corpora (Europarl v7, Common Crawl, News Commentary v9); tensor2tensor's problem of this "
    "name had News Commentary v13, so results are not the same"
)


def _register(names, vocabularies, **settings):
    """Registers a problem for each vocabulary: "translate_ende_wmt" and "32k 8k" make two."""
    settings = {key: words(value) if key.endswith("_corpora") else value for key, value in settings.items()}
    settings["language_pair"] = ("en", names.split("_")[1][2:])
    for ending in vocabularies.split():
        name = names + ending
        class_name = "".join(part.capitalize() for part in name.split("_"))
        problem_class = type(
            class_name, (CorporaProblem,), {"__module__": __name__, **_VOCABULARIES[ending], **settings}
        )
        globals()[class_name] = registry.register_problem(name)(problem_class)  # importable, as in tensor2tensor


# WMT14, 4.5 million pairs: the paper's (section 5.1), and under tensor2tensor's names.
_register("translate_ende_wmt", "37k", **_WMT14_ENDE)
_register("translate_ende_wmt", "32k 8k _characters", differs_from_tensor2tensor=_OTHER_NEWS_COMMENTARY, **_WMT14_ENDE)
# ParaCrawl release 4, alone and with WMT14's corpora, both with the vocabulary of translate_ende_wmt32k.
_PARACRAWL = {
    "use_vocab_from_other_problem": registry.problem("translate_ende_wmt32k"),
    "test_corpora": "newstest2014",
}
_register("translate_ende_pc", "32k", train_corpora="paracrawl_4", **_PARACRAWL)
_register(
    "translate_ende_wmt_pc",
    "32k",
    train_corpora=_WMT14_ENDE["train_corpora"] + " paracrawl_4",
    differs_from_tensor2tensor=_OTHER_NEWS_COMMENTARY,
    **_PARACRAWL,
)
# WMT14, 40.8 million pairs: the paper's has 32k.
_register(
    "translate_enfr_wmt",
    "32k 8k _characters",
    train_corpora="commoncrawl europarl_v7 news_commentary_v9 giga_fren un",
    test_corpora="newstest2014",
    prepared_dataset="wmt14_translate/fr-en",
)
# A million pairs of WMT14, and separate dev pairs, as sampled by OpenNMT.
_register(
    "translate_enfr_wmt_small",
    "32k 8k _characters",
    train_corpora="opennmt_1m_train",
    dev_corpora="opennmt_1m_valid",
    test_corpora="newstest2014",
)
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
# IWSLT17 (109,335 pairs) and PANL-BPPT (24,024), tokenized as they come; 1,478 dev pairs.
_register(
    "translate_enid_iwslt",
    "32k",
    train_corpora="iwslt17_id panl_economy_id panl_international_id panl_science_id panl_sport_id",
    dev_corpora="iwslt_tst2017_id",
)
# SETimes; MULTEXT-East's "1984" (4,986 pairs) as dev set.
_register("translate_enmk_setimes", "32k _characters", train_corpora="setimes_mk", dev_corpora="mte_1984_mk")
# About 614,000 pairs.
_register(
    "translate_enro_wmt", "32k 8k _characters", train_corpora="europarl_v7_ro setimes_ro", dev_corpora="newsdev2016"
)
# The Autshumato corpus.
_register("translate_entn", "_rma", train_corpora="autshumato_tn", dev_corpora="autshumato_dev_tn")
# 133,000 pairs of talks; 1,553 dev pairs.
_register("translate_envi_iwslt", "32k", train_corpora="iwslt15_vi", dev_corpora="iwslt_tst2012_vi")
