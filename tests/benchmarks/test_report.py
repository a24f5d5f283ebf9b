"""Pages, the index and README's table, as they are made and as they stand in the repository."""

import pathlib

import pytest

from benchmarks.harness import readme_table, record, report
from t2t_lite.errors import UserError
from tests.benchmarks.results import result


def test_a_page_has_what_is_needed_to_repeat_it():
    page = report.page(result(missing={"ct2": "needs ctranslate2, not installed here"}))
    for part in (
        "# Beam search",
        "commit abc1234",
        "2 cores of Intel(R) Xeon(R) Processor @ 2.50GHz, 24 GB",
        "```bash\npython -m benchmarks.decoding\n```",
        "| batch 8 | tokens per second (more is better) | 110 (100 – 240) | 60 (50 – 100) | **2 (1.1 – 4)** |",
        "ct2 was not measured: needs ctranslate2, not installed here.",
        "![The same as a picture](plot.png)",
    ):
        assert part in page


def test_a_page_says_how_memory_grows():
    found = record.Result(
        "growth", "Growth", "make", machine={"cpu": "unknown", "cores": 2}, labels={"ours": "t2t_lite"}
    )
    found.add_growth("training", "resident_mb", "steps", {"ours": [(x, 1000 + x) for x in (100, 200, 300, 400)]})
    assert "| t2t_lite | 100 to 400 | 1,100 | 1,400 | 1000 | +7.4% |" in report.page(found)


@pytest.mark.slow
def test_the_index_has_the_newest_of_each_processor_and_lists_the_others(tmp_path):
    for date in ("2026-01-02", "2026-01-10"):
        report.write_result(result(date=date), tmp_path)
    report.write_result(result(date="2026-01-10", command="python -m benchmarks.decoding --rounds=9"), tmp_path)
    report.write_result(result(date="2026-01-01", machine={"cpu": "AMD EPYC", "cores": 2}), tmp_path)
    results = report.read_all(tmp_path)
    assert [path.name[9:] for path, _ in results] == ["2026-01-10_2", "2026-01-10", "2026-01-02", "2026-01-01"]
    shown, older = report.index(results).split("## Older results")
    assert shown.count("```bash") == 2
    assert "[decoding_2026-01-10_2](decoding_2026-01-10_2)" in shown and "### On AMD EPYC" in shown
    assert "decoding_2026-01-10)" in older and "decoding_2026-01-02)" in older and "2026-01-01" not in older
    report.write_index(tmp_path, readme=None)
    assert (tmp_path / "README.md").read_text() == report.index(results)


def readme_of(results):
    text = "# A\n\n| measured | model | on | result |\n|---|---|---|---|\n| old | 1 | 2 | 3 |\n"
    return readme_table.with_table(text + "\nBLEU has `nrefs:1|version:2`. End.\n", results)


def test_readme_s_table_has_those_of_the_newest_results():
    speed = record.Result("training", "A", "make", machine={"cpu": "AMD EPYC 7B13", "cores": 2})
    speed.add("base, float32", "tokens_per_second", {"ours": [300], "torch": [200], "marian": [100]})
    slower = record.Result("training", "A", "make", machine={"cpu": "AMD EPYC", "cores": 2})
    slower.add("base, float32", "tokens_per_second", {"ours": [300], "torch": [300]})
    other = record.Result("training", "A", "make", machine={"cpu": "Intel Xeon", "cores": 2})
    other.add("base, float32", "tokens_per_second", {"ours": [360], "torch": [300]})
    quality = {"data": "Corpus", "part": "test", "model": "tiny", "time": "1 min"}
    quality["score"] = r"BLEU 12.3 `nrefs:1\|version:2`; chrF2 4"
    score = record.Result("corpus", "A", "make", machine={"cpu": "AMD EPYC", "cores": 8}, quality=quality)
    card = {"cpu": "Intel Xeon", "cores": 16, "card": "NVIDIA H100", "driver": "580"}
    gpu = record.Result("gpu", "A", "make", date="2026-01-02", machine=card)
    gpu.add("train base, 782 x 32 tokens, bfloat16", "tokens_per_second", {"ours": [900], "peer": [500]})
    half = record.Result("training_bfloat16", "A", "make", machine={"cpu": "AMD EPYC", "cores": 2})
    case = "base, bfloat16; t2t_lite also in float32"
    half.add(case, "tokens_per_second", {"mixed": [300], "torch_bf16": [150], "marian_bf16": [75]})
    every = (
        ("half", half),
        ("new", speed),
        ("old", slower),
        ("xeon", other),
        ("corpus_1", score),
        ("gpu_2026-01-02", gpu),
    )
    found = readme_of([(pathlib.Path(name), one) for name, one in every])
    assert found.startswith("# A\n\n| measured | model | on | result |\n|---|---|---|---|\n| [Corpus]")
    assert "| [Corpus](benchmarks/results/corpus_1) test | tiny | 8 CPU cores, 1 min | BLEU 12.3; chrF2 4 |\n" in found
    amd, intel = "[AMD EPYC](benchmarks/results/new)", "[Intel Xeon](benchmarks/results/xeon)"
    nvidia = "[NVIDIA H100](benchmarks/results/gpu_2026-01-02)"
    bfloat16 = "[AMD EPYC, bfloat16](benchmarks/results/half)"
    times = f"1.50 ({amd}), 1.20 ({intel}), 2.00 ({bfloat16}), 1.80 ({nvidia})"
    training = "| speed of training, relative to"
    on = "base | 2 CPU cores, float32 unless stated; a GPU, bfloat16"
    assert f"{training} PyTorch `nn.Transformer` | {on} | {times} |\n" in found
    assert (
        f"{training} Hugging Face Marian | base | 2 CPU cores, float32 unless stated | 3.00 ({amd}), "
        f"4.00 ({bfloat16}) |\n" in found
    )
    assert "old" not in found and "beam 4" not in found and found.endswith(" End.\n")


def test_a_readme_without_the_table_is_refused():
    with pytest.raises(UserError, match=r"has no table that begins with '\| measured"):
        readme_table.with_table("# A\n", [])


def test_a_readme_without_a_score_s_signature_is_refused():
    quality = {"data": "A", "part": "B", "model": "C", "time": "1 min", "score": r"BLEU 1 `nrefs:1\|version:3`"}
    score = record.Result("corpus", "A", "make", machine={"cpu": "AMD EPYC", "cores": 8}, quality=quality)
    with pytest.raises(UserError, match=r"signature of a score, nrefs:1\|version:3"):
        readme_of([(pathlib.Path("new"), score)])


def test_the_repository_s_pages_say_what_its_results_say():
    """After a change: python -m benchmarks.harness.report."""
    results = report.read_all()
    assert len(results) > 20
    assert (record.RESULTS / "README.md").read_text(encoding="utf-8") == report.index(results)
    readme = report.README.read_text(encoding="utf-8")
    assert readme_table.with_table(readme, results) == readme
    for folder in (path for path in record.RESULTS.iterdir() if path.is_dir()):
        assert any(path == folder for path, _ in results), f"{folder}: has no result.json"
        assert (folder / "README.md").exists()
