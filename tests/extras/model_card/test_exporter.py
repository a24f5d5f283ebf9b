"""t2t-exporter with a licence: it is in README.md, and so is the command."""

import pytest
import yaml

from tests.decoding.runs import make_run
from tests.extras.hugging_face.test_exporter import MARIAN


@pytest.mark.slow
def test_the_license_is_in_the_card(call_command, tmp_path):
    made = make_run(tmp_path, **MARIAN)
    result = call_command("t2t-exporter", f"--output_dir={made}", "--format=hugging_face", "--license=CC BY 4.0")
    assert result.stdout == f"{made}/hugging_face\n"
    card = (made / "hugging_face" / "README.md").read_text()
    assert "MarianMTModel" in card and "t2t-exporter" in card
    assert yaml.safe_load(card.split("---")[1])["license"] == "CC BY 4.0"
