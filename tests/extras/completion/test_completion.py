"""Shell completion, typed into real shells: what stands on the line after the tab key; scripts."""

# Nearest tests of: extras/completion/t2t_completion.py

import contextlib
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
import types

import pytest

from t2t_lite.cli import commands
from t2t_lite.extras.completion import completion, t2t_completion

SHELLS = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}
STARTS = {
    "bash": "source ./script",
    "zsh": "autoload -U compinit; compinit -u -D; source ./script",
    "fish": "set fish_autosuggestion_enabled 0; source ./script",
}
# What stands in for each command: it prints its words.
STAND_IN = "#!/bin/sh\nprintf '<%s>' \"$@\"; echo\n"
# What is typed, ^ for the tab key, and the words that the command gets.
CASES = {
    "a switch": ("t2t-trainer --registry_h^", ["--registry_help"]),
    "a switch off": ("t2t-trainer --noregistry_h^", ["--noregistry_help"]),
    "a word of several": ("t2t-decoder --on_error=sk^", ["--on_error=skip"]),
    "a problem": ("t2t-trainer --problem=translate_ow^", ["--problem=translate_own"]),
    "a model": ("t2t-trainer --model=transformer_e^", ["--model=transformer_encoder"]),
    "a set": ("t2t-trainer --hparams_set=transformer_quick^", ["--hparams_set=transformer_quickstart"]),
    "after a space": ("t2t-trainer --hparams_set transformer_quick^", ["--hparams_set", "transformer_quickstart"]),
    "ranges": ("t2t-trainer --hparams_range=transformer_reg^", ["--hparams_range=transformer_regularization_range"]),
    "a file in it": ("t2t-decoder --decode_from_file=my_data/te^", ["--decode_from_file=my_data/test.en"]),
    "the next file": ("t2t-datagen --train_files=corpus.en,corpus.d^", ["--train_files=corpus.en,corpus.de"]),
    "another flag": ("t2t-bleu --json --bleu_variant=unc^", ["--json", "--bleu_variant=uncased"]),
    "no file for a number": ("t2t-trainer --train_steps=corp^", ["--train_steps=corp"]),
    "no flag of another command": ("t2t-bleu --train_st^", ["--train_st"]),
}
BASH_CASES = {
    "a flag with a value": ("t2t-trainer --hparams_ra^x", ["--hparams_range=x"]),  # fish puts a space there
    "a folder": ("t2t-trainer --data_dir=my_d^", ["--data_dir=my_data/"]),  # zsh takes the slash away again
    "dashes": ("t2t-trainer --hparams-set=transformer_quick^", ["--hparams-set=transformer_quickstart"]),
    "no = among COMP_WORDBREAKS": (
        "COMP_WORDBREAKS=' ' ; t2t-trainer --hparams_set=transformer_quick^",
        ["--hparams_set=transformer_quickstart"],
    ),
    "no word after a switch": ("t2t-trainer --registry_help corp^", ["--registry_help", "corp"]),
    "a file with a space": ("t2t-trainer --data_dir=two^", ["--data_dir=two words"]),
}


class Terminal:
    """A shell in a terminal."""

    def __init__(self, shell, folder):
        self._end, inside = pty.openpty()
        env = {"PATH": f"{folder}/bin:{os.environ['PATH']}", "HOME": str(folder), "TERM": "dumb", "LC_ALL": "C.UTF-8"}
        env |= {name: value for name, value in os.environ.items() if name in ("LD_LIBRARY_PATH", "FPATH")}
        self._process = subprocess.Popen(
            SHELLS[shell], stdin=inside, stdout=inside, stderr=inside, cwd=folder, env=env, start_new_session=True
        )
        os.close(inside)
        assert self.type(f"{STARTS[shell]}; t2t-bleu begun") == "<begun>"

    def type(self, line):
        """Types a line, and returns what its command prints."""
        os.write(self._end, f"{line}\n".replace("^", "\t").encode())
        text, until = "", time.monotonic() + 60
        while not (printed := re.search(r"^(<.*>)\r?\n", text, re.MULTILINE)):
            assert select.select([self._end], [], [], until - time.monotonic())[0], text
            text += os.read(self._end, 65536).decode(errors="replace")
        return printed[1]

    def close(self):
        """Ends the shell."""
        self._process.kill()
        self._process.wait()
        os.close(self._end)


