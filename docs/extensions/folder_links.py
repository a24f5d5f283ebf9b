"""Makes links to folders lead to their README.md, as on code hosts; if there is no README.md, only the text remains.

Links to the pages of deleted extras also become text.
"""

import pathlib

from sphinx.addnodes import pending_xref
from sphinx.transforms import SphinxTransform


class FolderLinks(SphinxTransform):
    """Turns Markdown's links to folders into links to pages, or into plain text."""

    default_priority = 50

    def apply(self):
        """Changes the links in the page."""
        for link in list(self.document.findall(pending_xref)):
            if link["reftype"] != "myst" or link.get("refdomain"):
                continue
            _, path = self.env.relfn2path(link["reftarget"], self.env.docname)
            page = self.env.path2doc(pathlib.Path(path, "README.md"))
            if page in self.env.found_docs:
                link.attributes.update(refdomain="doc", reftarget=page, reftargetid=None)
            elif pathlib.Path(path).is_dir() or ("/docs/extras/" in path and not pathlib.Path(path).exists()):
                link.replace_self(link.children)


def setup(app):
    """Registers the extension."""
    app.add_transform(FolderLinks)
    return {"parallel_read_safe": True}
