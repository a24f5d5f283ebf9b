"""Converts this package's docstrings to reStructuredText: back-quoted names, and code indented below a colon."""

import re

from docutils import nodes

QUOTED = re.compile(r"(?<![`:\\])(`[^`]+`)(?!`)")
NAME = re.compile(r"[A-Za-z_][\w.]*(\(\))?")


def rewrite(app, what, name, obj, options, lines):
    """Changes the lines of a docstring in place, before napoleon reads its sections."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            lines[i] = _marked(line)
        if line.endswith(":") and not line.endswith("::") and _is_code(lines, i):
            lines[i] += ":"


def _marked(line):
    """Returns a line with its back-quoted words marked as links (see `resolve`) or as code."""
    parts = QUOTED.split(line)
    for i, part in enumerate(parts):
        if i % 2 == 0:
            parts[i] = re.sub(r"(?<=\w)_(?!\w)", r"\\_", part)  # a reference in reStructuredText
            continue
        words = part.strip("`")
        link = f":py:obj:`{words}`" if NAME.fullmatch(words) else f"``{words}``"
        parts[i] = link + ("\\ " if re.match(r"\w", parts[i + 1]) else "")
    return "".join(parts)


def _is_code(lines, i):
    """Returns whether a blank line and a block indented by four follow."""
    if i + 2 >= len(lines) or lines[i + 1].strip():
        return False
    indent = len(lines[i]) - len(lines[i].lstrip())
    return lines[i + 2].startswith(" " * (indent + 4))


def resolve(app, env, node, contnode):
    """Links a name without its module, such as Translation or UserError, to the only documented object of that name."""
    if node.get("refdomain") != "py" or node.get("refspecific"):
        return None
    node["refspecific"] = True
    domain = env.domains.python_domain
    target = node["reftarget"].removesuffix("()")
    for name in dict.fromkeys([target, target.rpartition(".")[2]]):  # a type may be named by the module that defines it
        objects = domain.find_obj(env, node.get("py:module"), node.get("py:class"), name, None, searchmode=1)
        if len(objects) == 1:
            return domain.resolve_xref(env, node["refdoc"], app.builder, node["reftype"], name, node, contnode)
    return None


def draw_dashes(app, doctree):
    """Puts a dash between an argument and its description, without changing `--name` elsewhere."""
    for text in list(doctree.findall(nodes.Text)):
        if text.startswith(" -- "):
            text.parent.replace(text, nodes.Text(text.replace(" -- ", " – ", 1)))


def setup(app):
    """Registers the extension."""
    app.connect("doctree-read", draw_dashes)
    app.connect("autodoc-process-docstring", rewrite, priority=100)
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True}
