"""Settings of the documentation site: `make docs`.

The source folder is the whole repository, so that links between pages, examples and results work in the site as they
do in the repository.
"""

import pathlib
import sys

from t2t_lite import __version__
from t2t_lite.process.quiet_import import import_tensorflow

FOLDER = pathlib.Path(__file__).parent
sys.path.insert(0, str(FOLDER))  # for the extensions
import_tensorflow()

project = "t2t_lite"
version = release = __version__
html_title = f"t2t_lite {release}"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "extensions.command_pages",
    "extensions.docstrings",
    "extensions.folder_links",
]

# The pages, and the files of the repository that they link to.
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**", "deploy/*.md", "examples/**", "benchmarks/**"]
exclude_patterns = [".*", "**/.*", "**/_build", "**/__pycache__", "build", "dist", "quickstart", "tests", "t2t_lite"]
# Pages of measurements are linked from their own index page, so they are not in a toctree.
suppress_warnings = ["toc.not_included"]
nitpicky = True
# Types in signatures may be internal or from other packages; back-quoted words in docstrings need not be names.
nitpick_ignore_regex = [("py:(obj|class)", ".*"), ("py:.*", r"(?!t2t_lite\.).*")]

myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "exclude-members": "build, get_config, from_config, compute_output_shape"}
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False
# One entry may describe several arguments and give their types in words.
napoleon_use_param = napoleon_use_rtype = False
napoleon_use_ivar = True
add_module_names = False

html_theme = "furo"
html_copy_source = html_show_sourcelink = False
html_extra_path = ["extensions/static"]
html_theme_options = {"top_of_page_buttons": []}
html_show_copyright = False
smartquotes = False  # these are code: {"inputs": ids}, --name
