"""Generates scripts with which shells complete flags and their values; uses the same tables as --help."""

import re
import shlex

import t2t_lite
from t2t_lite import registry

_INSTALL = {
    "bash": 'in ~/.bashrc: eval "$(t2t-completion --shell=bash)"',
    "zsh": 'in ~/.zshrc, after compinit: eval "$(t2t-completion --shell=zsh)"',
    "fish": "in ~/.config/fish/config.fish: t2t-completion --shell=fish | source",
}
SHELLS = tuple(_INSTALL)

# If COMP_WORDBREAKS contains =, as it does by default, bash splits words at =. bash 3.2 (macOS) lacks compopt and does
# not add a slash to folders.
_BASH = """
_t2t_lite() {
    local command=${COMP_WORDS[0]##*/} value=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    local flag= start= kind= words= word=
    COMPREPLY=()
    if [[ $value == = ]]; then
        flag=$before value=
    elif [[ $before == = ]]; then
        flag=${COMP_WORDS[COMP_CWORD - 2]}
    elif [[ $value == --*=* ]]; then
        flag=${value%%=*} start=${value%%=*}= value=${value#*=}
    elif [[ $before == --* && $value != -* ]]; then
        flag=$before
    fi
    flag=${flag#--}
    read -r kind words <<<"$(_t2t_lite_values "$command" "${flag//-/_}")"
    if [[ ! $kind ]]; then
        [[ ! $flag || $before == --* ]] || return
        while IFS= read -r word; do
            [[ $word == *= ]] || word+=' '
            COMPREPLY+=("$word")
        done < <(compgen -W "$(_t2t_lite_flags "$command")" -- "$value")
    elif [[ $kind == words ]]; then
        while IFS= read -r word; do COMPREPLY+=("$word "); done < <(compgen -P "$start" -W "$words" -- "$value")
    elif [[ $kind == path* ]]; then
        compopt -o filenames +o nospace 2>/dev/null
        if [[ $kind == paths && $value == *,* ]]; then
            start+=${value%,*}, value=${value##*,}
        fi
        while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -P "$start" -f -- "$value")
    fi
}
"""


def script(shell, tables):
    """Returns the completion script for one of `SHELLS`.

    Args:
        shell: str.
        tables: {command: list of the command's flags, as `Flags.shown` returns them}.
    """
    names = {
        "problem": registry.list_problems(),
        "model": registry.list_built_in_models(),
        "hparams_set": registry.list_hparams(),
        "hparams_range": registry.list_ranged_hparams(),
    }
    head = f"# Completes the commands of t2t_lite {t2t_lite.__version__}. To install it, add {_INSTALL[shell]}"
    return "\n".join([head, *{"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](tables, names)])


def _bash(tables, names):
    yield _BASH.strip()
    yield "_t2t_lite_flags() {\n    case $1 in"
    for command, flags in tables.items():
        words = (word for flag in flags for word in (_switch_words(flag) or [f"--{flag.name}="]))
        yield f"    {command}) echo {shlex.quote(' '.join(words))} ;;"
    yield "    esac\n}\n# Prints the kind of value: path, paths, any, or words and the words.\n_t2t_lite_values() {"
    where = {}
    for command, flags in tables.items():
        for flag in flags:
            if not flag.boolean:
                words = flag.choices or names.get(flag.name, ())
                kind = "path" if flag.is_path else "paths" if flag.is_paths else "words" if words else "any"
                where.setdefault(" ".join([kind, *words]), []).append(f"{command}:{flag.name}")
    yield "    case $1:$2 in"
    for values, flags in where.items():
        yield f"    {'|'.join(flags)}) echo {shlex.quote(values)} ;;"
    yield f"    esac\n}}\ncomplete -o nospace -F _t2t_lite {' '.join(tables)}"


def _zsh(tables, names):
    for name, words in names.items():
        yield f"_t2t_lite_{name}=({' '.join(words)})"
    yield "_t2t_lite() {\n    case $service in"
    for command, flags in tables.items():
        yield f"    {command}) _arguments \\"
        for flag in flags:
            says = re.sub(r"([][:\\])", r"\\\1", _first_sentence(flag))
            if flag.boolean:
                specs = [f"{word}[{says}]" for word in _switch_words(flag)]
            else:
                specs = [f"--{flag.name}=[{says}]:{flag.name}:{_zsh_action(flag, names)}"]
            yield from (f"        {shlex.quote(spec)} \\" for spec in specs)
        yield "        ;;"
    yield f"    esac\n}}\ncompdef _t2t_lite {' '.join(tables)}"


def _zsh_action(flag, names):
    if flag.is_path or flag.is_paths:
        return "_files" if flag.is_path else "_sequence _files"
    if flag.choices:
        return f"({' '.join(flag.choices)})"
    return f"compadd -a _t2t_lite_{flag.name}" if flag.name in names else " "


def _fish(tables, names):
    for name, words in names.items():
        yield f"set -g _t2t_lite_{name} {' '.join(words)}"
    for command, flags in tables.items():
        yield f"complete -c {command} -f"
        for flag in flags:
            says = f" -d {_fish_quoted(_first_sentence(flag))}"
            if flag.boolean:
                yield from (f"complete -c {command} -l {word[2:]}{says}" for word in _switch_words(flag))
                continue
            words = " ".join(flag.choices) or (f"$_t2t_lite_{flag.name}" if flag.name in names else "")
            if flag.is_paths:
                words = "(__fish_complete_list , __fish_complete_path)"
            values = "-rF" if flag.is_path else f"-xa {_fish_quoted(words)}" if words else "-x"
            yield f"complete -c {command} -l {flag.name} {values}{says}"


def _fish_quoted(text):
    """Returns a text in single quotes for fish, which, unlike other shells, interprets backslashes inside them."""
    return "'" + re.sub(r"(['\\])", r"\\\1", text) + "'"


def _switch_words(flag):
    return [f"--{flag.name}", f"--no{flag.name}"] if flag.boolean else []


def _first_sentence(flag):
    return re.match(r".*?(?=\.\s|[.:;]?$)", flag.help, re.DOTALL)[0]
