"""What the quickstart prints at its end."""

import re

from t2t_lite.extras.quickstart.commands import step


def print_translations(paths):
    """Prints three lines, the first, the middle and the last, of each file.

    Args:
        paths: {title: path} of files with equally many lines.
    """
    step("Three translations")
    texts = {}
    for title, path in paths.items():
        with open(path, encoding="utf-8", newline="\n") as file:
            texts[title] = file.read().split("\n")[:-1]
    count = len(texts[title])
    width = max(map(len, texts))
    for at in dict.fromkeys((0, count // 2, count - 1)):
        for title, lines in texts.items():
            print(f"{title:<{width}} {lines[at]}")
        print()


def print_score(split, printed):
    """Prints BLEU as the last line: `quickstart: test BLEU 83.21 (signature)`; `printed` is t2t-bleu's output."""
    score = re.search(r"^sacreBLEU = (.*)$", printed, re.MULTILINE)
    print(f"quickstart: {split} BLEU {score[1]}")
