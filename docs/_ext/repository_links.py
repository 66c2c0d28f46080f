"""Links from documents to files of the repository that are no pages (code, examples) become plain names: the site has no copy of them.

README and CHANGELOG are written for the folder above; where a page includes them, links to ``docs/`` lead to the site's own pages."""

import pathlib
import re

LINK = re.compile(r"\[([^\]\n]+)\]\(((?!https?:|#)[^)\s#]+)(#[^)\s]*)?\)")
PAGES = (".md", ".svg", ".png", ".jpg")


def plain_links(app, docname, source):
    here = pathlib.Path(app.env.doc2path(docname)).parent

    def written(found):
        words, target, anchor = found.group(1), found.group(2), found.group(3) or ""
        if target.endswith(PAGES) and (here / target).resolve().is_relative_to(pathlib.Path(app.srcdir)):
            return found.group(0)
        name = (here / target).resolve()
        if name.name in ("CONTRIBUTING.md", "CHANGELOG.md"):
            up = "../" * (len(pathlib.Path(docname).parts) - 1)
            return f"[{words}]({up}{name.stem.lower()}.md{anchor})"
        return words if words.startswith("`") else f"`{words}`"

    source[0] = LINK.sub(written, source[0])


def own_links(app, relative, parent, content):
    """Of an included file of the folder above: ``docs/X.md`` is ``X.md`` here."""
    content[0] = content[0].replace("](docs/", "](")


def setup(app):
    app.connect("source-read", plain_links)
    app.connect("include-read", own_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
