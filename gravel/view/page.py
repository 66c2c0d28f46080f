"""One HTML page that needs nothing beside itself: its style is in it, images are data, there are no scripts. All text is escaped."""

import base64
import html

STYLE = """
:root { color-scheme: light dark; --ink: #1d2430; --quiet: #5b6573; --paper: #ffffff; --card: #f5f6f8; --line: #d9dde3; --link: #0b62a8;
  --warn: #8a4b00; --warn-card: #fff4e2; --good: #17663c; --good-card: #e9f7ee; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ee; --quiet: #9aa5b4; --paper: #14181f; --card: #1e242e; --line: #333c49;
  --link: #7ab8f5; --warn: #ffc877; --warn-card: #3a2b12; --good: #8fdcae; --good-card: #14301f; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.5rem 4rem; max-width: 62rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .25rem; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .7rem; padding-bottom: .25rem; border-bottom: 1px solid var(--line); }
p { margin: .5rem 0; } .quiet { color: var(--quiet); }
table { border-collapse: collapse; width: 100%; font-size: .93rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .28rem .7rem .28rem 0;
  border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
th { font-weight: 600; } tbody th { font-weight: 400; color: var(--quiet); width: min(15rem, 38%); }
td.number, th.number { text-align: right; overflow-wrap: normal; }
table.wide tbody th { width: auto; color: inherit; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: .7rem .9rem; white-space: pre-wrap;
  overflow-wrap: anywhere; font-size: .87rem; margin: .6rem 0; }
ul.warnings, p.good { border-radius: 6px; padding: .7rem 1rem; margin: .6rem 0; }
ul.warnings { background: var(--warn-card); color: var(--warn); padding-left: 2rem; }
p.good { background: var(--good-card); color: var(--good); }
.pictures img { width: 100%; } pre.script { max-height: 32rem; overflow: auto; white-space: pre; overflow-wrap: normal; }
figure { margin: 0 0 1.2rem; break-inside: avoid; } figcaption { color: var(--quiet); font-size: .9rem; margin-top: .3rem; }
img { display: block; max-width: 100%; height: auto; background: #fff; border-radius: 6px; border: 1px solid var(--line); }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(26rem, 100%), 1fr)); gap: 1rem; align-items: start;
  grid-auto-flow: dense; }
.plots img { padding: .5rem; width: 100%; } .plots figure:has(img.broad) { grid-column: 1 / -1; }
@media print { :root { color-scheme: light; --ink: #000; --paper: #fff; --card: #fff; --line: #bbb; --quiet: #444; --warn: #000;
  --good: #000;  --warn-card: #fff; --good-card: #fff; } body { padding: 0; max-width: none; font-size: 11pt; } h2 { break-after: avoid; }
  ul.warnings, p.good { border: 1px solid #888; } tr { break-inside: avoid; } }
"""


def page(title, parts):
    """The page as text."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{''.join(parts)}</body>\n</html>\n"
    )


def element(name, text, **attributes):
    """An element that holds text."""
    return f"<{name}{_attributes(attributes)}>{html.escape(str(text))}</{name}>\n"


def heading(text):
    return element("h2", text)


def table(rows, identity):
    """Rows of a word and what there is to say of it."""
    body = "".join(f'<tr><th scope="row">{html.escape(word)}</th><td>{html.escape(str(value))}</td></tr>\n' for word, value in rows)
    return f'<table id="{identity}"><tbody>\n{body}</tbody></table>\n'


def wide_table(header, rows, identity):
    """A table with a header; its first column holds names, the others numbers in words."""
    top = "".join(
        f'<th scope="col"{_attributes({"class_": "number"} if k else {})}>{html.escape(word)}</th>' for k, word in enumerate(header)
    )
    body = "".join(
        f'<tr><th scope="row">{html.escape(str(name))}</th>'
        + "".join(f'<td class="number">{html.escape(str(value))}</td>' for value in values)
        + "</tr>\n"
        for name, *values in rows
    )
    return f'<table id="{identity}" class="wide"><thead><tr>{top}</tr></thead><tbody>\n{body}</tbody></table>\n'


def listing(sentences, **attributes):
    items = "".join(element("li", sentence) for sentence in sentences)
    return f"<ul{_attributes(attributes)}>\n{items}</ul>\n"


def image(png, words, caption, **attributes):
    """A figure of the bytes of a PNG; ``words`` for those who cannot see it."""
    data = base64.b64encode(png).decode("ascii")
    said = element("figcaption", caption) if caption else ""
    return f'<figure><img src="data:image/png;base64,{data}" alt="{html.escape(words)}"{_attributes(attributes)}>{said}</figure>\n'


def group(parts, **attributes):
    return f"<div{_attributes(attributes)}>\n{''.join(parts)}</div>\n"


def _attributes(given):
    return "".join(f' {name.rstrip("_")}="{html.escape(str(value))}"' for name, value in given.items())