@pytest.mark.parametrize("shell", SHELLS)
def test_what_the_tab_key_adds(tmp_path, shell):
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    for name in ("my_data/test.en", "corpus.en", "corpus.de", "two words"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "bin").mkdir()
    for command in commands.paths():
        (tmp_path / "bin" / command).write_text(STAND_IN)
        (tmp_path / "bin" / command).chmod(0o755)
    with open(tmp_path / "script", "w") as file, contextlib.redirect_stdout(file):
        assert t2t_completion.main([f"--shell={shell}"]) == 0
    cases = CASES | (BASH_CASES if shell == "bash" else {})
    terminal = Terminal(shell, tmp_path)
    try:
        printed = {case: terminal.type(typed) for case, (typed, _) in cases.items()}
    finally:
        terminal.close()
    assert printed == {case: "".join(f"<{word}>" for word in words) for case, (_, words) in cases.items()}


def test_every_flag_of_every_command_is_there(capsys):
    assert t2t_completion.main(["--shell=bash"]) == 0
    script = capsys.readouterr().out
    for name, module in commands.modules().items():
        (line,) = re.findall(rf"^    {name}\) echo (.*) ;;$", script, re.MULTILINE)
        words = line.strip("'").split()
        shown = commands.flags_of(module).shown()
        expected = [f"--{flag.name}=" for flag in shown if not flag.boolean]
        expected += [f"--{no}{flag.name}" for flag in shown if flag.boolean for no in ("", "no")]
        assert sorted(words) == sorted(expected)


def flag(name, text, **facts):
    facts = {"boolean": False, "choices": (), "is_path": False, "is_paths": False} | facts
    return types.SimpleNamespace(name=name, help=text, **facts)


FLAGS = [
    flag("json", "Print JSON: [a], it's \\ so. More.", boolean=True), flag("file", "A file", is_path=True),
    flag("files", "Files; more.", is_paths=True), flag("kind", "A kind.", choices=("a", "b")),
    flag("model", "A model.", ), flag("count", "A count:"),
]  # fmt: skip
# zsh's _arguments(1) and fish's complete(1) have these forms.
ZSH = r"""_t2t_lite() {
    case $service in
    t2t-x) _arguments \
        '--json[Print JSON\: \[a\], it'"'"'s \\ so]' \
        '--nojson[Print JSON\: \[a\], it'"'"'s \\ so]' \
        '--file=[A file]:file:_files' \
        '--files=[Files; more]:files:_sequence _files' \
        '--kind=[A kind]:kind:(a b)' \
        '--model=[A model]:model:compadd -a _t2t_lite_model' \
        '--count=[A count]:count: ' \
        ;;
    esac
}
compdef _t2t_lite t2t-x"""
FISH = r"""complete -c t2t-x -f
complete -c t2t-x -l json -d 'Print JSON: [a], it\'s \\ so'
complete -c t2t-x -l nojson -d 'Print JSON: [a], it\'s \\ so'
complete -c t2t-x -l file -rF -d 'A file'
complete -c t2t-x -l files -xa '(__fish_complete_list , __fish_complete_path)' -d 'Files; more'
complete -c t2t-x -l kind -xa 'a b' -d 'A kind'
complete -c t2t-x -l model -xa '$_t2t_lite_model' -d 'A model'
complete -c t2t-x -l count -x -d 'A count'"""


@pytest.mark.parametrize(("shell", "expected"), [("zsh", ZSH), ("fish", FISH)])
def test_the_scripts_of_shells_that_may_not_be_here(shell, expected):
    script = completion.script(shell, {"t2t-x": FLAGS})
    assert script.splitlines()[0].endswith({"zsh": '--shell=zsh)"', "fish": "--shell=fish | source"}[shell])
    assert script.endswith(f"\n{expected}")
    for name, word in (("problem", "translate_own"), ("model", "transformer"), ("hparams_set", "transformer_base")):
        (line,) = re.findall(rf"^(?:set -g )?_t2t_lite_{name}\W.*$", script, re.MULTILINE)
        assert word in re.findall(r"\w+", line)


@pytest.mark.slow
def test_neither_tensorflow_nor_keras_is_imported():
    code = (
        "import sys; from t2t_lite.bin import t2t_completion as c; assert c.main(['--shell=fish']) == 0; "
        "assert not {'tensorflow', 'keras'} & {*sys.modules}"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=300)
